//! Frames of a playground on a virtual clock. The same keys give the same frames in every
//! run.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use crate::playground::{Playground, Settings};
use crate::viewer::Viewer;

/// The real time between two frames.
const FRAME: Duration = Duration::from_millis(50);

/// A frame to be recorded.
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) size: (u16, u16),
    pub(crate) settings: Settings,
    /// The keys that are pressed, one after each frame; an underscore stands for none.
    pub(crate) keys: String,
}

impl Script {
    fn new(name: &'static str, size: (u16, u16), shards: usize, keys: impl Into<String>) -> Script {
        Script {
            name,
            size,
            settings: Settings {
                shards,
                ..Settings::default()
            },
            keys: keys.into(),
        }
    }

    /// Plays the script, and returns the last frame.
    pub(crate) fn play(&self) -> Buffer {
        let playground = Playground::start(self.settings.clone());
        let mut viewer = Viewer::of(playground.expect("an engine with these settings starts"));
        viewer.view.colours = true;
        let backend = TestBackend::new(self.size.0, self.size.1);
        let mut terminal = Terminal::new(backend).expect("a terminal in memory");
        for key in self.keys.chars().chain(['_']) {
            let drawn = terminal.draw(|frame| {
                let area = frame.area();
                viewer.frame(FRAME, area, frame.buffer_mut());
            });
            drawn.expect("a terminal in memory accepts all");
            viewer.press(key);
        }
        terminal.backend().buffer().clone()
    }
}

/// Twenty frames: one second.
fn seconds(count: usize) -> String {
    "_".repeat(20 * count)
}

/// A busy engine: the frame that stands for the viewer in the documentation.
pub(crate) fn busy() -> Script {
    let keys = seconds(2) + "aaw" + &seconds(1) + "jw_w" + &seconds(1);
    Script::new("busy", (80, 24), 4, keys)
}

fn scripts() -> Vec<Script> {
    vec![
        Script::new("start", (80, 24), 1, ""),
        Script::new("thousand", (80, 24), 1, " la"),
        Script::new("before-a-cascade", (80, 24), 1, " la1111"),
        Script::new("after-a-cascade", (80, 24), 1, " la11112"),
        Script::new("cancelled", (80, 24), 1, " lac"),
        Script::new("no-workers", (80, 24), 1, format!("aw{}", seconds(1))),
        Script::new("late", (80, 24), 1, "  aj_aj_j"),
        Script::new(
            "hundred-thousand",
            (80, 24),
            4,
            format!(" l{}", "a".repeat(100)),
        ),
        Script::new("one-shard", (80, 24), 4, format!("{}ss", seconds(1))),
        Script::new("help", (80, 24), 4, "?"),
        Script::new("large", (132, 43), 4, seconds(3)),
        Script::new("small", (60, 16), 4, seconds(1)),
        Script {
            settings: Settings {
                wheel_size: 8,
                shards: 1,
                longest: Duration::from_secs(20),
                ..Settings::default()
            },
            ..Script::new("eight-slots", (80, 24), 1, " la12")
        },
        Script {
            settings: Settings {
                wheel_size: 1_000,
                shards: 1,
                ..Settings::default()
            },
            ..Script::new("thousand-slots", (80, 24), 1, " la")
        },
        busy(),
    ]
}

/// Returns the names and the texts of all recorded frames.
#[must_use]
pub fn all() -> Vec<(&'static str, String)> {
    let scripts = scripts().into_iter();
    scripts
        .map(|script| (script.name, text(&script.play())))
        .collect()
}

/// Returns the symbols of a buffer, without blanks at the ends of lines.
#[must_use]
pub fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let line = |y| {
        let symbols = (0..area.width).map(|x| buffer[(x, y)].symbol());
        symbols.collect::<String>().trim_end().to_owned() + "\n"
    };
    (0..area.height).map(line).collect()
}
