//! What the thread that keeps the window does: loads, steps of the wall clock, old dead letters.

use std::time::Duration;

use super::Node;
use crate::store::{Change, List, Page, StoreError};
use crate::wall::WallTime;
use crate::window::Window;

/// The number of dead letters that are removed at once.
const BURIALS: usize = 32;
/// A difference between wall clock and engine that is taken for a step.
const STEP: Duration = Duration::from_millis(1);

impl Node {
    /// Keeps lease and window: renews, loads, and aims anew after a step of the wall clock.
    /// Returns the time at which it wants to be called again.
    pub(crate) fn keep(&self) -> WallTime {
        if !self.delivers() {
            return WallTime::MAX;
        }
        if self.engine.is_shut_down() {
            self.keep_lease();
            return self.now() + self.until_asked();
        }
        if let Some(step) = self.clock_step() {
            self.observer.clock_stepped(step);
            self.windows.lock().iter_mut().for_each(|window| window.re_aim(self.now()));
            for lane in 0..self.lanes() {
                self.load(lane);
            }
        }
        self.keep_lease();
        if self.ended_fence().is_some() {
            self.tell_lease_changed();
        }
        let (now, mut is_loaded) = (self.now(), false);
        for lane in 0..self.lanes() {
            let wants_load = self.windows.lock()[lane].wants_load(now);
            if self.lease().is_some() && wants_load {
                self.load(lane);
                is_loaded = true;
            }
        }
        if is_loaded && !self.windows.lock().iter().any(Window::is_unread) {
            *self.unread.lock() = None;
        }
        // An interrupted job may have left its window, for which the others waited.
        self.freed.notify_all();
        self.next_keep()
    }

    /// Returns the removal of some dead letters that have been kept for long enough.
    pub(crate) fn burials(&self) -> Vec<Change> {
        let (Some(keeps), Some(_)) = (self.settings.keeps_dead, self.lease()) else {
            return Vec::new();
        };
        let oldest = |most| {
            let dead = self.store.list(Page::new(List::Dead, None, most));
            let dead = dead.unwrap_or_default().into_iter();
            dead.filter(|job| job.due + keeps <= self.now())
        };
        // They come with their bytes, so a single one is read as long as that is young.
        let most = oldest(1).next().map_or(0, |_| BURIALS);
        oldest(most).map(|job| Change::Bury(job.id)).collect()
    }

    /// Compares the wall clock with the engine's, which knows no steps. Returns the length of a
    /// step, forwards or backwards.
    fn clock_step(&self) -> Option<Duration> {
        let (time, wall) = (self.engine.now(), self.now());
        let mut compared = self.compared.lock();
        let (before, expected) = *compared;
        let expected = expected + time.since(before);
        *compared = (time, wall);
        let step = wall.since(expected).max(expected.since(wall));
        (step > STEP).then_some(step)
    }

    /// Loads the window of a lane; see its rules.
    fn load(&self, lane: usize) {
        let Some(lease) = self.lease() else {
            return;
        };
        let kinds = &self.settings.lanes.lanes[lane].kinds;
        let (before, most) = self.windows.lock()[lane].begin_load(self.now());
        let read = self.store.due_before(lease, kinds, before, most);
        if let Err(error) = &read {
            self.note_unread(error.clone());
        }
        let window = &mut self.windows.lock()[lane];
        match read {
            Ok(read) => window.end_load(&read, self.now()),
            Err(_) => window.fail_load(self.now()),
        }
    }

    /// Takes note of the reason why the window could not be kept.
    pub(crate) fn note_unread(&self, error: StoreError) {
        self.observer.store_failed(&error);
        *self.unread.lock() = Some(error);
    }

    fn next_keep(&self) -> WallTime {
        let now = self.now();
        let renewal = now + self.until_asked();
        let windows = self.windows.lock();
        let looks = windows.iter().map(|window| window.look_again(now));
        match self.lease() {
            Some(_) => looks.fold(renewal, WallTime::min),
            None => renewal,
        }
    }
}
