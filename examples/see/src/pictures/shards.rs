//! Threads, shards, ticker, queues and workers.

use std::time::Duration;

use crate::draw::levels;
use crate::draw::numbers::duration;
use crate::draw::pen::{Ink, Pen};
use crate::look::Look;
use crate::pictures::Picture;
use crate::pictures::sheet::Sheet;
use crate::playground::{Playground, Settings};
use crate::viewer::Subject;

/// The columns of the boxes around shards, and those of the ways to the workers.
const BOX: u16 = 13;
const BOX_WIDTH: u16 = 37;
const QUEUE: [u16; 2] = [63, 71];

/// Returns an engine with timers in four shards, some of them expired.
fn engine() -> Playground {
    let settings = Settings {
        wheel_size: 16,
        rate: 4_000.0,
        cancelled: 0.5,
        longest: Duration::from_secs(4),
        ..Settings::default()
    };
    let mut playground = Playground::start(settings).expect("an engine with these settings starts");
    playground.press('w');
    for _ in 0..9 {
        playground.pass(Duration::from_millis(25));
    }
    playground
}

fn frame(pen: &mut Pen<'_>, x: u16, height: u16, width: u16, title: &str) {
    let rule = "─".repeat(usize::from(width) - 2);
    pen.text(x, 0, format!("┌{rule}┐"), Ink::Faint);
    for y in 1..height - 1 {
        pen.text(x, y, "│", Ink::Faint);
        pen.text(x + width - 1, y, "│", Ink::Faint);
    }
    pen.text(x, height - 1, format!("└{rule}┘"), Ink::Faint);
    pen.text(x + 2, 0, format!(" {title} "), Ink::Title);
}

/// Draws a shard: its wheel, and the ways from its ready lists to the workers.
fn draw_shard(look: &Look, index: usize, pen: &mut Pen<'_>) {
    frame(pen, BOX, 5, BOX_WIDTH, &format!("shard {index}"));
    pen.text(0, 2, format!("thread {index}"), Ink::Text);
    pen.text(9, 2, "───▶", Ink::Faint);
    let rows = levels::rows(&look.inspection, Some(index), look.tick, look.most);
    let rows = &rows[..rows.len().min(3)];
    levels::draw(rows, &mut pen.part(BOX + 2, 1, BOX_WIDTH - 3, 3));
    for x in QUEUE {
        for y in 0..5 {
            pen.text(x, y, "│", Ink::Faint);
        }
    }
    for (queue, timers) in look.inspection.shards[index].queued.iter().enumerate() {
        let y = 1 + 2 * queue as u16;
        let from = BOX + BOX_WIDTH;
        let way = "─".repeat(usize::from(QUEUE[queue] - from));
        pen.text(from - 1, y, format!("├{way}┤"), Ink::Faint);
        if queue == 1 {
            pen.text(QUEUE[0], y, "┼", Ink::Faint);
        }
        pen.text(from + 2, y, format!(" {timers} ready "), Ink::Ready);
    }
}

fn draw_ticker(look: &Look, pen: &mut Pen<'_>) {
    frame(pen, BOX, 4, BOX_WIDTH, "ticker");
    let shards = look.inspection.shards.iter();
    let next = shards.filter_map(|shard| shard.next_wakeup).min();
    let ticks = next.map_or(0, |next| next.since(look.tick));
    let left = duration(look.inspection.tick * ticks as u32);
    pen.text(
        BOX + 2,
        1,
        format!("sleeps {left}, up to the next visit,"),
        Ink::Text,
    );
    pen.text(BOX + 2, 2, "then expires due timers", Ink::Text);
    for (queue, x) in QUEUE.into_iter().enumerate() {
        pen.text(x, 0, "▼", Ink::Faint);
        pen.text(x - 3, 1, format!("queue {queue}"), Ink::Title);
        pen.text(x - 3, 2, "worker", Ink::Text);
    }
}

pub(super) fn shards() -> Picture {
    let look = engine().look();
    let mut sheet = Sheet::new();
    let mut pen = sheet.lines(2);
    pen.text(0, 0, "schedule,", Ink::Title);
    pen.text(0, 1, "cancel", Ink::Title);
    pen.text(
        BOX,
        0,
        "each shard: a wheel behind a short lock,",
        Ink::Title,
    );
    pen.text(BOX, 1, "with a ready list for each queue", Ink::Title);
    pen.text(QUEUE[0] - 2, 1, "bells", Ink::Title);
    for index in 0..look.inspection.shards.len() {
        draw_shard(&look, index, &mut sheet.lines(5));
    }
    draw_ticker(&look, &mut sheet.lines(4));
    Picture {
        name: "shards",
        title: "Shards, ticker, queues and workers",
        description: "Four threads, each of which schedules into a shard of its own. A shard is a wheel \
            with a ready list for each of two queues. The ticker sleeps until the first visit. \
            Workers take expired timers from the ready lists of all shards.",
        buffer: sheet.finish(),
    }
}
