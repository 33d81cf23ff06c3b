//! Keys, and what they do.

/// A key that does something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The character to press.
    pub character: char,
    /// The name of the key, if it is not the character.
    pub name: &'static str,
    /// What the key does, in a word or two, for the last line of the screen.
    pub brief: &'static str,
    /// What the key does, in a sentence, for the page of help.
    pub help: &'static str,
}

impl Key {
    /// Describes a key.
    #[must_use]
    pub const fn new(
        character: char,
        name: &'static str,
        brief: &'static str,
        help: &'static str,
    ) -> Key {
        Key {
            character,
            name,
            brief,
            help,
        }
    }
}

/// The keys that every viewer has.
pub(crate) const VIEWER: [Key; 3] = [
    Key::new('q', "q", "quit", "Quits; so does ctrl-c"),
    Key::new('?', "?", "help", "Shows or hides this page"),
    Key::new(
        's',
        "s",
        "shard",
        "Shows the wheel of one shard, then of the next, then of all",
    ),
];
