//! What workers do with a shard's firings: how late they take them, and how long they
//! hold them.

use crate::stats::Histogram;

/// The work on a shard's firings.
#[derive(Default)]
pub(crate) struct Work {
    /// The number of lent firings.
    pub(crate) held: usize,
    measured: Option<Box<Measured>>,
}

/// Times that are kept only if takes are measured.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) lateness_at_start: Histogram,
    pub(crate) durations: Histogram,
}

impl Work {
    pub(crate) fn measured(&self) -> Option<&Measured> {
        self.measured.as_deref()
    }

    pub(super) fn measure(&mut self) -> &mut Measured {
        self.measured.get_or_insert_default()
    }
}
