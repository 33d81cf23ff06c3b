//! The live view: counts over time, the jobs that are due next, and dead letters.
//!
//! A thread of its own looks at the store, so that keys act while a database does not answer.

mod eye;
mod screen;
mod seen;
mod view;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use self::eye::Eye;
use self::screen::Screen;
use self::seen::Seen;
use self::view::{Press, View};
use crate::failure::Failure;
use crate::open::Place;

/// The longest time until a look is drawn.
const FRAME: Duration = Duration::from_millis(50);

/// Shows a store in the terminal until the user quits. A store that cannot be opened at first is
/// a failure; one that fails later is shown as such.
pub(crate) fn run(place: &Place, every: Duration) -> Result<bool, Failure> {
    let mut view = View::new(place.name(), every);
    let mut eye = Eye::new(place.clone());
    match eye.look() {
        Err(failure) if !matches!(failure, Failure::InUse(_)) => return Err(failure),
        look => view.note(look.map_err(|failure| failure.message())),
    }
    let looker = Looker::start(eye, every);
    let shown = show(&mut view, &looker);
    // A database that does not answer is left to the end of the process. A file must be closed.
    if !place.is_shared() {
        looker.end();
    }
    shown.map(|()| true).map_err(Failure::Output)
}

fn show(view: &mut View, looker: &Looker) -> std::io::Result<()> {
    let mut screen = Screen::take()?;
    loop {
        for look in looker.looks.try_iter() {
            view.note(look);
        }
        screen.draw(view)?;
        match screen.key_within(FRAME)?.map(|key| view.press(key)) {
            Some(Press::Quit) => return Ok(()),
            Some(Press::Look) => drop(looker.wake.send(())),
            Some(Press::Stay) | None => {}
        }
    }
}

/// The thread that looks.
struct Looker {
    wake: Sender<()>,
    looks: Receiver<Result<Seen, String>>,
    thread: JoinHandle<()>,
}

impl Looker {
    fn start(mut eye: Eye, every: Duration) -> Looker {
        let (wake, woken) = channel();
        let (sender, looks) = channel();
        let thread = thread::spawn(move || {
            while woken.recv_timeout(every) != Err(RecvTimeoutError::Disconnected) {
                let look = eye.look().map_err(|failure| failure.message());
                if sender.send(look).is_err() {
                    return;
                }
            }
        });
        Looker { wake, looks, thread }
    }

    /// Ends the thread, which closes the store.
    fn end(self) {
        drop(self.wake);
        let _ = self.thread.join();
    }
}
