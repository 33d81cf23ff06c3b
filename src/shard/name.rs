//! What a timer knows of its own name.

// Not the one of `crate::sync`: no thread waits for another through a name.
use std::sync::Arc;

/// Where a timer stands in its bucket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) hash: u64,
    /// The number of timers that were created before this one.
    pub(crate) age: u64,
}

/// A timer's own knowledge of its name.
#[derive(Clone)]
pub(crate) struct NameTag {
    pub(crate) name: Arc<str>,
    pub(crate) place: Place,
}

impl NameTag {
    pub(crate) fn into_name(self) -> Arc<str> {
        self.name
    }
}
