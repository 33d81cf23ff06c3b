//! The transaction in which a handler works.

use std::ops::{Deref, DerefMut};

/// The transaction in which a handler works: one of the crate `tokio-postgres`, and jobs in it.
#[allow(missing_debug_implementations, reason = "that of tokio-postgres has none")]
pub struct Transaction<'a> {
    pub(super) inner: tokio_postgres::Transaction<'a>,
    pub(super) schema: &'a str,
}

impl<'a> Deref for Transaction<'a> {
    type Target = tokio_postgres::Transaction<'a>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}
