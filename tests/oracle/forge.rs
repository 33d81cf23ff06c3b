//! Calls with forged ids. An id of no timer changes nothing. An id with the wheel
//! and the sequence number of a timer leads to it if the index is right, and
//! perhaps with another index, after the timer was moved.

use proptest::prelude::*;
use tickwheel::{Cancel, NotChanged, TimerId};

use crate::oracle::State;
use crate::pair::Pair;
use crate::script::{First, first};

/// What an id is forged from, and what is done with it.
#[derive(Clone, Copy, Debug)]
pub struct Forge {
    /// The timer whose wheel is named.
    wheel_of: usize,
    /// Names another wheel, this much further on.
    further: i8,
    index: Index,
    sequence: u64,
    call: Call,
}

#[derive(Clone, Copy, Debug)]
enum Index {
    /// That of the timer that has the sequence number.
    Own,
    /// That of another timer.
    Of(usize),
    /// That of a list head, a vacant entry, a timer, or no entry.
    Any(u32),
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Cancel,
    CancelTwice,
    CancelAndWait,
    Reschedule(First),
    Replace,
    Deadline,
}

pub fn forge() -> impl Strategy<Value = Forge> {
    let further = prop_oneof![6 => Just(0), 2 => -3..=3i8, 1 => any::<i8>()];
    let sequence = prop_oneof![3 => 0..40u64, 1 => any::<u64>()];
    (any::<usize>(), further, index(), sequence, call()).prop_map(
        |(wheel_of, further, index, sequence, call)| Forge {
            wheel_of,
            further,
            index,
            sequence,
            call,
        },
    )
}

fn index() -> impl Strategy<Value = Index> {
    prop_oneof![
        2 => Just(Index::Own),
        3 => any::<usize>().prop_map(Index::Of),
        4 => (0..600u32).prop_map(Index::Any),
        1 => any::<u32>().prop_map(Index::Any),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        Just(Call::Cancel),
        Just(Call::CancelTwice),
        Just(Call::CancelAndWait),
        first().prop_map(Call::Reschedule),
        Just(Call::Replace),
        Just(Call::Deadline),
    ]
}

const SEQUENCE_SHIFT: u32 = 76;
const WHEEL_SHIFT: u32 = 32;

fn sequence_and_wheel(id: TimerId) -> (u128, u128) {
    let number = u128::from(id);
    let wheel = number >> WHEEL_SHIFT & ((1 << (SEQUENCE_SHIFT - WHEEL_SHIFT)) - 1);
    (number >> SEQUENCE_SHIFT, wheel)
}

/// A timer with this wheel and sequence number, and whether the id is its own.
struct Meant {
    timer: Option<usize>,
    is_real: bool,
}

impl Meant {
    /// The timer, if it must answer or has answered. An answer of `gone` says that
    /// it has not.
    fn found<A: PartialEq>(&self, answer: &A, gone: A) -> Option<usize> {
        let is_missed = !self.is_real && *answer == gone;
        self.timer.filter(|_| !is_missed)
    }
}

impl Pair {
    pub fn forge(&mut self, forge: &Forge) {
        let Some(id) = self.forged(forge) else {
            return;
        };
        let same = |&real: &TimerId| sequence_and_wheel(real) == sequence_and_wheel(id);
        let timer = self.ids.iter().position(same);
        let meant = Meant {
            timer,
            is_real: timer.is_some_and(|timer| self.ids[timer] == id),
        };
        match forge.call {
            Call::Cancel => self.cancel_forged(&meant, id),
            Call::CancelTwice => {
                for answer in self.engine.cancel_many(&[id, id]) {
                    self.check_cancelled(&meant, answer);
                }
            }
            Call::CancelAndWait => self.cancel_forged_and_wait(&meant, id),
            Call::Reschedule(first) => self.reschedule_forged(&meant, id, first),
            Call::Replace => self.replace_forged(&meant, id),
            Call::Deadline => self.read_forged(&meant, id),
        }
    }

    fn forged(&self, forge: &Forge) -> Option<TimerId> {
        let of = self.ids[forge.wheel_of.checked_rem(self.ids.len())?];
        let wheel = sequence_and_wheel(of).1;
        let wheel = wheel.saturating_add_signed(forge.further.into());
        let sequence = 1 + u128::from(forge.sequence) % (self.ids.len() as u128 + 2);
        let owns = |&id: &TimerId| sequence_and_wheel(id) == (sequence, wheel);
        let index = match forge.index {
            Index::Own => u128::from(self.ids.iter().copied().find(owns)?) as u32,
            Index::Of(which) => u128::from(self.ids[which % self.ids.len()]) as u32,
            Index::Any(index) => index,
        };
        let number = sequence << SEQUENCE_SHIFT | wheel << WHEEL_SHIFT | u128::from(index);
        Some(TimerId::try_from(number).unwrap())
    }

    fn cancel_forged(&mut self, meant: &Meant, id: TimerId) {
        let answer = self.engine.cancel(id);
        self.check_cancelled(meant, answer);
    }

    /// Would wait for this thread if it held a firing of the timer.
    fn cancel_forged_and_wait(&mut self, meant: &Meant, id: TimerId) {
        let state = meant.timer.map(|timer| self.oracle.timers[timer].state);
        if matches!(state, Some(State::Lent { .. } | State::Abandoned(_))) {
            return;
        }
        let answer = self.engine.cancel_and_wait(id);
        self.check_cancelled(meant, answer);
    }

    fn check_cancelled(&mut self, meant: &Meant, answer: Cancel<u64>) {
        match meant.found(&answer, Cancel::Gone) {
            Some(timer) => assert_eq!(answer, self.answer_to_cancel(timer)),
            None => assert_eq!(answer, Cancel::Gone),
        }
    }

    fn reschedule_forged(&mut self, meant: &Meant, id: TimerId, first: First) {
        let first = self.oracle.first(first);
        let answer = self.engine.reschedule(id, first);
        let Some(timer) = meant.found(&answer, Err(NotChanged::Gone)) else {
            return assert_eq!(answer, Err(NotChanged::Gone));
        };
        assert_eq!(answer, self.not_waiting(timer));
        if answer.is_ok() {
            self.oracle.reschedule(timer, first);
        }
    }

    fn replace_forged(&mut self, meant: &Meant, id: TimerId) {
        let payload = self.new_payload();
        let answer = self.engine.replace(id, payload);
        let Some(timer) = meant.found(&answer, Err((NotChanged::Gone, payload))) else {
            return assert_eq!(answer, Err((NotChanged::Gone, payload)));
        };
        match self.not_waiting(timer) {
            Err(why) => assert_eq!(answer, Err((why, payload))),
            Ok(()) => {
                let old = std::mem::replace(&mut self.oracle.timers[timer].payload, payload);
                assert_eq!(answer, Ok(old));
            }
        }
    }

    fn read_forged(&self, meant: &Meant, id: TimerId) {
        let answer = self.engine.deadline(id);
        let Some(timer) = meant.found(&answer, None) else {
            return assert_eq!(answer, None);
        };
        assert_eq!(answer, self.deadline_of(timer));
    }
}
