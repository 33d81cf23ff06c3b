//! As `pair`, with a random victim among all live timers, and with time moving on.

use fastrand::Rng;

use super::common::{SPAN, filled, steps_in_time};
use crate::case::{Case, Effort};
use crate::rival::Timers;
use crate::rivals::owners;

pub fn cases(effort: Effort) -> Vec<Case> {
    let each = |size| owners!(case(size, effort));
    let sizes = effort.sizes(&[1_024, 65_536, 1_000_000]);
    sizes.into_iter().flat_map(each).collect()
}

fn case<T: Timers>(size: usize, effort: Effort) -> Case {
    Case::of::<T>(&[("pair", "ns")], size, move || {
        let mut rng = Rng::with_seed(2);
        let mut timers = T::new();
        let mut table = filled(&mut timers, size, &mut rng);
        let steps = steps_in_time(&mut timers, &mut table, effort.steps(), |timers, table, now| {
            let victim = rng.usize(..size);
            if let Some(id) = table[victim].take() {
                timers.cancel(id);
            }
            let deadline = now + rng.u64(1..=SPAN);
            table[victim] = Some(timers.schedule(deadline, victim as u64));
        });
        vec![steps]
    })
}
