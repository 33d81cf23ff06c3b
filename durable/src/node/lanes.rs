//! Kinds by what their jobs wait for.
//!
//! Jobs of blocking handlers wait for workers, asynchronous ones for nothing, and those of a kind
//! with a limit for each other. So that none of these fills the window of the others, each has one.

use crate::store::Kind;

/// Kinds that share a window.
pub(crate) struct Lane {
    pub(crate) kinds: Vec<String>,
    /// How many of its jobs may run at a time, on this node and for all that it knows.
    pub(crate) most: usize,
    pub(crate) needs_workers: bool,
}

/// The kinds of a node, and the lane of each.
#[derive(Default)]
pub(crate) struct Lanes {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) lanes: Vec<Lane>,
    of: Vec<usize>,
}

impl Lanes {
    /// Adds a kind, of which `here` may run at a time on this node.
    pub(crate) fn add(&mut self, kind: Kind, here: Option<usize>, needs_workers: bool) {
        let limit = here.into_iter().chain(kind.most).min();
        let is_shared =
            |lane: &Lane| lane.most == usize::MAX && lane.needs_workers == needs_workers;
        let found = self.lanes.iter().position(is_shared);
        let lane = found.filter(|_| limit.is_none()).unwrap_or(self.lanes.len());
        if lane == self.lanes.len() {
            self.lanes.push(Lane {
                kinds: Vec::new(),
                most: limit.unwrap_or(usize::MAX),
                needs_workers,
            });
        }
        self.lanes[lane].kinds.push(kind.name.clone());
        self.kinds.push(kind);
        self.of.push(lane);
    }

    /// Returns the lane of the kind with this place, if there is one.
    pub(crate) fn of(&self, kind: usize) -> Option<usize> {
        self.of.get(kind).copied()
    }
}
