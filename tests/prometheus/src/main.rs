//! Prints what `promtool` checks: an exposition, or the dashboard's queries as rules.

use std::env;

use tickwheel_prometheus::exposition::{rendered, snapshot};
use tickwheel_prometheus::queries::{as_rules, dashboard, of_panels};

fn main() {
    match env::args().nth(1).as_deref() {
        Some("exposition") => print!("{}", rendered(&snapshot(), false)),
        Some("queries") => print!("{}", as_rules(&of_panels(&dashboard()))),
        _ => panic!("give `exposition` or `queries`"),
    }
}
