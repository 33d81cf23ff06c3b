//! What a string of bytes asks of a wheel. Every string means something, and a
//! byte that changes or goes missing changes little of what the rest means: that
//! is what lets a fuzzer feel its way.

use crate::Geometry;
use crate::pair::{Delay, Index, Op};

/// The bytes that are left; once there are none, all that is read is zero.
pub(crate) struct Script<'a>(&'a [u8]);

/// None so large that looking through all slots takes long.
const SIZES: [usize; 6] = [2, 3, 20, 64, 100, 256];
/// A callback does no more than this.
const NESTED_OPS: u8 = 6;
const LEVELS: u8 = 12;

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Script<'a> {
        Script(bytes)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or_default()
    }

    fn pair(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// One of -1, 0, 1.
    fn offset(&mut self) -> i8 {
        (self.byte() % 3) as i8 - 1
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub(crate) fn geometry(&mut self) -> Geometry {
        let byte = self.byte();
        let size = SIZES[usize::from(byte) % SIZES.len()];
        let geometry = Geometry::new(size).expect("a size in range");
        if byte < 192 {
            return geometry;
        }
        let cap = 1 + usize::from(self.byte() % 3);
        geometry.max_levels(cap).expect("one level at least")
    }

    /// A tick where levels of this size begin, end or wrap.
    pub(crate) fn start(&mut self, size: usize) -> u64 {
        let base = match self.byte() % 4 {
            0 => (size as u64).saturating_pow(u32::from(self.byte() % LEVELS)),
            1 => 1 << (self.byte() % 64),
            2 => u64::MAX - u64::from(self.pair()),
            _ => u64::from(self.pair()),
        };
        base.saturating_add_signed(i64::from(self.offset()))
    }

    pub(crate) fn op(&mut self) -> Op {
        match self.byte() % 16 {
            0 => Op::Clear,
            1 => {
                let count = self.byte() % NESTED_OPS;
                Op::Nested((0..count).map(|_| self.edit()).collect())
            }
            2 => Op::Pop(self.delay(), usize::MAX),
            3 => Op::Pop(Delay::Pass, usize::from(self.byte() % 8)),
            4..7 => Op::Advance(self.delay(), usize::from(self.byte() % 24)),
            7 => Op::PopToNextWakeup(self.offset()),
            _ => self.edit(),
        }
    }

    /// An operation that moves no clock.
    fn edit(&mut self) -> Op {
        match self.byte() % 11 {
            0 => Op::Fill(self.delay(), self.byte() % 40, self.byte() % 8),
            1 => Op::Cancel(usize::from(self.pair())),
            2 => Op::Move(usize::from(self.pair()), self.delay()),
            3 => Op::Herd(usize::from(self.pair()), self.byte() % 40, self.delay()),
            4 => Op::Look(usize::from(self.pair())),
            5 => Op::Shrink(0),
            6 => {
                let (index, sequence) = (self.index(), u64::from(self.pair()));
                Op::Forge(index, sequence, self.delay(), self.flag())
            }
            7 => Op::Rearm(usize::from(self.byte()), self.delay()),
            8 => Op::Reuse(usize::from(self.pair()), self.delay()),
            _ => Op::Schedule(self.delay()),
        }
    }

    fn index(&mut self) -> Index {
        match self.byte() % 4 {
            0 => Index::Own,
            1 => Index::Of(usize::from(self.pair())),
            _ => Index::Any(u32::from(self.pair())),
        }
    }

    fn delay(&mut self) -> Delay {
        match self.byte() % 8 {
            0 => Delay::Past(self.byte()),
            1 | 2 => Delay::Boundary(self.byte() % LEVELS, self.offset()),
            3 => Delay::Far(u64::from(self.pair()) << (self.byte() % 49)),
            4 => Delay::EndOfTime(self.byte()),
            _ => Delay::Near(self.pair() % 300),
        }
    }
}
