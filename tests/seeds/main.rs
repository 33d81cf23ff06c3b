#![cfg(not(loom))]
mod workflow;
