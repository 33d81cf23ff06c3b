//! The engines that take part, each in a file of its own.

pub mod async_io;
pub mod binary_heap;
pub mod btreemap;
pub mod futures_timer;
pub mod hash_wheel;
pub mod locked;
pub mod nexus_timer;
pub mod pingora;
pub mod thread_pool;
pub mod tickwheel;
pub mod tickwheel_sleep;
pub mod timer_queue;
pub mod tm_wheel;
pub mod tokio;
pub mod tokio_paused;
pub mod tokio_sleep;
pub mod tokio_util;

/// One case for each engine with one owner.
macro_rules! owners {
    ($case:ident($($argument:expr),*)) => {
        vec![
            $case::<crate::rivals::tickwheel::Alone>($($argument),*),
            $case::<crate::rivals::tokio_paused::Sleeps>($($argument),*),
            $case::<crate::rivals::tokio_util::Queue>($($argument),*),
            $case::<crate::rivals::nexus_timer::Nexus>($($argument),*),
            $case::<crate::rivals::tm_wheel::TmWheel>($($argument),*),
            $case::<crate::rivals::timer_queue::Queue>($($argument),*),
            $case::<crate::rivals::hash_wheel::HashWheel>($($argument),*),
            $case::<crate::rivals::btreemap::Map>($($argument),*),
            $case::<crate::rivals::binary_heap::Heap>($($argument),*),
        ]
    };
}

/// One case for each engine that threads share.
macro_rules! shared {
    ($case:ident($($argument:expr),*)) => {
        vec![
            $case::<crate::rivals::tickwheel::Shards>($($argument),*),
            $case::<crate::rivals::tokio::Sleeps>($($argument),*),
            $case::<crate::rivals::hash_wheel::TimerThread>($($argument),*),
            $case::<crate::rivals::locked::Locked<crate::rivals::btreemap::Map>>($($argument),*),
            $case::<crate::rivals::locked::Locked<crate::rivals::tm_wheel::TmWheel>>($($argument),*),
        ]
    };
}

/// One case for each engine that sleeps by itself.
macro_rules! sleepers {
    ($case:ident($($argument:expr),*)) => {
        vec![
            $case::<crate::rivals::tickwheel::Shards>($($argument),*),
            $case::<crate::rivals::tickwheel::Many>($($argument),*),
            $case::<crate::rivals::tokio::Sleeps>($($argument),*),
            $case::<crate::rivals::hash_wheel::TimerThread>($($argument),*),
            $case::<crate::rivals::locked::Locked<crate::rivals::btreemap::Map>>($($argument),*),
            $case::<crate::rivals::locked::Locked<crate::rivals::tm_wheel::TmWheel>>($($argument),*),
        ]
    };
}

/// One case for each engine that sleeps and never fires before the deadline.
macro_rules! punctual {
    ($case:ident($($argument:expr),*)) => {
        vec![
            $case::<crate::rivals::tickwheel::Shards>($($argument),*),
            $case::<crate::rivals::tokio_sleep::Sleeps>($($argument),*),
            $case::<crate::rivals::futures_timer::Delays>($($argument),*),
            $case::<crate::rivals::async_io::Timers>($($argument),*),
        ]
    };
}

/// One case for each engine that runs closures.
macro_rules! closures {
    ($case:ident($($argument:expr),*)) => {
        vec![
            $case::<::tickwheel::TaskEngine>($($argument),*),
            $case::<crate::rivals::tokio::Tasks>($($argument),*),
            $case::<crate::rivals::thread_pool::Pool>($($argument),*),
        ]
    };
}

/// One case for each library whose timers are futures.
macro_rules! awaited {
    ($case:ident($($argument:expr),*)) => {
        vec![
            $case::<crate::rivals::tickwheel_sleep::Global>($($argument),*),
            $case::<crate::rivals::tickwheel_sleep::Driven>($($argument),*),
            $case::<crate::rivals::tokio_sleep::Sleeps>($($argument),*),
            $case::<crate::rivals::pingora::Sleeps>($($argument),*),
            $case::<crate::rivals::futures_timer::Delays>($($argument),*),
            $case::<crate::rivals::async_io::Timers>($($argument),*),
        ]
    };
}

pub(crate) use {awaited, closures, owners, punctual, shared, sleepers};

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use crate::rival::{Timers, UNKNOWN};
    use crate::workloads::GRACE;

    /// Cancels a third of many timers and postpones another, and checks that no timer fires
    /// before its deadline, and that each of the others has fired [`GRACE`] ticks later.
    fn fire_in_time<T: Timers>() {
        let (mut rng, mut timers) = (Rng::with_seed(30), T::new());
        let mut deadlines: Vec<u64> = (0..999).map(|_| rng.u64(1..=5_000)).collect();
        let schedule = |(&deadline, payload)| timers.schedule(deadline, payload);
        let ids: Vec<_> = deadlines.iter().zip(0..).map(schedule).collect();
        let mut kept = Vec::new();
        for (payload, id) in ids.into_iter().enumerate() {
            match payload % 3 {
                0 => kept.push(id),
                1 => {
                    deadlines[payload] += rng.u64(1..=5_000);
                    kept.push(timers.postpone(id, deadlines[payload], payload as u64));
                }
                _ => {
                    timers.cancel(id);
                    deadlines[payload] = u64::MAX;
                }
            }
        }
        let (mut fired, mut count) = (Vec::new(), 0);
        for now in 1..=10_000 + GRACE {
            timers.advance(now, &mut fired);
            count += fired.len();
            let due = |by| deadlines.iter().filter(|deadline| **deadline <= by).count();
            assert!((due(now.saturating_sub(GRACE))..=due(now)).contains(&count), "{}", T::NAME);
            for payload in fired.drain(..).filter(|payload| *payload != UNKNOWN) {
                assert!(deadlines[payload as usize] <= now, "{}", T::NAME);
            }
        }
        assert_eq!(count, kept.len());
    }

    /// Whether timers fire in the order of their deadlines, and equal ones in the order in
    /// which they were scheduled, also if some of them have cascaded.
    fn keeps_order<T: Timers>() -> bool {
        let mut timers = T::new();
        let (mut expected, mut fired) = (Vec::new(), Vec::new());
        for payload in 0..600 {
            // The later ones are filed when the deadline is near.
            timers.advance(payload * 8, &mut fired);
            let deadline = 5_000 + payload * 7 % 3;
            timers.schedule(deadline, payload);
            expected.push((deadline, payload));
        }
        expected.sort_unstable();
        timers.advance(6_000, &mut fired);
        fired.into_iter().eq(expected.into_iter().map(|(_, payload)| payload))
    }

    fn check<T: Timers>() {
        // An engine may keep an order without a promise.
        assert!(T::LESS.contains("order") || keeps_order::<T>(), "{}", T::NAME);
        fire_in_time::<T>();
    }

    /// A single test, because two engines have a clock in common.
    #[test]
    fn timers_fire_in_time_and_in_the_order_that_is_promised() {
        owners!(check());
        assert!(!keeps_order::<super::tm_wheel::TmWheel>());
        assert!(!keeps_order::<super::nexus_timer::Nexus>());
    }
}
