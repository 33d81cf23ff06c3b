//! What timers cost in bytes.

use tickwheel::{Engine, Tick, Time, Timer, Wheel};

use crate::alone::alone;
use crate::counting;

/// How many bytes an engine takes with seven timers, one on each of several
/// levels.
fn bytes_of_seven<T: Copy + Send + 'static>(payload: T) -> i64 {
    let before = counting::bytes();
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    for n in 0..7 {
        let time = Time::from_millis(1 << (4 * n));
        engine.schedule(Timer::at(time, payload)).unwrap();
    }
    counting::bytes() - before
}

#[test]
fn a_large_payload_costs_its_size_and_no_list_head_more() {
    alone(
        "memory::a_large_payload_costs_its_size_and_no_list_head_more",
        || {
            let payload = [7u8; 4_096];
            let small = bytes_of_seven(7u64);
            let large = bytes_of_seven(payload);
            let payloads = 7 * size_of_val(&payload) as i64;
            assert!(large <= small + payloads + 1_024, "{large} and {small}");
        },
    );
}

#[test]
fn growing_moves_no_payload_for_its_alignment() {
    #[repr(align(64))]
    struct Wide(#[allow(dead_code)] u64);
    alone("memory::growing_moves_no_payload_for_its_alignment", || {
        let mut wheel = Wheel::new(64);
        for n in 0..100_000 {
            wheel.schedule_at(Tick(n), Wide(n));
        }
        let largest = counting::largest_aligned();
        // The test harness has some that are larger.
        assert!(largest <= 64 * size_of::<Wide>(), "{largest} bytes at once");
    });
}
