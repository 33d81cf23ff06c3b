//! The structures that are no hierarchical wheels: a sorted list, a heap, a hashed wheel
//! with rounds.

use crate::draw::levels::{Row, Slot};
use crate::draw::pen::Ink;
use crate::pictures::Picture;
use crate::pictures::sheet::Sheet;
use crate::pictures::wheels::TIMERS;

pub(super) fn list_and_heap() -> Picture {
    let mut sheet = Sheet::new();
    sheet.caption("sorted list", "a timer due at 20 walks past 5 and 19");
    let mut pen = sheet.lines(3);
    for (place, (_, due)) in TIMERS.into_iter().enumerate() {
        let x = 4 + 11 * place as u16;
        pen.text(x, 0, "┌────┐", Ink::Faint);
        pen.text(x, 1, "│    │", Ink::Faint);
        pen.text(x + 2, 1, format!("{due:>2}"), Ink::Timers);
        pen.text(x, 2, "└────┘", Ink::Faint);
        if place < 5 {
            pen.text(x + 6, 1, "────▶", Ink::Faint);
        }
    }
    sheet.gap();
    sheet.caption(
        "heap",
        "the same timer comes in below 21, and rises above it",
    );
    let mut pen = sheet.lines(5);
    let rules = [
        (26, 1, "┌──────────┴──────────┐"),
        (20, 3, "┌─────┴─────┐"),
        (42, 3, "┌─────┘"),
    ];
    rules
        .into_iter()
        .for_each(|(x, y, rule)| pen.text(x, y, rule, Ink::Faint));
    let numbers = [
        (37, 0, "5"),
        (25, 2, "19"),
        (47, 2, "21"),
        (19, 4, "49"),
        (31, 4, "92"),
        (41, 4, "23"),
    ];
    numbers
        .into_iter()
        .for_each(|(x, y, number)| pen.text(x, y, number, Ink::Timers));
    Picture {
        name: "list-and-heap",
        title: "A sorted list and a heap of deadlines",
        description: "Six deadlines in a list in their order, and the same deadlines in a binary tree \
            whose parents are earlier than their children.",
        buffer: sheet.finish(),
    }
}

const SLOTS: u64 = 8;

/// Returns a hashed wheel: each timer stands in the slot of its last digit, with the number
/// of rotations that it still has to wait.
fn hashed(now: u64) -> Row {
    let mut slots = vec![Slot::default(); SLOTS as usize];
    for (name, due) in TIMERS.into_iter().filter(|&(_, due)| due > now) {
        let slot = &mut slots[(due % SLOTS) as usize];
        let rounds = (due - now - 1) / SLOTS;
        let names = slot.names.take().map_or(String::new(), |names| names + " ");
        slot.names = Some(format!("{names}{name}{rounds}"));
        slot.timers += 1;
    }
    Row {
        slot: "1 ms".to_owned(),
        hand: Some((now % SLOTS) as usize),
        slots,
    }
}

pub(super) fn rounds() -> Picture {
    let mut sheet = Sheet::new();
    let steps = [
        (0, "a 5, b 19, c 21, d 23, e 49, f 92: slot and rounds left"),
        (
            5,
            "a fires; c is in the same slot, and has one round less to wait",
        ),
        (13, "c is visited again, a last time in vain"),
    ];
    for (now, text) in steps {
        sheet.caption(&format!("tick {now}"), text);
        sheet.wheel(&[hashed(now)]);
        sheet.gap();
    }
    Picture {
        name: "rounds",
        title: "A hashed wheel with rounds",
        description: "One row of eight slots. A timer stands in the slot of its deadline modulo eight, \
            with the number of whole rotations that it still has to wait.",
        buffer: sheet.finish(),
    }
}
