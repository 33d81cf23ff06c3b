//! What several tests share.

#![allow(dead_code, reason = "not every test uses all of it")]

pub(crate) mod failing;
pub(crate) mod hooked;
