//! The panels below the levels: shards, ready lists, lateness, ledger and rates.

use std::time::Duration;

use tickwheel::{Histogram, InspectedShard};

use crate::draw::numbers::{compact, duration, exact, rate};
use crate::draw::pen::{Ink, Pen};
use crate::look::Look;

/// Draws a row for each shard.
pub(super) fn shards(look: &Look, chosen: Option<usize>, pen: &mut Pen<'_>) {
    pen.rule(0, "shards");
    pen.text_before(11, 1, "live", Ink::Faint);
    pen.text_before(18, 1, "ready", Ink::Faint);
    pen.text_before(28, 1, "visit in", Ink::Faint);
    let shards = &look.inspection.shards;
    let rows = usize::from(pen.height()).saturating_sub(2);
    let (shown, more) = match shards.len() > rows {
        true => (rows.saturating_sub(1), true),
        false => (shards.len(), false),
    };
    for (index, shard) in shards.iter().take(shown).enumerate() {
        let is_chosen = chosen == Some(index);
        draw_shard(
            look,
            index,
            shard,
            is_chosen,
            &mut pen.part(0, index as u16 + 2, u16::MAX, 1),
        );
    }
    if more {
        let text = format!("and {} more", shards.len() - shown);
        pen.text(1, shown as u16 + 2, text, Ink::Faint);
    }
}

fn draw_shard(
    look: &Look,
    index: usize,
    shard: &InspectedShard,
    is_chosen: bool,
    pen: &mut Pen<'_>,
) {
    let ready: usize = shard.queued.iter().sum();
    let mark = if is_chosen { "▶" } else { " " };
    pen.text(0, 0, format!("{mark}{index:>3}"), Ink::Title);
    pen.text_before(11, 0, compact(shard.ledger.live), Ink::Text);
    pen.text_before(18, 0, compact(ready as u64), Ink::Text);
    pen.text_before(28, 0, next_wakeup(look, shard), Ink::Text);
}

fn next_wakeup(look: &Look, shard: &InspectedShard) -> String {
    let Some(next) = shard.next_wakeup else {
        return "never".to_owned();
    };
    match next.since(look.tick) {
        0 => "now".to_owned(),
        ticks => duration(
            look.inspection
                .tick
                .saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX)),
        ),
    }
}

/// Draws a bar for each queue, as long as the queue's share of all expired timers.
pub(super) fn ready(look: &Look, pen: &mut Pen<'_>) {
    pen.rule(0, "ready lists");
    let queued = &look.snapshot.queued;
    let whole = queued.iter().sum::<usize>() as u64;
    for (queue, &timers) in queued.iter().enumerate() {
        let y = queue as u16 + 2;
        pen.text(0, y, format!("queue {queue}"), Ink::Text);
        pen.text_before(13, y, compact(timers as u64), Ink::Text);
        pen.bar(
            14,
            y,
            pen.width().saturating_sub(15),
            timers as u64,
            whole,
            Ink::Ready,
        );
    }
    pen.text_if_it_fits(0, 1, "expired, not yet taken", Ink::Faint);
}

/// Draws a bar for each range of lateness.
pub(super) fn lateness(histogram: &Histogram, pen: &mut Pen<'_>) {
    pen.rule(0, "lateness");
    pen.text_if_it_fits(0, 1, quantiles(histogram), Ink::Faint);
    let ranges = ranges(histogram, usize::from(pen.height()).saturating_sub(2));
    let most = ranges.iter().map(|&(_, timers)| timers).max().unwrap_or(0);
    for (row, &(below, timers)) in ranges.iter().enumerate() {
        let y = row as u16 + 2;
        pen.text_before(9, y, bound(below), Ink::Text);
        pen.text_before(14, y, compact(timers), Ink::Text);
        pen.bar(
            15,
            y,
            pen.width().saturating_sub(15),
            timers,
            most,
            Ink::Timers,
        );
    }
}

fn quantiles(histogram: &Histogram) -> String {
    let below = |q| histogram.quantile(q).map(bound);
    match (below(0.5), below(0.99)) {
        _ if histogram.quantile(1.0) == Some(ON_TIME) => "no firing was late".to_owned(),
        (Some(half), Some(most)) => format!("50% {half}, 99% {most}"),
        _ => "no firing so far".to_owned(),
    }
}

/// The bound of the range of firings that were not late at all.
const ON_TIME: Duration = Duration::from_nanos(1);

fn bound(below: Duration) -> String {
    match below {
        ON_TIME => "on time".to_owned(),
        below => format!("< {}", duration(below)),
    }
}

/// Returns at most `rows` ranges, or two, each with its bound and its number of firings.
/// Adjacent ranges are taken together if there are more. Firings that were on time have a
/// range of their own.
fn ranges(histogram: &Histogram, rows: usize) -> Vec<(Duration, u64)> {
    let (mut on_time, late): (Vec<_>, Vec<_>) = histogram
        .buckets()
        .partition(|&(below, _)| below == ON_TIME);
    let rows = rows.saturating_sub(on_time.len()).max(1);
    on_time.extend(late_ranges(&late, rows));
    on_time
}

fn late_ranges(buckets: &[(Duration, u64)], rows: usize) -> Vec<(Duration, u64)> {
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else {
        return Vec::new();
    };
    let bits = |below: Duration| (below.as_nanos() as u64).ilog2();
    let (low, high) = (bits(first.0), bits(last.0));
    let step = (high - low + 1).div_ceil(rows as u32);
    let bound = |range: u32| (low + range * step + step - 1).min(63);
    (0..(high - low + 1).div_ceil(step))
        .map(|range| {
            let is_in = |below: Duration| (bits(below) - low) / step == range;
            let timers = buckets.iter().filter(|&&(below, _)| is_in(below));
            let below = Duration::from_nanos(1 << bound(range));
            (below, timers.map(|&(_, timers)| timers).sum())
        })
        .collect()
}

/// Draws the account of all timers and the rates.
pub(super) fn ledger(look: &Look, pen: &mut Pen<'_>) {
    let ledger = &look.snapshot.ledger;
    let balance = match ledger.is_balanced() {
        true => "ledger, balanced",
        false => "ledger, not balanced",
    };
    pen.rule(0, balance);
    let width = (pen.width() / 6).min(13);
    let columns = [
        ("accepted", ledger.accepted),
        ("live", ledger.live),
        ("completed", ledger.completed),
        ("cancelled", ledger.cancelled),
        ("shut down", ledger.shut_down),
        ("failed", ledger.failed),
    ];
    for (column, (name, timers)) in columns.into_iter().enumerate() {
        let end = width * (column as u16 + 1);
        pen.text_before(end, 1, name, Ink::Faint);
        pen.text_before(end, 2, exact(timers), Ink::Text);
        if column > 0 {
            pen.text(
                end - width + 1,
                2,
                if column == 1 { "=" } else { "+" },
                Ink::Faint,
            );
        }
    }
}

/// Draws the rates.
pub(super) fn rates(look: &Look, pen: &mut Pen<'_>) {
    let rates = &look.rates;
    let columns = [
        ("scheduled", rates.scheduled),
        ("cancelled", rates.cancelled),
        ("fired", rates.fired),
        ("wake-ups", rates.wakeups),
    ];
    pen.text(0, 0, "a second:", Ink::Faint);
    let mut x = 11;
    for (name, per_second) in columns {
        let number = rate(per_second);
        pen.text_if_it_fits(x, 0, name, Ink::Faint);
        pen.text_if_it_fits(x + name.len() as u16 + 1, 0, &number, Ink::Text);
        x += (name.len() + 8) as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwheel::{Engine, Timer};

    /// Returns a histogram of firings that were late by about 1 ms, 2 ms, 4 ms and so on.
    fn late(doublings: u32) -> Histogram {
        let (engine, clock) = Engine::builder().start_virtual().unwrap();
        for doubling in 0..doublings {
            let delay = Duration::from_millis(1);
            engine.schedule(Timer::after(delay, ())).unwrap();
            clock.advance(delay + Duration::from_millis(1 << doubling));
        }
        engine.snapshot().lateness
    }

    #[test]
    fn ranges_fit_into_the_rows_and_lose_nothing() {
        for doublings in [1, 2, 7, 8, 20] {
            for rows in 1..12 {
                let ranges = ranges(&late(doublings), rows);
                assert!(ranges.len() <= rows.max(2));
                let counted: u64 = ranges.iter().map(|&(_, timers)| timers).sum();
                assert_eq!(counted, u64::from(doublings), "rows {rows}");
                assert!(ranges.is_sorted());
            }
        }
        assert!(ranges(&Histogram::default(), 5).is_empty());
    }
}
