//! What each system that tickwheel learned from does, as tests: one file per system, numbered as in its description.

#![cfg(not(loom))]
mod reactor;
mod workflow;
