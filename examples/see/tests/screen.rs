//! What the screen shows, at the sizes of usual terminals.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use tickwheel::{Engine, Timer};
use tickwheel_see::{ClockKind, Playground, Settings, Viewer};

fn screen(viewer: &mut Viewer<'_>, width: u16, height: u16) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    viewer.frame(Duration::from_millis(50), area, &mut buffer);
    buffer
}

/// The symbols of a screen, line by line.
fn lines(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect();
    buffer.content.chunks(width).map(line).collect()
}

fn text(viewer: &mut Viewer<'_>, width: u16, height: u16) -> String {
    lines(&screen(viewer, width, height)).join("\n")
}

fn playground(settings: Settings, keys: &str) -> Viewer<'static> {
    let mut viewer = Viewer::of(Playground::start(settings).unwrap()).with_colours(true);
    keys.chars().for_each(|key| assert!(viewer.press(key)));
    viewer
}

/// The columns of a full level differ in height, and its sum is exact.
#[test]
fn a_million_timers_are_no_wall() {
    let mut viewer = playground(Settings::default(), " m");
    let shown = text(&mut viewer, 120, 40);
    println!("{shown}");
    assert!(shown.contains("= 1,000,000"), "{shown}");
    let bars = shown.chars().filter(|it| ('▁'..='▇').contains(it));
    let kinds: std::collections::BTreeSet<char> = bars.collect();
    assert!(kinds.len() >= 5, "{kinds:?}");
}

#[test]
fn a_slot_with_more_timers_than_are_counted_says_so() {
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    for n in 0..20_000 {
        let timer = Timer::after(Duration::from_millis(9), n);
        engine.schedule(timer).unwrap();
    }
    let shown = text(&mut Viewer::new(&engine), 80, 24);
    assert!(shown.contains(" 16k+\n"), "{shown}");
}

/// Whoever reads the panel learns of timers that nobody takes.
#[test]
fn timers_that_wait_for_resting_workers_are_late() {
    let settings = Settings { rate: 0.0, longest: Duration::from_secs(1), ..Settings::default() };
    let mut viewer = playground(settings, "waj");
    for (width, height) in [(80, 24), (60, 20)] {
        let shown = text(&mut viewer, width, height);
        println!("{shown}");
        assert!(shown.contains("lateness, when taken"), "{shown}");
        assert!(shown.contains("1.0k wait, later still"), "{shown}");
        assert!(shown.contains("waiting, up to 1.0k"), "{shown}");
    }
    viewer.press('w');
    let shown = text(&mut viewer, 80, 24);
    println!("{shown}");
    assert!(!shown.contains("wait, later still"), "{shown}");
    assert!(shown.contains("p99 <"), "the quantiles have room: {shown}");
}

/// A backlog that grows is drawn higher and higher.
#[test]
fn a_growing_backlog_is_seen_to_grow() {
    let settings =
        Settings { cancelled: 0.0, longest: Duration::from_millis(10), ..Settings::default() };
    let mut viewer = playground(settings, "w");
    (0..100).for_each(|_| _ = screen(&mut viewer, 80, 24));
    let shown = text(&mut viewer, 80, 24);
    println!("{shown}");
    let row = shown
        .lines()
        .rfind(|line| line.contains("▁▂") || line.contains("▂▃") || line.contains("▃▄"));
    assert!(row.is_some(), "{shown}");
}

/// All keys are on the screen at the usual sizes, and little of a large one is empty.
#[test]
fn the_keys_fit_and_the_screen_is_used() {
    let mut viewer = playground(Settings::default(), "aaa");
    for (width, height) in [(80, 24), (120, 40)] {
        (0..40).for_each(|_| _ = screen(&mut viewer, width, height));
        let shown = text(&mut viewer, width, height);
        println!("{shown}");
        for word in ["quit", "help", "shard", "stop", "tick", "slot", "+1k", "+1M", "-1k"] {
            assert!(shown.contains(&format!("\u{a0}{word}")), "{word}: {shown}");
        }
        for word in ["workers", "load", "clock", "jump", "speed", "cancel\u{a0}all"] {
            assert!(shown.contains(&format!("\u{a0}{word}")), "{word}: {shown}");
        }
        let empty = shown.lines().filter(|line| line.trim().is_empty()).count();
        assert!(empty <= usize::from(height) / 8, "{empty} lines are empty: {shown}");
    }
}

#[test]
fn the_page_of_help_fits() {
    for (width, height) in [(80, 24), (60, 20)] {
        let shown = text(&mut playground(Settings::default(), "?"), width, height);
        assert!(shown.contains("queue. "), "{shown}");
    }
}

/// A wheel of few slots has a hand and numbers.
#[test]
fn wide_slots_show_numbers_and_the_hand() {
    let settings = Settings {
        wheel_size: 8,
        rate: 0.0,
        longest: Duration::from_millis(8),
        ..Settings::default()
    };
    let shown = text(&mut playground(settings, " a"), 80, 24);
    let level = shown.lines().find(|line| line.starts_with("0")).unwrap();
    assert!(level.contains("▼"), "{shown}");
    let numbers = level.split(|it: char| !it.is_ascii_digit());
    let numbers: Vec<u32> = numbers.filter_map(|it| it.parse().ok()).collect();
    // After the level and the length of its slots; the last number is the sum.
    let [_, _, slots @ .., sum] = &numbers[..] else {
        panic!("{shown}");
    };
    assert!(*sum > 600 && slots.iter().sum::<u32>() == *sum, "{shown}");
}

#[test]
fn the_real_clock_says_that_it_has_one_speed() {
    let settings = Settings { clock: ClockKind::Real, ..Settings::default() };
    let mut viewer = playground(settings, "+");
    let shown = text(&mut viewer, 80, 24);
    assert!(shown.contains("The real clock has one speed"), "{shown}");
}

/// The terminal's own colours remain, except for accents on its foreground.
#[test]
fn the_background_is_the_terminals_and_no_color_leaves_none() {
    let buffer = screen(&mut playground(Settings::default(), "aaw"), 80, 24);
    assert!(buffer.content.iter().all(|cell| cell.bg == Color::Reset));
    assert!(buffer.content.iter().any(|cell| cell.fg != Color::Reset));
    let mut plain = playground(Settings::default(), "aaw").with_colours(false);
    let buffer = screen(&mut plain, 80, 24);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset));
}

/// No size makes the drawing panic, and none that is too small goes without a word.
#[test]
fn every_size_is_drawn() {
    for wheel_size in [8, 64, 1_000] {
        let settings = Settings { wheel_size, ..Settings::default() };
        let mut viewer = playground(settings, "aaw");
        for width in (0..200).step_by(13) {
            for height in (0..60).step_by(3) {
                screen(&mut viewer, width, height);
            }
        }
        assert!(text(&mut viewer, 40, 10).contains("needs 60"));
    }
}

/// A program of the user's own: an engine with its own load, which the viewer only reads.
#[test]
fn a_viewer_attaches_to_any_engine_and_changes_nothing() {
    let builder = Engine::builder().name("sessions").shards(2);
    let (engine, clock) = builder.start_virtual().unwrap();
    for session in 0..500 {
        let delay = Duration::from_millis(session % 7 * 400);
        engine.schedule(Timer::after(delay, session)).unwrap();
    }
    clock.advance(Duration::from_secs(1));
    let before = (engine.inspect(9), engine.snapshot(), engine.now());
    let mut viewer = Viewer::new(&engine);
    let shown = text(&mut viewer, 80, 24);
    for key in "acmvx .1j".chars() {
        assert!(viewer.press(key));
    }
    screen(&mut viewer, 80, 24);
    assert_eq!((engine.inspect(9), engine.snapshot(), engine.now()), before);
    assert!(shown.starts_with("sessions"), "{shown}");
    assert!(shown.contains("500"), "{shown}");
    assert!(!viewer.press('q'));
}

#[test]
fn an_engine_that_was_shut_down_is_shown_as_such() {
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    let timer = Timer::after(Duration::from_secs(1), ());
    engine.schedule(timer).unwrap();
    engine.shutdown();
    let shown = text(&mut Viewer::new(&engine), 80, 24);
    assert!(shown.contains("shut down"), "{shown}");
}

/// Timers keep what is left of their delays when the clock is changed.
#[test]
fn a_change_of_the_clock_loses_no_timer() {
    let settings = Settings {
        rate: 0.0,
        longest: Duration::from_secs(36_000),
        tick: Duration::from_secs(60),
        ..Settings::default()
    };
    let mut viewer = playground(settings, "av v");
    let shown = text(&mut viewer, 80, 24);
    assert!(shown.contains("= 1,000"), "{shown}");
    assert!(shown.contains("virtual clock"), "{shown}");
}
