//! Forged ids. An id of no timer changes nothing. An id with the wheel and the sequence
//! number of a timer leads to it if the index is right, and perhaps with another index,
//! after the timer was moved.

use proptest::prelude::*;
use tickwheel::TimerId;

/// What an id is forged from.
#[derive(Clone, Copy, Debug)]
pub struct Forge {
    /// The timer whose wheel is named.
    wheel_of: usize,
    /// Names another wheel, this much further on.
    further: i8,
    index: Index,
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
enum Index {
    /// That of a timer, perhaps another one.
    Of(usize),
    /// That of a list head, a vacant entry, a timer, or no entry.
    Any(u32),
}

pub fn forge() -> impl Strategy<Value = Forge> {
    let further = prop_oneof![6 => Just(0), 2 => -3..=3i8, 1 => any::<i8>()];
    let sequence = prop_oneof![3 => 0..40u64, 1 => any::<u64>()];
    (any::<usize>(), further, index(), sequence).prop_map(|(wheel_of, further, index, sequence)| {
        Forge { wheel_of, further, index, sequence }
    })
}

fn index() -> impl Strategy<Value = Index> {
    prop_oneof![
        5 => any::<usize>().prop_map(Index::Of),
        4 => (0..600u32).prop_map(Index::Any),
        1 => any::<u32>().prop_map(Index::Any),
    ]
}

const SEQUENCE_SHIFT: u32 = 76;
const WHEEL_SHIFT: u32 = 32;

fn sequence_and_wheel(id: TimerId) -> (u128, u128) {
    let number = u128::from(id);
    let wheel = number >> WHEEL_SHIFT & ((1 << (SEQUENCE_SHIFT - WHEEL_SHIFT)) - 1);
    (number >> SEQUENCE_SHIFT, wheel)
}

impl Forge {
    /// Forges an id from those of all timers. Also returns the timer that it names, with
    /// whatever index.
    pub fn id(&self, ids: &[TimerId]) -> Option<(TimerId, Option<usize>)> {
        let wheel = sequence_and_wheel(ids[self.wheel_of.checked_rem(ids.len())?]).1;
        let wheel = wheel.saturating_add_signed(self.further.into());
        let sequence = 1 + u128::from(self.sequence) % (ids.len() as u128 + 2);
        let owns = |&id: &TimerId| sequence_and_wheel(id) == (sequence, wheel);
        let timer = ids.iter().position(owns);
        let index = match self.index {
            Index::Of(which) => u128::from(ids[which % ids.len()]) as u32,
            Index::Any(index) => index,
        };
        let number = sequence << SEQUENCE_SHIFT | wheel << WHEEL_SHIFT | u128::from(index);
        Some((TimerId::try_from(number).unwrap(), timer))
    }
}
