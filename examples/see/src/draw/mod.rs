//! One frame: a look at an engine, drawn into a buffer of cells.

pub mod levels;
pub mod numbers;
mod panels;
pub mod pen;

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tickwheel::Time;

use crate::draw::pen::{Ink, Pen};
use crate::keys::{self, Key};
use crate::look::Look;

/// The smallest screen on which everything can be told apart.
const SMALLEST: (u16, u16) = (60, 16);

/// What the user of a viewer has chosen to see, and what the viewer says of its subject.
#[derive(Clone, Debug)]
pub struct View {
    /// The shard whose wheel is shown; all of them together if `None`.
    pub shard: Option<usize>,
    /// Whether the page of help is shown.
    pub help: bool,
    /// What the last key did.
    pub message: String,
    /// The clock of the engine, and its state.
    pub status: String,
    /// The keys of the subject.
    pub keys: &'static [Key],
    /// Whether colours are used as accents.
    pub colours: bool,
}

impl Default for View {
    fn default() -> View {
        View {
            shard: None,
            help: false,
            message: String::new(),
            status: String::new(),
            keys: &[],
            colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}

/// Draws a whole screen.
pub fn screen(look: &Look, view: &View, area: Rect, buffer: &mut Buffer) {
    let mut pen = Pen::new(buffer, area, view.colours);
    if (area.width, area.height) < SMALLEST || area.height < SMALLEST.1 {
        let needed = format!("needs {} × {} characters", SMALLEST.0, SMALLEST.1);
        return pen.text(0, 0, needed, Ink::Text);
    }
    head(look, view, &mut pen);
    match view.help {
        true => help(view, &mut pen),
        false => panels(look, view, &mut pen),
    }
    foot(view, &mut pen);
}

fn head(look: &Look, view: &View, pen: &mut Pen<'_>) {
    let name = &look.snapshot.name;
    pen.text(0, 0, name, Ink::Title);
    pen.text(name.chars().count() as u16 + 2, 0, &view.status, Ink::Text);
    let since_start = Duration::from_nanos(look.now.since(Time::START).as_nanos() as u64);
    let time = numbers::time(since_start);
    let tick = numbers::exact(look.tick.0);
    let length = numbers::duration(look.inspection.tick);
    let right = format!("{time}  tick {tick} of {length}");
    pen.text_before(pen.width(), 0, right, Ink::Text);
}

/// Draws the panels: levels above, then shards, ready lists and lateness side by side, then
/// the ledger. The levels get two fifths of the screen.
fn panels(look: &Look, view: &View, pen: &mut Pen<'_>) {
    let (width, height) = (pen.width(), pen.height());
    let levels_height = (height * 2 / 5).clamp(5, 25);
    let ledger_height = 4;
    let middle_height = height - levels_height - ledger_height - 3;
    draw_levels(look, view, &mut pen.part(0, 1, width, levels_height));
    let top = 1 + levels_height;
    let third = (width - 30) / 2;
    panels::shards(look, view.shard, &mut pen.part(0, top, 29, middle_height));
    panels::ready(look, &mut pen.part(31, top, third - 2, middle_height));
    let lateness = &look.snapshot.lateness;
    panels::lateness(
        lateness,
        &mut pen.part(30 + third, top, width - 30 - third, middle_height),
    );
    let top = top + middle_height;
    panels::ledger(look, &mut pen.part(0, top, width, 3));
    panels::rates(look, &mut pen.part(0, top + 3, width, 1));
}

fn draw_levels(look: &Look, view: &View, pen: &mut Pen<'_>) {
    let rows = levels::rows(&look.inspection, view.shard, look.tick, look.most);
    let whose = match view.shard {
        Some(shard) => format!("wheel of shard {shard}"),
        None if look.inspection.shards.len() == 1 => "wheel".to_owned(),
        None => "wheels of all shards".to_owned(),
    };
    let size = look.inspection.wheel_size;
    pen.rule(0, &format!("{whose}: level, slot, {size} slots, timers"));
    let (width, height) = (pen.width(), pen.height() - 1);
    levels::draw(&rows, &mut pen.part(0, 1, width, height));
}

fn foot(view: &View, pen: &mut Pen<'_>) {
    let height = pen.height();
    pen.text(0, height - 2, &view.message, Ink::Text);
    let keys = keys::VIEWER.iter().chain(view.keys);
    let mut x = 0;
    for key in keys {
        let (name, brief) = (key.name.chars().count(), key.brief.chars().count());
        let end = x + (name + 1 + brief) as u16;
        if end > pen.width() {
            return;
        }
        pen.text(x, height - 1, key.name, Ink::Title);
        pen.text(x + name as u16 + 1, height - 1, key.brief, Ink::Faint);
        x = end + 2;
    }
}

fn help(view: &View, pen: &mut Pen<'_>) {
    pen.rule(1, "keys");
    let keys = keys::VIEWER.iter().chain(view.keys);
    let mut y = 2;
    for key in keys {
        pen.text(1, y, key.name, Ink::Title);
        pen.text(10, y, key.help, Ink::Text);
        y += 1;
    }
    let lines = [
        "▁ to █: timers in a slot, an eighth more for each doubling. █: at least as many",
        "as were counted. ▼: the slot of now. Timers fall from level to level, and from",
        "level 0 into the ready list of their queue, where a worker takes them.",
    ];
    for line in lines {
        y += 1;
        pen.text(1, y, line, Ink::Faint);
    }
}
