//! Wheels with named timers: filing, cascading, postponing.

use std::time::Duration;

use tickwheel::wheel::Geometry;
use tickwheel::{Tick, TimerId, Wheel};

use crate::draw::levels::{Row, Slot};
use crate::draw::numbers::duration;
use crate::pictures::Picture;
use crate::pictures::sheet::Sheet;

/// The timers of the pictures, by name and deadline.
pub(super) const TIMERS: [(char, u64); 6] = [
    ('a', 5),
    ('b', 19),
    ('c', 21),
    ('d', 23),
    ('e', 49),
    ('f', 92),
];

/// A wheel, and what it looked like in the step before.
struct Stage {
    wheel: Wheel<char>,
    before: Vec<Row>,
}

impl Stage {
    fn new(geometry: Geometry) -> Stage {
        Stage {
            wheel: Wheel::with_geometry(Tick(0), geometry),
            before: Vec::new(),
        }
    }

    fn schedule(&mut self, timers: &[(char, u64)]) -> Vec<TimerId> {
        let timers = timers.iter();
        let schedule = |&(name, deadline)| self.wheel.schedule_at(Tick(deadline), name);
        timers.map(schedule).collect()
    }

    /// Moves to a tick, and returns the names of the timers that fired.
    fn advance(&mut self, to: u64) -> String {
        let mut fired = String::new();
        let fire = |_: &mut Wheel<char>, expired: tickwheel::wheel::Expired<char>| {
            fired.push(expired.payload);
        };
        let _ = self.wheel.advance(Tick(to), usize::MAX, fire);
        fired
    }

    /// Draws the wheel. Timers that have come to a slot since the last step stand out.
    fn draw(&mut self, sheet: &mut Sheet, head: &str, text: &str) {
        sheet.caption(head, text);
        let rows = self.rows();
        let mut shown = rows.clone();
        for (row, before) in shown.iter_mut().zip(&self.before) {
            for (slot, before) in row.slots.iter_mut().zip(&before.slots) {
                slot.is_new = slot.timers > 0 && slot.names != before.names;
            }
        }
        sheet.wheel(&shown);
        sheet.gap();
        self.before = rows;
    }

    fn rows(&self) -> Vec<Row> {
        let levels = self.wheel.levels(1).into_iter();
        let mut rows: Vec<Row> = levels
            .map(|level| Row {
                slot: duration(Duration::from_millis(level.slot_ticks)),
                hand: Some(level.hand),
                slots: vec![Slot::default(); level.timers.len()],
            })
            .collect();
        for slot in self.wheel.slots() {
            rows[slot.level].slots[slot.index] = self.named(&slot.timers);
        }
        rows
    }

    fn named(&self, timers: &[TimerId]) -> Slot {
        let mut names: Vec<char> = self
            .wheel
            .iter()
            .filter(|(id, ..)| timers.contains(id))
            .map(|(_, _, &name)| name)
            .collect();
        names.sort_unstable();
        let names: Vec<_> = names.into_iter().map(String::from).collect();
        Slot {
            timers: timers.len(),
            names: Some(names.join(" ")),
            ..Slot::default()
        }
    }
}

fn eight() -> Geometry {
    Geometry::new(8).expect("eight slots are allowed")
}

pub(super) fn one_wheel() -> Picture {
    let flat = eight().max_levels(1).expect("one level is allowed");
    let mut stage = Stage::new(flat);
    let mut sheet = Sheet::new();
    stage.schedule(&[('a', 1), ('b', 3), ('c', 3), ('d', 6)]);
    stage.draw(
        &mut sheet,
        "tick 0",
        "a is due at 1, b and c at 3, d at 6: each in the slot of its tick",
    );
    stage.advance(1);
    stage.schedule(&[('e', 8)]);
    stage.draw(
        &mut sheet,
        "tick 1",
        "a has fired; e is due at 8, and takes slot 0 of the next rotation",
    );
    stage.advance(3);
    stage.draw(&mut sheet, "tick 3", "b and c fire together");
    Picture {
        name: "one-wheel",
        title: "One wheel of eight slots",
        description: "A row of eight slots with a hand. Each timer stands in the slot of its tick. \
            The hand moves a slot a tick and empties the slot that it reaches.",
        buffer: sheet.finish(),
    }
}

pub(super) fn cascade() -> Picture {
    let mut stage = Stage::new(eight());
    let mut sheet = Sheet::new();
    stage.schedule(&TIMERS);
    let octal = TIMERS.map(|(name, due)| format!("{name} {due:03o}"));
    sheet.caption("due, in base 8", &octal.join("    "));
    sheet.gap();
    stage.draw(
        &mut sheet,
        "tick 0 = 000",
        "the first digit that differs from now chooses level and slot",
    );
    stage.advance(16);
    stage.draw(
        &mut sheet,
        "tick 16 = 020",
        "slot 2 of level 1: b, c and d cascade, each to its last digit",
    );
    stage.advance(19);
    stage.draw(&mut sheet, "tick 19 = 023", "b fires");
    stage.advance(64);
    stage.draw(
        &mut sheet,
        "tick 64 = 100",
        "slot 1 of level 2: f cascades to its middle digit, 3",
    );
    stage.advance(88);
    stage.draw(
        &mut sheet,
        "tick 88 = 130",
        "slot 3 of level 1: f cascades to its last digit, 4",
    );
    let fired = stage.advance(92);
    let text = format!("{fired} fires, after two cascades");
    stage.draw(&mut sheet, "tick 92 = 134", &text);
    Picture {
        name: "cascade",
        title: "A cascade, step by step",
        description: "Three levels of eight slots at six moments. When the hand of a level reaches an \
            occupied slot, the timers of that slot move to the levels below, each to the slot \
            of its next digit, until they fire from level 0.",
        buffer: sheet.finish(),
    }
}

pub(super) fn postponing() -> Picture {
    let mut stage = Stage::new(eight());
    let mut sheet = Sheet::new();
    let ids = stage.schedule(&[('a', 19), ('b', 21)]);
    stage.draw(&mut sheet, "tick 0", "a is due at 19, b at 21");
    let moved = stage.wheel.reschedule(ids[0], Tick(92));
    assert!(moved, "the timer is live");
    stage.draw(
        &mut sheet,
        "tick 0",
        "a is postponed to 92: its entry is changed, and no list",
    );
    stage.advance(16);
    stage.draw(
        &mut sheet,
        "tick 16",
        "the slot has its turn: a goes where it now belongs, b cascades",
    );
    Picture {
        name: "postponing",
        title: "Postponing a timer",
        description: "A timer that is postponed stays in its old slot. When that slot has its turn, the \
            timer moves to the slot of its new deadline.",
        buffer: sheet.finish(),
    }
}
