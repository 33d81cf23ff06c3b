//! A virtual clock on its way from one due tick to the next.

use crate::hub::Core;
use crate::timeline::Time;

/// The maximum number of times that one tick is served, for timers added meanwhile,
/// before the clock goes on to the next tick.
const PASSES_AT_A_TIME: usize = 1_000;

impl<T> Core<T> {
    /// Moves the clock with `advance` from one due tick to the next, up to `time`. Calls
    /// `settle` after each move, which returns once nobody can add timers until the next
    /// move.
    pub(crate) fn run_until(
        &self,
        time: Time,
        mut advance: impl FnMut(Time),
        mut settle: impl FnMut(),
    ) {
        let mut serve = |time| self.serve_at(time, &mut advance, &mut settle);
        serve(self.clock.now());
        let last = self.tick.tick_at(time);
        loop {
            let next = self.next_due_after(self.tick_now());
            if next > last {
                break;
            }
            serve(self.tick.start_of(next));
        }
        serve(time);
    }

    /// Moves the clock to `time`, and serves the timers due then, including those that
    /// are added meanwhile.
    fn serve_at(&self, time: Time, advance: &mut impl FnMut(Time), settle: &mut impl FnMut()) {
        for _ in 0..PASSES_AT_A_TIME {
            advance(time);
            settle();
            if self.next_due() > self.tick_now() {
                break;
            }
        }
    }
}
