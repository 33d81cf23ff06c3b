//! Random numbers that cost next to nothing, the same in every run.

/// An xorshift generator.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, by multiplication: a division would cost more
    /// than some of the calls that are measured.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.number()) * end as u128) >> 64) as usize
    }

    /// 1 to `last`.
    pub fn up_to(&mut self, last: u64) -> u64 {
        1 + self.below(last as usize) as u64
    }

    /// Above 0, at most 1.
    pub fn fraction(&mut self) -> f64 {
        ((self.number() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Normally distributed, mean 0 and deviation 1.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.fraction().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
