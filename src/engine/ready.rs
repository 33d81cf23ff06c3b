//! Expired timers, or unread reports, on their way to one queue's workers.
//!
//! They stay in their entries, linked to a list, so that they can be cancelled
//! until a worker takes them.

use crate::wheel::{At, Wheel};

pub(super) struct Ready {
    list: At,
    len: usize,
    /// Whether a bell for this list is in the queue's channel, or in the hand
    /// of a worker who will look at the list and put it back if need be. True
    /// whenever the list holds anything.
    rung: bool,
}

impl Ready {
    pub(super) fn new<B>(wheel: &mut Wheel<B>) -> Ready {
        Ready {
            list: wheel.add_list(),
            len: 0,
            rung: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn first<B>(&self, wheel: &Wheel<B>) -> Option<At> {
        wheel.first_of(self.list)
    }

    /// Hangs an entry behind the others. Returns whether to ring for it.
    #[inline]
    pub(super) fn append<B>(&mut self, wheel: &mut Wheel<B>, at: At) -> bool {
        wheel.append_to(self.list, at);
        self.len += 1;
        !std::mem::replace(&mut self.rung, true)
    }

    /// Takes an entry off, from wherever it stands.
    #[inline]
    pub(super) fn unlink<B>(&mut self, wheel: &mut Wheel<B>, at: At) {
        wheel.unlink(at);
        self.len -= 1;
    }

    /// Whether there are more after a worker has looked. Where a bell brought
    /// the worker, it stays rung exactly then, and the worker must put it back.
    #[inline]
    pub(super) fn has_more(&mut self, by_bell: bool) -> bool {
        let more = self.len > 0;
        if by_bell {
            self.rung = more;
        }
        more
    }
}
