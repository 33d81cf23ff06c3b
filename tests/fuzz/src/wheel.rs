//! The wheel beside its oracle, led by libFuzzer: any bytes are a script, and
//! whatever the two disagree about is a crash.
//!
//! The oracle is that of the property tests. From out here it cannot see the
//! wheel's lists and bitmaps; what can be seen of them is `Wheel::slots`.

#![no_main]

#[path = "../../oracle/wheel/pair.rs"]
mod pair;
mod script;

use libfuzzer_sys::fuzz_target;
use tickwheel::wheel::{Advance, Expired, Geometry};
use tickwheel::{Tick, TimerId, Wheel};

use pair::Pair;
use script::Script;

/// Each slot that is shown holds something, and nothing that is due before it.
fn assert_consistent(wheel: &Wheel<u64>) {
    let next = wheel.next_wakeup();
    for slot in wheel.slots() {
        assert!(!slot.timers.is_empty());
        assert!(next.is_some_and(|next| next <= slot.start.max(wheel.now())));
        for id in slot.timers {
            let deadline = wheel.deadline(id);
            assert!(deadline.is_some_and(|deadline| deadline >= slot.start));
        }
    }
}

/// In part only an engine does it.
fn shrink(wheel: &mut Wheel<u64>, _cells: u8) {
    wheel.shrink();
}

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script::new(bytes);
    let geometry = script.geometry();
    let start = script.start(geometry.size());
    let pop_the_rest = script.flag();
    let mut pair = Pair::new(start, geometry);
    while !script.is_over() {
        pair.run(&script.op());
    }
    if pop_the_rest { pair.pop_the_rest() } else { pair.take_the_rest() }
});
