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
            drop(engine.cancel(id).into_payload());
        }
    }
}

/// A last firing drops its payload, which cancels another timer of the same shard,
/// while another thread cancels that timer too.
#[test]
fn destructor_cancels_a_timer() {
    model(|| {
        let small = Engine::builder().wheel_size(4).shards(1).queues(1);
        let (engine, clock) = small.start_virtual().unwrap();
        let id = engine.schedule(Timer::at(tick(3), Canceller(None))).unwrap();
        let payload = Canceller(Some((engine.clone(), id)));
        let last = Timer::every(Duration::from_millis(1), payload).times(1);
        engine.schedule(last).unwrap();
        clock.advance_to(tick(1));
        let firing = engine.queue(0).try_recv().unwrap();
        let worker = thread::spawn(move || drop(firing));
        drop(engine.cancel(id).into_payload());
        worker.join().unwrap();
        assert_all_ended(engine.ledger());
        assert_eq!(engine.ledger().cancelled, 1);
    });
}
