//! One frame: a look at an engine, drawn into a buffer of cells. Colours are accents on the
//! terminal's own foreground and background; everything can be read without them.

use std::time::Duration;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Bar, BarChart, Block, Borders, Paragraph, Row, Sparkline, Table, Widget, Wrap,
};
use tickwheel::Time;
use tickwheel::stats::{Histogram, InspectedShard};

use crate::look::{Look, MOST};
use crate::numbers::{compact, duration, exact, time};
use crate::viewer::{KEYS, View};

/// The smallest screen on which everything can be told apart.
const SMALLEST: (u16, u16) = (60, 20);

/// The width from which the shards have room beside the ready lists and the lateness.
const SHARDS_FROM: u16 = 80;

/// The columns in which a level of 64 slots stands well.
const LEVELS_WIDTH: u16 = 82;

const TIMERS: Style = Style::new().fg(Color::Green);
const READY: Style = Style::new().fg(Color::Magenta);
const HAND: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);

/// Draws a whole screen: levels above, then shards, ready lists and lateness side by side,
/// then the ledger and the rates.
pub(crate) fn screen(look: &Look, view: &View, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    if area.is_empty() {
        return;
    }
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let needed = format!("needs {} × {} characters", SMALLEST.0, SMALLEST.1);
        return needed.render(area, buffer);
    }
    let foot = foot(view);
    let foot_height = (foot.width() as u16 + 8).div_ceil(area.width);
    // The rates stand beside the levels if there is room, as graphs.
    let beside = area.width.saturating_sub(LEVELS_WIDTH);
    let beside = if beside >= 24 { beside } else { 0 };
    let [top, above, middle, account, line, message, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length((area.height / 3).min(10)),
        Constraint::Length(3),
        Constraint::Length(u16::from(beside == 0)),
        Constraint::Length(1),
        Constraint::Length(foot_height),
    ])
    .areas(area);
    head(look, view, top, buffer);
    if view.help {
        return help(view, above.union(bottom), buffer);
    }
    let columns = [Constraint::Fill(1), Constraint::Length(beside)];
    let gap = u16::from(beside > 0);
    let [left, graphs] = Layout::horizontal(columns).spacing(gap).areas(above);
    levels(look, view, left, buffer);
    match beside {
        0 => rates(look, line, buffer),
        _ => graphs_of_rates(look, graphs, buffer),
    }
    // A number that is cut off is wrong: a narrow screen has no room for the shards.
    let [left, middle] = if area.width < SHARDS_FROM {
        [Rect::ZERO, middle]
    } else {
        Layout::horizontal([Constraint::Length(29), Constraint::Fill(1)]).spacing(1).areas(middle)
    };
    shards(look, view.shard, left, buffer);
    let columns = [Constraint::Fill(2), Constraint::Fill(3)];
    let [centre, right] = Layout::horizontal(columns).spacing(1).areas(middle);
    ready(look, centre, buffer);
    lateness(look, right, buffer);
    ledger(look, account, buffer);
    view.message.as_str().render(message, buffer);
    let foot = Paragraph::new(foot).wrap(Wrap { trim: true });
    foot.render(bottom, buffer);
}

/// Draws a rule with a title, and returns the area below it.
fn panel(title: impl AsRef<str>, area: Rect, buffer: &mut Buffer) -> Rect {
    let title = format!(" {} ", title.as_ref()).bold();
    let block = Block::new().borders(Borders::TOP).border_style(FAINT);
    let block = block.title(title);
    let inner = block.inner(area);
    block.render(area, buffer);
    inner
}

fn head(look: &Look, view: &View, area: Rect, buffer: &mut Buffer) {
    let name = look.snapshot.name.to_string().bold();
    let now = time(look.now.since(Time::START));
    let tick = exact(look.tick.0);
    let length = duration(look.inspection.tick);
    let time = Line::from(format!("{now}  tick {tick} of {length}"));
    let columns = [Constraint::Fill(1), Constraint::Length(time.width() as u16)];
    let [left, right] = Layout::horizontal(columns).spacing(1).areas(area);
    Line::from(vec![name, "  ".into(), view.status.as_str().into()]).render(left, buffer);
    time.render(right, buffer);
}

/// Returns the keys. A name stays with what it does.
fn foot(view: &View) -> Line<'static> {
    let keys = KEYS.iter().chain(view.keys);
    let spans = keys.flat_map(|key| {
        let brief = format!("\u{a0}{}", key.brief.replace(' ', "\u{a0}"));
        [key.name.bold(), Span::styled(brief, FAINT), "  ".into()]
    });
    spans.collect()
}

fn help(view: &View, area: Rect, buffer: &mut Buffer) {
    let area = panel("keys", area, buffer);
    let keys = KEYS.iter().chain(view.keys);
    let key =
        |key: &crate::Key| Line::from(vec![format!(" {:8}", key.name).bold(), key.help.into()]);
    let mut lines: Vec<Line<'_>> = keys.map(key).collect();
    let legend = "A column's height is its slot's share of the fullest slot of the level. ▼: the \
        slot of now. Timers fall from level to level, then into the ready list of their queue.";
    lines.push(Line::styled(legend, FAINT));
    Paragraph::new(lines).wrap(Wrap { trim: false }).render(area, buffer);
}

/// The timers of a level, slot by slot.
struct Level {
    slot_ticks: u64,
    hand: usize,
    slots: Vec<u64>,
    /// Whether a slot may have more than were counted.
    has_more: bool,
}

/// Adds up the levels of all shards, or takes those of one.
fn summed(look: &Look, shard: Option<usize>) -> Vec<Level> {
    let inspection = &look.inspection;
    let shards = inspection.shards.iter().enumerate();
    let chosen = shards.filter(|&(index, _)| shard.is_none_or(|shard| shard == index));
    let mut levels: Vec<Level> = Vec::new();
    for (index, level) in chosen.flat_map(|(_, shard)| shard.levels.iter().enumerate()) {
        if index == levels.len() {
            levels.push(Level {
                slot_ticks: level.slot_ticks,
                hand: (look.tick.0 / level.slot_ticks % inspection.wheel_size as u64) as usize,
                slots: vec![0; inspection.wheel_size],
                has_more: false,
            });
        }
        levels[index].has_more |= level.timers.contains(&MOST);
        for (sum, &timers) in levels[index].slots.iter_mut().zip(&level.timers) {
            *sum += timers as u64;
        }
    }
    levels
}

/// Draws the levels, the coarsest at the top: timers fall from row to row, and from the last
/// one into the ready lists. If there are more than fit, leaves out the coarsest.
fn levels(look: &Look, view: &View, area: Rect, buffer: &mut Buffer) {
    let whose = match view.shard {
        Some(shard) => format!("wheel of shard {shard}"),
        None if look.inspection.shards.len() == 1 => "wheel".to_owned(),
        None => "wheels of all shards".to_owned(),
    };
    let size = look.inspection.wheel_size;
    let title = format!("{whose}: level, slot, {size} slots, timers");
    let area = panel(title, area, buffer);
    let levels = summed(look, view.shard);
    let fit = levels.len().min(usize::from(area.height));
    let rows = Layout::vertical(vec![Constraint::Fill(1); fit]).split(area);
    for (number, (level, row)) in levels.iter().zip(rows.iter().rev()).enumerate() {
        let columns = [Constraint::Length(10), Constraint::Fill(1), Constraint::Length(6)];
        let [before, slots, after] = Layout::horizontal(columns).areas(*row);
        let [before, after] =
            [before, after].map(|it| Rect { y: it.bottom() - 1, height: 1, ..it });
        let ticks = u32::try_from(level.slot_ticks).unwrap_or(u32::MAX);
        let slot = duration(look.inspection.tick.saturating_mul(ticks));
        Line::from(vec![number.to_string().bold(), format!("{slot:>8} ").into()])
            .render(before, buffer);
        let all: u64 = level.slots.iter().sum();
        let all = match (all, level.has_more) {
            (0, _) => String::new(),
            (_, false) => compact(all),
            (_, true) => compact(all) + "+",
        };
        Line::from(all).right_aligned().render(after, buffer);
        let width = usize::from(slots.width) / size;
        match width {
            0..4 => narrow(level, width.max(1), slots, buffer),
            _ => wide(level, width.min(10) as u16, slots, buffer),
        }
    }
}

/// Draws a column or a few for each slot, or one for several slots if there are too many. A
/// column's height is its share of the fullest.
fn narrow(level: &Level, width: usize, area: Rect, buffer: &mut Buffer) {
    let merged = level.slots.len().div_ceil(usize::from(area.width));
    let sums: Vec<u64> = level.slots.chunks(merged).map(|slots| slots.iter().sum()).collect();
    let fullest = sums.iter().copied().max().unwrap_or(0).max(1);
    // No timer is invisible: the least bar is an eighth of a line.
    let least = fullest.div_ceil(8 * u64::from(area.height));
    let shown = sums.iter().map(|&timers| if timers > 0 { timers.max(least) } else { 0 });
    let columns = shown.flat_map(|timers| vec![timers; width]);
    Sparkline::default().data(columns).max(fullest).style(TIMERS).render(area, buffer);
    let y = area.bottom() - 1;
    for (slot, &timers) in sums.iter().enumerate() {
        let cell = &mut buffer[(area.x + (slot * width) as u16, y)];
        match (slot == level.hand / merged, timers) {
            (true, _) => *cell = Cell::new("▼").set_style(HAND).clone(),
            (false, 0) => *cell = Cell::new("·").set_style(FAINT).clone(),
            (false, _) => {}
        }
    }
}

/// Draws bars with numbers in them.
fn wide(level: &Level, width: u16, area: Rect, buffer: &mut Buffer) {
    let fullest = level.slots.iter().copied().max().unwrap_or(0).max(1);
    let bar = |(slot, &timers): (usize, &u64)| {
        let text = compact(timers);
        let style = if slot == level.hand { HAND } else { TIMERS };
        let inverse = if area.height > 1 && timers > 0 { style.reversed() } else { style };
        Bar::default().value(timers).text_value(text).style(style).value_style(inverse)
    };
    let bars: Vec<Bar<'_>> = level.slots.iter().enumerate().map(bar).collect();
    let chart = BarChart::vertical(bars).max(fullest);
    chart.bar_width(width - 1).bar_gap(1).render(area, buffer);
    let y = area.bottom() - 1;
    for (slot, &timers) in level.slots.iter().enumerate() {
        let left = area.x + slot as u16 * width;
        match (slot == level.hand, timers) {
            (true, _) => buffer.set_string(left, y, "▼", HAND),
            (false, 0) => buffer.set_string(left + width / 2 - 1, y, "·", FAINT),
            (false, _) => {}
        }
    }
}

/// Draws a row for each shard.
fn shards(look: &Look, chosen: Option<usize>, area: Rect, buffer: &mut Buffer) {
    let area = panel("shards", area, buffer);
    let shards = &look.inspection.shards;
    let room = usize::from(area.height).saturating_sub(1);
    let shown = if shards.len() > room { room.saturating_sub(1) } else { shards.len() };
    let right = |text: String| Line::from(text).right_aligned();
    let row = |(index, shard): (usize, &InspectedShard)| {
        let mark = if chosen == Some(index) { "▶" } else { "" };
        let ready: usize = shard.queued.iter().sum();
        Row::new([
            right(format!("{mark}{index}")).bold(),
            right(compact(shard.ledger.live)),
            right(compact(ready as u64)),
            right(next_visit(look, shard)),
        ])
    };
    let mut rows: Vec<Row<'_>> = shards.iter().enumerate().take(shown).map(row).collect();
    if shown < shards.len() {
        let more = format!("+{}", shards.len() - shown);
        rows.push(Row::new([right(more), right("more".into())]).style(FAINT));
    }
    let widths = [4, 6, 6, 9].map(Constraint::Length);
    let header = ["", "live", "ready", "visit in"].map(|text| right(text.into()));
    let table = Table::new(rows, widths).header(Row::new(header).style(FAINT));
    Widget::render(table, area, buffer);
}

fn next_visit(look: &Look, shard: &InspectedShard) -> String {
    let Some(next) = shard.next_wakeup else {
        return "never".to_owned();
    };
    match next.since(look.tick) {
        0 => "now".to_owned(),
        ticks => {
            let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
            duration(look.inspection.tick.saturating_mul(ticks))
        }
    }
}

/// Draws the number of expired timers of each queue, and how their sum has changed.
fn ready(look: &Look, area: Rect, buffer: &mut Buffer) {
    let area = panel("ready lists", area, buffer);
    let queued = &look.snapshot.queued;
    let rows = (queued.len() as u16).min(area.height / 2);
    let shown = match usize::from(rows) {
        rows if rows < queued.len() => rows.saturating_sub(1),
        rows => rows,
    };
    let line = |(queue, &timers): (usize, &usize)| {
        let timers = format!("{:>6}", compact(timers as u64));
        Line::from(vec![format!("queue {queue}").into(), timers.bold()])
    };
    let mut lines: Vec<Line<'_>> = queued.iter().enumerate().take(shown).map(line).collect();
    if shown < queued.len() {
        lines.push(Line::styled(format!("+{} more", queued.len() - shown), FAINT));
    }
    let [above, below] =
        Layout::vertical([Constraint::Length(rows), Constraint::Fill(1)]).areas(area);
    Paragraph::new(lines).render(above, buffer);
    let [.., waiting] = &look.history;
    graph("waiting", waiting, READY, below, buffer);
}

/// Draws how a number has changed, below its name and its greatest value, which reaches four
/// fifths of the height.
fn graph(name: &str, history: &[u64], style: Style, area: Rect, buffer: &mut Buffer) {
    let seen = &history[history.len().saturating_sub(usize::from(area.width))..];
    let most = seen.iter().copied().max().unwrap_or(0);
    let title = Line::styled(format!("{name}, up to {}", compact(most)), FAINT);
    title.render(area, buffer);
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    Sparkline::default().data(seen).max(most.max(1) * 5 / 4).style(style).render(area, buffer);
}

/// Draws how late timers were when a worker took them, or when they were found due if the
/// engine does not measure more; and says how many still wait.
fn lateness(look: &Look, area: Rect, buffer: &mut Buffer) {
    let snapshot = &look.snapshot;
    let taken = &snapshot.lateness_at_start;
    let is_measured = taken.count() > 0 || snapshot.ledger.completed == 0;
    let (title, histogram) = if is_measured {
        ("lateness, when taken", taken)
    } else {
        ("lateness, when found due", &snapshot.lateness)
    };
    let area = panel(title, area, buffer);
    let waiting = snapshot.queued.iter().sum::<usize>() as u64;
    let mut lines = vec![quantiles(histogram)];
    if waiting > 0 {
        let text = format!("{} wait, later still", compact(waiting));
        lines.push(Line::styled(text, READY));
    }
    let [above, below] =
        Layout::vertical([Constraint::Length(lines.len() as u16), Constraint::Fill(1)]).areas(area);
    Paragraph::new(lines).render(above, buffer);
    let ranges = ranges(histogram, usize::from(below.height));
    let most = ranges.iter().map(|&(_, timers)| timers).max().unwrap_or(0).max(1);
    for ((bound, timers), row) in ranges.into_iter().zip(below.rows()) {
        let columns = [Constraint::Length(8), Constraint::Length(5), Constraint::Fill(1)];
        let [name, count, rest] = Layout::horizontal(columns).spacing(1).areas(row);
        Line::from(limit(bound)).right_aligned().render(name, buffer);
        Line::from(compact(timers)).right_aligned().render(count, buffer);
        // No firing is invisible: the least bar is an eighth of a column.
        let eighths = (timers * 8 * u64::from(rest.width)).div_ceil(most) as usize;
        let end = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        Line::styled("█".repeat(eighths / 8) + end, TIMERS).render(rest, buffer);
    }
}

fn quantiles(histogram: &Histogram) -> Line<'static> {
    let below = |q| histogram.quantile(q).map(limit);
    let text = match (below(0.5), below(0.99)) {
        (Some(half), Some(most)) => format!("median {half}, p99 {most}"),
        _ => "none was taken so far".to_owned(),
    };
    Line::styled(text, FAINT)
}

/// The bound of the range of firings that were not late at all.
const ON_TIME: Duration = Duration::from_nanos(1);

fn limit(below: Duration) -> String {
    match below {
        ON_TIME => "0".to_owned(),
        below => format!("<{}", duration(below)),
    }
}

/// Returns at most `rows` ranges, or two, each with its bound and its number of firings.
/// Adjacent ranges are taken together if there are more. Firings that were on time have a
/// range of their own.
fn ranges(histogram: &Histogram, rows: usize) -> Vec<(Duration, u64)> {
    let buckets = histogram.buckets();
    let (mut on_time, late): (Vec<_>, Vec<_>) = buckets.partition(|&(below, _)| below == ON_TIME);
    let rows = rows.saturating_sub(on_time.len()).max(1);
    let (Some(first), Some(last)) = (late.first(), late.last()) else {
        return on_time;
    };
    let bits = |below: Duration| (below.as_nanos() as u64).ilog2();
    let (low, high) = (bits(first.0), bits(last.0));
    let step = (high - low + 1).div_ceil(rows as u32);
    on_time.extend((0..(high - low + 1).div_ceil(step)).map(|range| {
        let is_in = |below: Duration| (bits(below) - low) / step == range;
        let timers = late.iter().filter(|&&(below, _)| is_in(below));
        let bound = (low + range * step + step - 1).min(63);
        (Duration::from_nanos(1 << bound), timers.map(|&(_, timers)| timers).sum())
    }));
    on_time
}

/// Draws the account of all timers.
fn ledger(look: &Look, area: Rect, buffer: &mut Buffer) {
    let ledger = &look.snapshot.ledger;
    let title = if ledger.is_balanced() { "ledger, balanced" } else { "ledger, not balanced" };
    let area = panel(title, area, buffer);
    let columns = [
        ("accepted", "", ledger.accepted),
        ("live", "= ", ledger.live),
        ("completed", "+ ", ledger.completed),
        ("cancelled", "+ ", ledger.cancelled),
        ("shut down", "+ ", ledger.shut_down),
        ("failed", "+ ", ledger.failed),
    ];
    let right = |text: String| Line::from(text).right_aligned();
    let names = columns.map(|(name, ..)| right(name.into()));
    let numbers = columns.map(|(_, sign, timers)| right(format!("{sign}{}", exact(timers))));
    let widths = [Constraint::Max(13); 6];
    let table = Table::new([Row::new(numbers)], widths).header(Row::new(names).style(FAINT));
    Widget::render(table, area, buffer);
}

/// What happens a second, with the number of now.
fn named_rates(look: &Look) -> impl Iterator<Item = (String, &Vec<u64>)> {
    let names = ["scheduled", "cancelled", "fired"];
    names.into_iter().zip(&look.history).map(|(name, history)| {
        let present = compact(history.last().copied().unwrap_or(0));
        (format!("{name} {present}/s"), history)
    })
}

fn rates(look: &Look, area: Rect, buffer: &mut Buffer) {
    let columns = Layout::horizontal([Constraint::Fill(1); 3]).split(area);
    for ((name, _), column) in named_rates(look).zip(columns.iter()) {
        name.render(*column, buffer);
    }
}

fn graphs_of_rates(look: &Look, area: Rect, buffer: &mut Buffer) {
    let area = panel("per second", area, buffer);
    let rows = Layout::vertical([Constraint::Fill(1); 3]).split(area);
    for ((name, history), row) in named_rates(look).zip(rows.iter()) {
        graph(&name, history, TIMERS, *row, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_fit_into_the_rows_and_lose_nothing() {
        for doublings in [1, 2, 7, 8, 20] {
            let mut histogram = Histogram::default();
            (0..doublings).for_each(|it| histogram.record(Duration::from_millis(1 << it)));
            for rows in 1..12 {
                let ranges = ranges(&histogram, rows);
                assert!(ranges.len() <= rows.max(2));
                let counted: u64 = ranges.iter().map(|&(_, timers)| timers).sum();
                assert_eq!(counted, doublings, "rows {rows}");
                assert!(ranges.is_sorted());
            }
        }
        assert!(ranges(&Histogram::default(), 5).is_empty());
    }
}
