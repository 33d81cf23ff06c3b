//! Random numbers that follow from a few others: a plan is the same in every
//! run, whatever came before it.

use std::time::Duration;

/// A splitmix generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator that belongs to these numbers, and to no others.
    pub fn of(numbers: &[u64]) -> Random {
        let mix = |random: Random, number: &u64| {
            let mut random = Random(random.0 ^ *number);
            Random(random.number())
        };
        numbers.iter().fold(Random(0x5EED), mix)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    pub fn micros(&mut self, below: u64) -> Duration {
        Duration::from_micros(self.below(below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_numbers_give_the_same_plan_and_others_another() {
        let draw = |numbers: &[u64]| {
            let mut random = Random::of(numbers);
            [random.number(), random.number()]
        };
        assert_eq!(draw(&[7, 1]), draw(&[7, 1]));
        assert_ne!(draw(&[7, 1]), draw(&[1, 7]));
    }
}
