//! Where an awaited timer stands, in the size of an id.

use core::num::NonZeroU64;

use crate::id::TimerId;

// The kind of stage, in the low bits of the second number. The first number of an id is
// not zero, and that of any other stage is.
const NEW: u64 = 0;
const LAZY: u64 = 1;
const ELAPSED: u64 = 2;
const SHUT_DOWN: u64 = 3;
const KIND_MASK: u64 = 3;
const KIND_BITS: u32 = 2;

/// An enum would take eight more bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Registration([u64; 2]);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Not polled since its deadline was set.
    New,
    /// Not polled yet. Its delay counts from the first poll, and these are the delay's
    /// nanoseconds beyond whole seconds.
    Lazy(u32),
    /// The engine has a timer for it, or had one that has ended since.
    Registered(TimerId),
    /// The deadline has passed.
    Elapsed,
    /// The engine was shut down before the deadline.
    ShutDown,
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    Elapsed,
    ShutDown,
    /// The engine was shut down before the first poll.
    Refused,
}

impl Registration {
    pub(super) const NEW: Registration = Registration([0, NEW]);

    /// Returns the id of the timer that the engine has, or had.
    #[inline]
    pub(super) fn id(self) -> Option<TimerId> {
        let [high, low] = self.0;
        NonZeroU64::new(high).map(|high| TimerId::from_parts(high, low))
    }

    /// Returns how the wait has ended, if it has. The registration has no id.
    #[inline]
    pub(super) fn ended(self) -> Option<Ended> {
        let [_, low] = self.0;
        match low {
            ELAPSED => Some(Ended::Elapsed),
            SHUT_DOWN => Some(Ended::ShutDown),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn stage(self) -> Stage {
        if let Some(id) = self.id() {
            return Stage::Registered(id);
        }
        let [_, low] = self.0;
        match low & KIND_MASK {
            NEW => Stage::New,
            LAZY => Stage::Lazy((low >> KIND_BITS) as u32),
            ELAPSED => Stage::Elapsed,
            _ => Stage::ShutDown,
        }
    }
}

impl From<Stage> for Registration {
    #[inline]
    fn from(stage: Stage) -> Registration {
        Registration(match stage {
            Stage::New => [0, NEW],
            Stage::Lazy(nanos) => [0, u64::from(nanos) << KIND_BITS | LAZY],
            Stage::Elapsed => [0, ELAPSED],
            Stage::ShutDown => [0, SHUT_DOWN],
            Stage::Registered(id) => {
                let (high, low) = id.parts();
                [high.get(), low]
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WheelNumber;

    #[test]
    fn every_stage_returns_from_its_numbers() {
        let number = WheelNumber::reserve(1);
        let ids = [(1, 0), (1, u32::MAX), (crate::id::MAX_SEQUENCE, 3)];
        let ids = ids.map(|(sequence, index)| TimerId::new(number, sequence, index));
        let stages = ids.map(Stage::Registered).into_iter();
        let lazy = [0, 1, 999_999_999].map(Stage::Lazy);
        let others = [Stage::New, Stage::Elapsed, Stage::ShutDown];
        for stage in stages.chain(lazy).chain(others) {
            assert_eq!(Registration::from(stage).stage(), stage);
        }
    }
}
