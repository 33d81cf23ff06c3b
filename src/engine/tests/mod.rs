//! Tests of the modules below that need a whole engine and its internals.

mod cancel_all;
mod drain;
mod expire;
mod inspect;
mod leftovers;
mod names;
mod queue;
mod shrink;
mod shutdown;
mod snapshot;
