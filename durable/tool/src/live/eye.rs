//! Opening a store for looks: a file for each of them, so that a service can open it in between;
//! a database until it fails.

use super::seen::Seen;
use crate::failure::Failure;
use crate::open::{Opened, Place, open};

pub(super) struct Eye {
    place: Place,
    kept: Option<Opened>,
}

impl Eye {
    pub(super) fn new(place: Place) -> Eye {
        Eye { place, kept: None }
    }

    /// Looks at the store. After a failure, the next look opens it again.
    pub(super) fn look(&mut self) -> Result<Seen, Failure> {
        let jobs = match self.kept.take() {
            Some(jobs) => jobs,
            None => open(&self.place)?,
        };
        let seen = Seen::of(&jobs, jobs.now())?;
        self.kept = self.place.is_shared().then_some(jobs);
        Ok(seen)
    }
}
