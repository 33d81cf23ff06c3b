//! Random numbers that follow from a few others: a plan is the same in every
//! run, whatever came before it.

use std::time::Duration;

use fastrand::Rng;

#[derive(Clone, Debug)]
pub struct Random(Rng);

impl Random {
    /// The generator that belongs to these numbers, and to no others.
    pub fn of(numbers: &[u64]) -> Random {
        let mix = |mut rng: Rng, number: &u64| Rng::with_seed(rng.u64(..) ^ number);
        Random(numbers.iter().fold(Rng::with_seed(0), mix))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.0.usize(..len)
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
            [random.below(u64::MAX), random.below(u64::MAX)]
        };
        assert_eq!(draw(&[7, 1]), draw(&[7, 1]));
        assert_ne!(draw(&[7, 1]), draw(&[1, 7]));
    }
}
