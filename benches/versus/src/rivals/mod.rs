//! The engines that take part, each in a file of its own.

pub mod binary_heap;
pub mod btreemap;
pub mod floor;
pub mod futures;
pub mod hash_wheel;
pub mod locked_wheel;
pub mod nexus_timer;
pub mod promises;
pub mod tickwheel_engine;
pub mod tickwheel_wheel;
pub mod timer_queue;
pub mod tm_wheel;
pub mod tokio;
pub mod tokio_util;

/// One case for each engine with one owner.
macro_rules! owners {
    ($case:ident($($argument:expr),*)) => {
        vec![
            $case::<crate::rivals::tickwheel_wheel::BareWheel>($($argument),*),
            $case::<crate::rivals::tokio::PausedSleeps>($($argument),*),
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
            $case::<crate::rivals::tickwheel_engine::Shards>($($argument),*),
            $case::<crate::rivals::tokio::Sleeps>($($argument),*),
            $case::<crate::rivals::hash_wheel::TimerThread>($($argument),*),
            $case::<crate::rivals::btreemap::LockedMap>($($argument),*),
            $case::<crate::rivals::floor::WheelPerThread>($($argument),*),
        ]
    };
}

/// One case for each engine that sleeps by itself.
macro_rules! sleepers {
    ($case:ident($($argument:expr),*)) => {
        vec![
            $case::<crate::rivals::tickwheel_engine::Shards>($($argument),*),
            $case::<crate::rivals::tokio::Sleeps>($($argument),*),
            $case::<crate::rivals::hash_wheel::TimerThread>($($argument),*),
            $case::<crate::rivals::floor::TimerFd>($($argument),*),
        ]
    };
}

/// One case for each library whose timers are futures.
macro_rules! awaited {
    ($case:ident($($argument:expr),*)) => {
        vec![
            $case::<crate::rivals::futures::tickwheel::Global>($($argument),*),
            $case::<crate::rivals::futures::tickwheel_driven::Driven>($($argument),*),
            $case::<crate::rivals::futures::tokio::Classic>($($argument),*),
            #[cfg(tokio_unstable)]
            $case::<crate::rivals::futures::tokio_alt::Alternative>($($argument),*),
            $case::<crate::rivals::futures::futures_timer::Delays>($($argument),*),
            $case::<crate::rivals::futures::async_io::Timers>($($argument),*),
            $case::<crate::rivals::futures::floor::NoTimers>($($argument),*),
        ]
    };
}

pub(crate) use {awaited, owners, shared, sleepers};
