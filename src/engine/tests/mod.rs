//! Tests of the rooms below that need a whole engine, and look into it.

mod drain;
mod expire;
mod leftovers;
mod names;
mod queue;
mod shrink;
mod shutdown;
