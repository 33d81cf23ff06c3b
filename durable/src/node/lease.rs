//! The lease of a node: renewing it, taking the next one, and the moments in which none is certain.

use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::MutexGuard;
use tickwheel::Time;

use super::{Node, Settings};
use crate::store::{Lease, Result, StoreError};
use crate::window::Window;

/// The time that a store has to answer before a lease ends, unless the lease is short.
const MARGIN: Duration = Duration::from_millis(3_300);

/// Returns what is left of a lease when it is renewed: a third, but `MARGIN`, or two thirds of
/// a short lease.
fn margin(length: Duration) -> Duration {
    MARGIN.min(length * 2 / 3).max(length / 3)
}

impl Node {
    /// Returns the lease, if it is certain that no other node has it.
    pub(crate) fn lease(&self) -> Option<Lease> {
        self.held.lock().certain(self.engine.now())
    }

    /// Returns whether a job that was started under this fence may run.
    pub(crate) fn holds(&self, fence: u64) -> bool {
        self.lease().is_some_and(|lease| lease.fence == fence)
    }

    /// Returns whether the lease with this fence is over, or another has taken its place.
    pub(crate) fn has_lost(&self, fence: u64) -> bool {
        let held = self.held.lock();
        let is_last = held.lease.is_some_and(|lease| lease.fence == fence);
        !is_last || held.ended(self.engine.now()).is_some()
    }

    /// Returns what is notified when the lease is lost, and at the end of the node.
    #[cfg(feature = "tokio")]
    pub(crate) fn lease_changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.lease_changed.notified()
    }

    pub(super) fn tell_lease_changed(&self) {
        #[cfg(feature = "tokio")]
        self.lease_changed.notify_waiters();
    }

    pub(super) fn keep_lease(&self) {
        let (now, length) = (self.engine.now(), self.settings.lease);
        let is_asked = self.is_renewal_due.swap(false, Ordering::SeqCst);
        let (lease, end) = {
            let held = self.held.lock();
            (held.lease, held.end)
        };
        let is_early = end.since(now) > margin(length) && !self.until_wanted().is_zero();
        if lease.is_some() && is_early && !is_asked {
            return;
        }
        // A lease that is granted while the store recovers would not be certain.
        let one_recovery = self.recovering.lock();
        self.held.lock().asked = self.engine.now();
        let taken = self.renew_or_take(lease);
        *self.failure.lock() = taken.as_ref().err().cloned();
        self.observer.leased(lease, &taken);
        if taken.is_err() {
            // Until a change fails, nobody else notices that the store accepts none.
            let _ = self.recover_within(&one_recovery);
        }
    }

    /// Renews the lease, or takes one. That is renewed at once, so that it begins when the work of
    /// taking it is over.
    fn renew_or_take(&self, lease: Option<Lease>) -> Result<Option<Lease>> {
        let Settings { owner, lanes, lease: length, .. } = &self.settings;
        if let Some(lease) = lease {
            if self.renew(lease)? {
                return Ok(Some(lease));
            }
            self.lose_lease(Some(lease.fence));
        }
        if self.engine.is_shut_down() {
            return Ok(None);
        }
        match self.store.acquire(owner, &lanes.kinds, *length)? {
            Some(lease) if self.renew(lease)? => Ok(Some(lease)),
            _ => Ok(None),
        }
    }

    fn renew(&self, lease: Lease) -> Result<bool> {
        let (asked, length) = (self.engine.now(), self.settings.lease);
        let is_renewed = self.store.renew(lease, length)?;
        if is_renewed {
            let mut held = self.held.lock();
            (held.lease, held.is_aside) = (Some(lease), false);
            held.end = if self.store.leases_end() { asked + length } else { Time::MAX };
        }
        Ok(is_renewed)
    }

    /// Has the store accept changes again. No job starts meanwhile: a store that is opened again
    /// is closed for a moment, in which another node may take it.
    pub(crate) fn recover(&self) -> Result<()> {
        self.recover_within(&self.recovering.lock())
    }

    fn recover_within(&self, _: &MutexGuard<'_, ()>) -> Result<()> {
        self.held.lock().is_aside = true;
        self.store.recover()?;
        self.held.lock().is_aside = false;
        self.observer.recovered();
        Ok(())
    }

    /// Returns why the last request for a lease failed, or the last load, if one did.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        let failure = self.failure.lock().clone();
        failure.or_else(|| self.unread.lock().clone())
    }

    /// Returns the fence of the last lease, unless the lease is only set aside.
    pub(super) fn ended_fence(&self) -> Option<u64> {
        self.held.lock().ended(self.engine.now())
    }

    pub(super) fn last_fence(&self) -> Option<u64> {
        self.held.lock().lease.map(|lease| lease.fence)
    }

    /// Drops the lease with this fence, unless there is a newer one meanwhile. The window is
    /// emptied, because the timers that found no lease are gone.
    pub(super) fn lose_lease(&self, fence: Option<u64>) {
        let mut held = self.held.lock();
        let lost = held.lease.take_if(|lease| Some(lease.fence) == fence);
        drop(held);
        self.windows.lock().iter_mut().for_each(Window::clear);
        self.is_load_due.store(true, Ordering::SeqCst);
        self.observer.lost(lost);
        self.tell_lease_changed();
    }

    /// Lets other nodes have the jobs beside which none runs.
    pub(crate) fn leave(&self) {
        if let Some(lease) = self.lease() {
            self.store.leave(lease);
        }
    }

    /// Ends the lease, or what a node without one holds.
    pub(crate) fn give_back(&self) {
        let held = self.held.lock().lease.take();
        if self.delivers() {
            self.store.give_back(held.unwrap_or(Lease { fence: 0 }));
        }
    }

    /// Returns the time until the store should be asked for the lease: ten times in its length at most.
    pub(super) fn until_asked(&self) -> Duration {
        self.until_renewal().max(self.settings.lease / 10).min(self.until_wanted())
    }

    /// Returns the time until the store wants the lease to be renewed, wherever its end is.
    pub(super) fn until_wanted(&self) -> Duration {
        let since_asked = self.engine.now().since(self.held.lock().asked);
        self.store.renew_after().saturating_sub(since_asked)
    }

    /// Returns the time until the lease should be renewed, whatever the store wants.
    pub(super) fn until_renewal(&self) -> Duration {
        let (held, now) = (self.held.lock(), self.engine.now());
        let left = held.certain(now).map(|_| held.end.since(now));
        left.unwrap_or_default().saturating_sub(margin(self.settings.lease))
    }
}
