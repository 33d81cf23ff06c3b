//! What the rivals do not promise although tickwheel does, as their documentation and
//! code say (docs/COMPARE.md). futures-timer keeps a heap that compares instants alone.

/// A promise that an engine does not make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    StaleIds,
    Order,
    Payload,
    Removal,
    Deadline,
    Firing,
}

impl Lack {
    /// Returns the end of a sentence that begins with an engine's name.
    pub fn text(self) -> &'static str {
        match self {
            Lack::StaleIds => "a stale id reaches another timer, or panics",
            Lack::Order => "no order among equal deadlines",
            Lack::Payload => "a cancel returns no payload",
            Lack::Removal => "a cancelled timer keeps memory until its deadline",
            Lack::Deadline => "fires before the deadline",
            Lack::Firing => "nothing fires by itself",
        }
    }
}

/// Returns the promises that an engine does not make.
pub fn lacks(engine: &str) -> &'static [Lack] {
    match engine {
        "tokio Sleep" | "tokio Sleep, paused" => &[Lack::Order, Lack::Payload],
        "tokio-util DelayQueue" => &[Lack::StaleIds, Lack::Order],
        "tm-wheel" | "nexus-timer" | "tokio" | "futures-timer" => &[Lack::Order],
        "timer-queue" => &[Lack::StaleIds, Lack::Order],
        "hash-wheel" => &[Lack::Payload, Lack::Removal],
        "hash-wheel thread" => &[Lack::Payload, Lack::Removal, Lack::Deadline],
        "BinaryHeap, lazy" => &[Lack::StaleIds, Lack::Payload, Lack::Removal],
        "Mutex<BTreeMap>" | "Mutex<Wheel>" => &[Lack::Firing],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rival::Timers;

    /// Whether timers fire in the order of their deadlines, and equal ones in the order
    /// in which they were scheduled, also if some of them have cascaded.
    fn keeps_order<T: Timers>() -> bool {
        let mut timers = T::new();
        let mut expected = Vec::new();
        let mut fired = Vec::new();
        let deadlines = (0..600).map(|n| 5_000 + n * 7 % 3);
        for (payload, deadline) in deadlines.enumerate() {
            // The later ones are filed when the deadline is near.
            timers.advance(payload as u64 * 8, &mut fired);
            timers.schedule(deadline, payload as u64);
            expected.push((deadline, payload as u64));
        }
        expected.sort_unstable();
        timers.advance(6_000, &mut fired);
        let expected: Vec<u64> = expected.into_iter().map(|(_, payload)| payload).collect();
        fired == expected
    }

    fn check<T: Timers>() {
        let lacks = lacks(T::NAME).contains(&Lack::Order);
        // An engine may keep an order without a promise.
        assert!(lacks || keeps_order::<T>(), "{}", T::NAME);
    }

    #[test]
    fn engines_that_are_said_to_keep_the_order_keep_it() {
        check::<crate::rivals::tickwheel_wheel::BareWheel>();
        check::<crate::rivals::btreemap::Map>();
        check::<crate::rivals::binary_heap::Heap>();
        check::<crate::rivals::hash_wheel::HashWheel>();
        assert!(!keeps_order::<crate::rivals::tm_wheel::TmWheel>());
        assert!(!keeps_order::<crate::rivals::nexus_timer::Nexus>());
    }
}
