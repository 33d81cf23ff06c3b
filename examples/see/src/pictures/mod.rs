//! The pictures of the documentation. Wheels and engines in them are real: they are run up
//! to the moment that a picture shows, and drawn as the terminal draws them.

mod journey;
mod shards;
mod sheet;
mod structures;
mod wheels;

use ratatui::buffer::Buffer;

use crate::frames;
use crate::svg;

/// A picture: the name of its file, its title, what is to be seen, and its cells.
pub(crate) struct Picture {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    buffer: Buffer,
}

fn pictures() -> Vec<Picture> {
    vec![
        viewer(),
        structures::list_and_heap(),
        wheels::one_wheel(),
        structures::rounds(),
        wheels::cascade(),
        wheels::postponing(),
        journey::journey(),
        shards::shards(),
    ]
}

fn viewer() -> Picture {
    Picture {
        name: "viewer",
        title: "A live engine in the terminal",
        description: "Four levels of 64 slots with timers in them, four shards, two ready lists, \
            a histogram of lateness, and the balanced ledger.",
        buffer: frames::busy().play(),
    }
}

/// Returns the names and the texts of all pictures.
#[must_use]
pub fn all() -> Vec<(&'static str, String)> {
    let draw = |picture: Picture| {
        let text = svg::render(&picture.buffer, picture.title, picture.description);
        (picture.name, text)
    };
    pictures().into_iter().map(draw).collect()
}
