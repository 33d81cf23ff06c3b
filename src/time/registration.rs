//! Where an awaited timer stands, in the size of an id.

use core::num::NonZeroU64;

use crate::id::TimerId;

/// The first number of an id is not zero.
const NEW: [u64; 2] = [0, 0];
const LAZY: [u64; 2] = [0, 1];
const ELAPSED: [u64; 2] = [0, 2];
const SHUT_DOWN: [u64; 2] = [0, 3];

/// An enum would take eight more bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Registration([u64; 2]);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Not polled since its deadline was set.
    New,
    /// Not polled yet. Its deadline is a delay that counts from the first poll.
    Lazy,
    /// The engine has a timer for it, or had one that has ended since.
    Registered(TimerId),
    /// The deadline has passed.
    Elapsed,
    /// The engine was shut down before the deadline.
    ShutDown,
}

impl Registration {
    pub(super) const NEW: Registration = Registration(NEW);
    pub(super) const LAZY: Registration = Registration(LAZY);

    /// Returns the id of the timer that the engine has, or had.
    #[inline]
    pub(super) fn id(self) -> Option<TimerId> {
        let [high, low] = self.0;
        NonZeroU64::new(high).map(|high| TimerId::from_parts(high, low))
    }

    #[inline]
    pub(super) fn stage(self) -> Stage {
        match (self.id(), self.0) {
            (Some(id), _) => Stage::Registered(id),
            (None, NEW) => Stage::New,
            (None, LAZY) => Stage::Lazy,
            (None, ELAPSED) => Stage::Elapsed,
            (None, _) => Stage::ShutDown,
        }
    }
}

impl From<Stage> for Registration {
    #[inline]
    fn from(stage: Stage) -> Registration {
        Registration(match stage {
            Stage::New => NEW,
            Stage::Lazy => LAZY,
            Stage::Elapsed => ELAPSED,
            Stage::ShutDown => SHUT_DOWN,
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
        let others = [Stage::New, Stage::Lazy, Stage::Elapsed, Stage::ShutDown];
        for stage in stages.chain(others) {
            assert_eq!(Registration::from(stage).stage(), stage);
        }
    }
}
