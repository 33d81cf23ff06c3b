//! In place of a timer to sleep on, on systems where the ticker sleeps on a condition
//! variable.
//!
//! macOS and the BSDs have timers in kqueue. The crate uses none of them, because it was
//! never run there: a condition variable is right without a system call of one's own.

use std::io;

use crate::clock::system::SystemClock;
use crate::timeline::Time;

pub(crate) enum NoTimer {}

impl NoTimer {
    pub(crate) const NAME: &str = "none";

    pub(crate) fn for_ticker(_: SystemClock) -> io::Result<Option<NoTimer>> {
        Ok(None)
    }

    pub(crate) fn for_caller(_: SystemClock) -> io::Result<Option<NoTimer>> {
        Ok(None)
    }

    pub(crate) fn set(&self, _: Option<Time>) {
        match *self {}
    }

    pub(crate) fn wait(&self) {
        match *self {}
    }
}
