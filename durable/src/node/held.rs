//! What a node knows of its lease.

use tickwheel::Time;

use crate::store::Lease;

/// The lease, in the engine's time, which counts suspends and knows no steps.
pub(super) struct Held {
    pub(super) lease: Option<Lease>,
    /// Whether the lease is not certain, because the store is being opened again.
    pub(super) is_aside: bool,
    /// The end of the lease, as far as this node can be sure of it.
    pub(super) end: Time,
    /// The time at which it was last asked for.
    pub(super) asked: Time,
}

impl Held {
    pub(super) fn new(now: Time) -> Held {
        Held { lease: None, is_aside: false, end: now, asked: now }
    }

    /// Returns the lease, if it is certain that no other node has it.
    pub(super) fn certain(&self, now: Time) -> Option<Lease> {
        let is_certain = !self.is_aside && now < self.end;
        self.lease.filter(|_| is_certain)
    }

    /// Returns the fence of a lease that has run out.
    pub(super) fn ended(&self, now: Time) -> Option<u64> {
        let ended = self.lease.filter(|_| now >= self.end);
        ended.map(|lease| lease.fence)
    }
}
