//! What is on the screen, and the keys that change it.

use std::time::Duration;
use std::{fmt, io};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tickwheel::Engine;

use crate::draw;
use crate::look::{Eye, Look};
use crate::terminal;

/// A key that does something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The name of the key.
    pub name: &'static str,
    /// What the key does, in a word or two, for the last line of the screen.
    pub brief: &'static str,
    /// What the key does, in a sentence, for the page of help.
    pub help: &'static str,
}

impl Key {
    /// Describes a key.
    #[must_use]
    pub const fn new(name: &'static str, brief: &'static str, help: &'static str) -> Key {
        Key { name, brief, help }
    }
}

/// The keys that every viewer has.
pub(crate) const KEYS: [Key; 3] = [
    Key::new("q", "quit", "Quits; so does ctrl-c"),
    Key::new("?", "help", "Shows or hides this page"),
    Key::new("s", "shard", "Shows the wheel of each shard in turn, then of all"),
];

/// An engine to be looked at, with the keys that act on it.
pub trait Subject {
    /// Looks at the engine.
    fn look(&mut self) -> Look;

    /// Returns the engine's clock and its state, for the first line of the screen.
    fn status(&self) -> String {
        String::new()
    }

    /// Returns the keys that [`press`](Subject::press) understands.
    fn keys(&self) -> &'static [Key] {
        &[]
    }

    /// Acts on a key. Returns a sentence on what happened, or `None` for a key that is not
    /// one of [`keys`](Subject::keys).
    fn press(&mut self, key: char) -> Option<String> {
        let _ = key;
        None
    }

    /// Notes that this much real time has passed.
    fn pass(&mut self, time: Duration) {
        let _ = time;
    }
}

/// An engine of the program's own, to which the viewer does nothing.
struct Watched<'a, T> {
    engine: &'a Engine<T>,
    eye: Eye,
}

impl<T> Subject for Watched<'_, T> {
    fn look(&mut self) -> Look {
        self.eye.look(self.engine)
    }

    fn status(&self) -> String {
        if self.engine.is_shut_down() { "shut down".to_owned() } else { "running".to_owned() }
    }
}

/// What the user of a viewer has chosen to see, and what the viewer says of its subject.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// The shard whose wheel is shown; all of them together if `None`.
    pub(crate) shard: Option<usize>,
    /// Whether the page of help is shown.
    pub(crate) help: bool,
    /// What the last key did.
    pub(crate) message: String,
    /// The clock of the engine, and its state.
    pub(crate) status: String,
    /// The keys of the subject.
    pub(crate) keys: &'static [Key],
}

/// A view of an engine that belongs to the program around it.
///
/// The engine runs as before: the viewer reads it twenty times a second. See the
/// [crate](crate) for an example.
pub struct Viewer<'a> {
    subject: Box<dyn Subject + 'a>,
    view: View,
    has_colours: bool,
}

impl fmt::Debug for Viewer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Viewer");
        shown.field("view", &self.view).finish_non_exhaustive()
    }
}

impl<'a> Viewer<'a> {
    /// Creates a viewer of an engine. A [`TaskEngine`](tickwheel::TaskEngine) has an engine
    /// to look at, too: [`TaskEngine::engine`](tickwheel::TaskEngine::engine).
    #[must_use]
    pub fn new<T>(engine: &'a Engine<T>) -> Viewer<'a> {
        Viewer::of(Watched { engine, eye: Eye::default() })
    }

    /// Creates a viewer of anything with an engine and keys. The environment's `NO_COLOR`
    /// takes its colours away.
    #[must_use]
    pub fn of(subject: impl Subject + 'a) -> Viewer<'a> {
        Viewer {
            subject: Box::new(subject),
            view: View::default(),
            has_colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }

    /// Chooses whether there are colours, whatever the environment says.
    #[must_use]
    pub fn with_colours(self, has_colours: bool) -> Viewer<'a> {
        Viewer { has_colours, ..self }
    }

    /// Shows the engine in the terminal until the user quits.
    ///
    /// Restores the terminal at the end, also if this thread panics.
    ///
    /// # Errors
    /// Returns an error of the terminal.
    pub fn run(self) -> io::Result<()> {
        terminal::run(self)
    }

    /// Lets `time` of real time pass, looks at the engine and draws a frame.
    pub fn frame(&mut self, time: Duration, area: Rect, buffer: &mut Buffer) {
        self.subject.pass(time);
        let look = self.subject.look();
        let shards = look.inspection.shards.len();
        self.view.shard = self.view.shard.filter(|&shard| shard < shards);
        self.view.status = self.subject.status();
        self.view.keys = self.subject.keys();
        draw::screen(&look, &self.view, area, buffer);
        if !self.has_colours {
            buffer
                .content
                .iter_mut()
                .for_each(|cell| _ = cell.set_fg(ratatui::style::Color::Reset));
        }
    }

    /// Acts on a key. Returns whether the viewer goes on.
    pub fn press(&mut self, key: char) -> bool {
        match key {
            'q' => return false,
            '?' => self.view.help = !self.view.help,
            's' => self.next_shard(),
            key => {
                if let Some(message) = self.subject.press(key) {
                    self.view.message = message;
                }
            }
        }
        true
    }

    /// Shows all shards, then each by itself.
    fn next_shard(&mut self) {
        let next = self.view.shard.map_or(0, |shard| shard + 1);
        self.view.shard = (next < self.subject.look().inspection.shards.len()).then_some(next);
    }
}
