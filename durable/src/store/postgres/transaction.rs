//! The transaction in which a handler works.

use std::ops::{Deref, DerefMut};

/// The transaction in which a handler works: one of the crate `postgres`, and jobs in it.
#[allow(missing_debug_implementations, reason = "that of postgres has none")]
pub struct Transaction<'a> {
    pub(super) inner: ::postgres::Transaction<'a>,
    pub(super) schema: &'a str,
}

impl<'a> Deref for Transaction<'a> {
    type Target = ::postgres::Transaction<'a>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}
