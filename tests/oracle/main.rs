//! The engine beside a slow oracle. Random scripts make every call of the
//! engine, on a virtual clock. After every step the visible state of the engine
//! is compared with a sorted map that is simple enough to be trusted.
//!
//! A failure shrinks to a script of a few lines, which is printed with the
//! engine's settings. `PROPTEST_CASES` sets the number of scripts.

#![cfg(not(loom))]

mod ending;
mod forge;
mod keyed;
mod oracle;
mod pair;
mod script;
mod setup;

#[path = "../support/scripts.rs"]
mod scripts;

use proptest::option::weighted;
use proptest::prelude::*;

use pair::Pair;
use script::script;
use scripts::cases;
use setup::setup;

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn the_engine_does_what_a_sorted_map_does(
        setup in setup(),
        script in script(100),
        drain in weighted(0.25, 0..9_000_000u64),
    ) {
        let mut pair = Pair::new(&setup);
        pair.check();
        script.0.iter().for_each(|op| pair.run(op));
        pair.fill();
        pair.end(drain);
    }
}
