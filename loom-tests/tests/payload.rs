//! Payloads whose destructors call the engine.

#![cfg(loom)]

use loom::thread;
use std::time::Duration;
use tickwheel::{Engine, Timer, TimerId};
use tickwheel_loom_tests::{assert_all_ended, model, tick};

/// Cancels a timer when it is dropped.
struct Canceller(Option<(Engine<Canceller>, TimerId)>);

impl Drop for Canceller {
    fn drop(&mut self) {
        if let Some((engine, id)) = self.0.take() {
            drop(engine.cancel(id).payload());
        }
    }
}

/// A firing gives back its payload for the last time, which cancels a timer of
/// the same shard, while somebody else cancels that too.
#[test]
fn cancels_when_it_is_dropped() {
    model(|| {
        let small = Engine::builder().wheel_size(4).shards(1).queues(1);
        let (engine, clock) = small.start_virtual().unwrap();
        let id = engine
            .schedule(Timer::at(tick(3), Canceller(None)))
            .unwrap();
        let payload = Canceller(Some((engine.clone(), id)));
        let last = Timer::every(Duration::from_millis(1), payload).times(1);
        engine.schedule(last).unwrap();
        clock.advance_to(tick(1));
        let firing = engine.queue(0).try_recv().unwrap();
        let worker = thread::spawn(move || drop(firing));
        drop(engine.cancel(id).payload());
        worker.join().unwrap();
        assert_all_ended(engine.ledger());
        assert_eq!(engine.ledger().cancelled, 1);
    });
}
