//! The recorded frames and pictures are those that the code draws today, and a screen can
//! be read in any terminal.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use tickwheel::{Engine, Timer};
use tickwheel_see::record::{Record, all_frames, all_pictures};
use tickwheel_see::{Playground, Settings, Viewer, frames};

fn assert_current(records: Vec<Record>, command: &str) {
    let stale: Vec<_> = records
        .iter()
        .filter(|record| !record.is_current())
        .collect();
    for record in &stale {
        println!("{}:\n{}", record.path.display(), record.text);
    }
    let names: Vec<_> = stale.iter().map(|record| &record.path).collect();
    assert!(
        names.is_empty(),
        "not current: {names:?}. Look at the change, then run `cargo run -p tickwheel-see -- {command}`"
    );
}

#[test]
fn recorded_frames_are_current() {
    assert_current(all_frames(), "frames");
}

#[test]
fn pictures_are_current() {
    assert_current(all_pictures(), "pictures");
}

fn screen(viewer: &mut Viewer<'_>, width: u16, height: u16) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    viewer.frame(Duration::from_millis(50), area, &mut buffer);
    buffer
}

fn playground() -> Viewer<'static> {
    let mut viewer = Viewer::of(Playground::start(Settings::default()).unwrap());
    "aaw".chars().for_each(|key| assert!(viewer.press(key)));
    viewer
}

/// The terminal's own colours remain, except for accents on its foreground.
#[test]
fn the_background_is_the_terminals_and_no_color_leaves_none() {
    let buffer = screen(&mut playground(), 80, 24);
    assert!(buffer.content.iter().all(|cell| cell.bg == Color::Reset));
    let mut plain = playground().without_colours();
    let buffer = screen(&mut plain, 80, 24);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset));
}

/// No size makes the drawing panic, and none that is too small goes without a word.
#[test]
fn every_size_is_drawn() {
    let mut viewer = playground();
    for width in (0..200).step_by(7) {
        for height in 0..60 {
            screen(&mut viewer, width, height);
        }
    }
    assert!(frames::text(&screen(&mut viewer, 40, 10)).contains("needs 60"));
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
    let text = frames::text(&screen(&mut viewer, 80, 24));
    for key in "acmvx .1j".chars() {
        assert!(viewer.press(key));
    }
    screen(&mut viewer, 80, 24);
    assert_eq!((engine.inspect(9), engine.snapshot(), engine.now()), before);
    assert!(text.starts_with("sessions"), "{text}");
    assert!(text.contains("500"), "{text}");
    assert!(!viewer.press('q'));
}

#[test]
fn an_engine_that_was_shut_down_is_shown_as_such() {
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    engine
        .schedule(Timer::after(Duration::from_secs(1), ()))
        .unwrap();
    engine.shutdown();
    let text = frames::text(&screen(&mut Viewer::new(&engine), 80, 24));
    assert!(text.contains("shut down"), "{text}");
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
    let mut viewer = Viewer::of(Playground::start(settings).unwrap());
    for key in "av v".chars() {
        viewer.press(key);
    }
    let text = frames::text(&screen(&mut viewer, 80, 24));
    assert!(text.contains("1,000 =      1,000 +"), "{text}");
    assert!(text.contains("virtual clock"), "{text}");
}
