//! The levels of a wheel: a row for each, and in it a cell for each slot.
//!
//! The coarsest level stands at the top, so timers fall from row to row, and from the last
//! row into the ready lists.

use std::time::Duration;

use tickwheel::{InspectedShard, Inspection, Tick};

use crate::draw::numbers::{compact, duration};
use crate::draw::pen::{Ink, Pen};

/// The columns before the slots, and those after them.
const BEFORE: u16 = 10;
const AFTER: u16 = 6;

/// A slot.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Slot {
    /// The number of its timers.
    pub timers: usize,
    /// Whether it may have more.
    pub or_more: bool,
    /// The names of its timers, where there is room for them.
    pub names: Option<String>,
    /// Whether it stands out.
    pub is_new: bool,
}

impl Slot {
    fn add(&mut self, other: &Slot) {
        self.timers += other.timers;
        self.or_more |= other.or_more;
    }

    /// Returns the block of one line of a bar, with `below` lines of the bar below it and
    /// `lines` lines in all. The bar grows by an eighth of each line for each doubling.
    fn block(&self, below: u16, lines: u16) -> char {
        const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let doublings = match (self.timers, self.or_more) {
            (0, _) => 0,
            (_, true) => 8,
            (timers, false) => (timers.ilog2() as u16 + 1).min(8),
        };
        let eighths = (doublings * lines).saturating_sub(below * 8);
        BLOCKS[usize::from(eighths.min(8))]
    }

    /// Returns the names or the number of the timers, for a wide cell.
    fn label(&self) -> String {
        match (&self.names, self.timers) {
            (Some(names), _) => names.clone(),
            (None, 0) => "·".to_owned(),
            (None, timers) => compact(timers as u64) + if self.or_more { "+" } else { "" },
        }
    }
}

/// A level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The duration of a slot.
    pub slot: String,
    /// The slot of the current tick.
    pub hand: Option<usize>,
    /// The slots.
    pub slots: Vec<Slot>,
}

/// Adds up the levels of all shards, or takes those of one.
#[must_use]
pub fn rows(inspection: &Inspection, shard: Option<usize>, tick: Tick, most: usize) -> Vec<Row> {
    let shards = inspection.shards.iter().enumerate();
    let chosen = shards.filter(|&(index, _)| shard.is_none_or(|shard| shard == index));
    let mut rows = Vec::new();
    for (_, shard) in chosen {
        add(&mut rows, inspection, shard, tick, most);
    }
    rows
}

fn add(
    rows: &mut Vec<Row>,
    inspection: &Inspection,
    shard: &InspectedShard,
    tick: Tick,
    most: usize,
) {
    for (index, level) in shard.levels.iter().enumerate() {
        if index == rows.len() {
            rows.push(Row {
                slot: duration(times(inspection.tick, level.slot_ticks)),
                hand: Some((tick.0 / level.slot_ticks % inspection.wheel_size as u64) as usize),
                slots: vec![Slot::default(); inspection.wheel_size],
            });
        }
        for (sum, &timers) in rows[index].slots.iter_mut().zip(&level.timers) {
            sum.add(&Slot {
                timers,
                or_more: timers >= most,
                ..Slot::default()
            });
        }
    }
}

fn times(tick: Duration, ticks: u64) -> Duration {
    let nanos = tick.as_nanos().saturating_mul(u128::from(ticks));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Draws rows, the last one lowest, each as high as there is room. If there are more than
/// fit, leaves out the coarsest.
pub fn draw(rows: &[Row], pen: &mut Pen<'_>) {
    let lines = (pen.height() / rows.len().max(1) as u16).clamp(1, 4);
    let fit = usize::from(pen.height() / lines);
    for (level, row) in rows.iter().take(fit).enumerate() {
        let top = pen.height() - lines * (level as u16 + 1);
        draw_row(level, row, &mut pen.part(0, top, u16::MAX, lines));
    }
}

fn draw_row(level: usize, row: &Row, pen: &mut Pen<'_>) {
    let room = pen.width().saturating_sub(BEFORE + AFTER);
    if room == 0 {
        return;
    }
    let y = pen.height() - 1;
    pen.text(0, y, level.to_string(), Ink::Title);
    pen.text_before(BEFORE - 1, y, &row.slot, Ink::Text);
    let lines = pen.height();
    let width = draw_slots(row, &mut pen.part(BEFORE, 0, room, lines));
    let mut all = Slot::default();
    row.slots.iter().for_each(|slot| all.add(slot));
    if all.timers > 0 {
        pen.text(BEFORE + width + 1, y, all.label(), Ink::Text);
    }
}

/// Draws the slots, each as wide as there is room, or several of them in one column.
/// Returns the number of columns that they take.
fn draw_slots(row: &Row, pen: &mut Pen<'_>) -> u16 {
    let (slots, room) = (row.slots.len(), usize::from(pen.width()));
    match room / slots {
        0 => draw_merged(row, slots.div_ceil(room), pen),
        width @ 1..3 => draw_narrow(row, width as u16, pen),
        width => draw_wide(row, width.min(8) as u16, pen),
    }
}

fn draw_merged(row: &Row, slots_per_column: usize, pen: &mut Pen<'_>) -> u16 {
    let slots = row.slots.chunks(slots_per_column);
    let merged = Row {
        slot: String::new(),
        hand: row.hand.map(|hand| hand / slots_per_column),
        slots: slots.map(merge).collect(),
    };
    draw_narrow(&merged, 1, pen)
}

fn merge(slots: &[Slot]) -> Slot {
    let mut sum = Slot::default();
    slots.iter().for_each(|slot| sum.add(slot));
    sum
}

fn draw_narrow(row: &Row, width: u16, pen: &mut Pen<'_>) -> u16 {
    let lines = pen.height();
    for (index, slot) in row.slots.iter().enumerate() {
        let x = index as u16 * width;
        for line in 0..lines {
            let block = slot.block(line, lines);
            pen.text(x, lines - 1 - line, block.to_string(), Ink::Timers);
        }
        match (row.hand == Some(index), slot.timers) {
            (true, _) => pen.text(x, lines - 1, "▼", Ink::Hand),
            (false, 0) => pen.text(x, lines - 1, "·", Ink::Faint),
            (false, _) => {}
        }
    }
    row.slots.len() as u16 * width
}

/// Draws cells with numbers or names in them, and the hand at their left.
fn draw_wide(row: &Row, width: u16, pen: &mut Pen<'_>) -> u16 {
    let y = pen.height() - 1;
    for (index, slot) in row.slots.iter().enumerate() {
        let x = index as u16 * width;
        pen.text(x, y, "│", Ink::Faint);
        let is_hand = row.hand == Some(index);
        if is_hand {
            pen.text(x + 1, y, "▼", Ink::Hand);
        }
        let ink = match (slot.timers, slot.is_new) {
            (0, _) => Ink::Faint,
            (_, true) => Ink::Ready,
            (_, false) => Ink::Timers,
        };
        let label = slot.label();
        let long = label.chars().count() as u16;
        let room = width - 1 - u16::from(is_hand && slot.timers > 0);
        let left = x + width - room + room.saturating_sub(long) / 2;
        if !(is_hand && slot.timers == 0) {
            pen.text(left, y, label, ink);
        }
    }
    let end = row.slots.len() as u16 * width;
    pen.text(end, y, "│", Ink::Faint);
    end + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(timers: usize, or_more: bool) -> Slot {
        Slot {
            timers,
            or_more,
            ..Slot::default()
        }
    }

    #[test]
    fn a_bar_grows_with_each_doubling() {
        let block = |timers| slot(timers, false).block(0, 1);
        let blocks = [0, 1, 2, 3, 4, 127, 128, 9_999].map(block);
        assert_eq!(blocks, [' ', '▁', '▂', '▂', '▃', '▇', '█', '█']);
        assert_eq!(
            (slot(3, true).block(0, 1), slot(3, true).label()),
            ('█', "3+".to_owned())
        );
    }

    #[test]
    fn a_high_bar_fills_its_lines_from_below() {
        let lines = |timers| [0, 1].map(|below| slot(timers, false).block(below, 2));
        let bars = [0, 1, 8, 16, 999].map(lines);
        assert_eq!(
            bars,
            [[' ', ' '], ['▂', ' '], ['█', ' '], ['█', '▂'], ['█', '█']]
        );
    }
}
