//! Threads that come, submit a little and go: shards lose their threads.

use std::thread;

use tickwheel::Engine;

use crate::actor::{Actor, Scene};
use crate::record::Token;

const VISITS: u64 = 60;
const STEPS: u64 = 20;
/// Visitors have other numbers than the threads that stay.
const FIRST: u64 = 1_000;

pub fn come_and_go(scene: Scene<'_>, engine: &Engine<Token>) {
    for visit in 0..VISITS {
        let engine = engine.clone();
        thread::scope(|threads| {
            threads.spawn(move || Actor::new(scene, engine, FIRST + visit).act(STEPS));
        });
    }
}
