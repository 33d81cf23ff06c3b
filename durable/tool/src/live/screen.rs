//! The terminal in the state that full-screen programs need, and its keys.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::view::View;

/// The terminal. Dropping it restores the state before, and so does a panic.
pub(super) struct Screen(DefaultTerminal);

impl Screen {
    pub(super) fn take() -> io::Result<Screen> {
        ratatui::try_init().map(Screen)
    }

    pub(super) fn draw(&mut self, view: &mut View) -> io::Result<()> {
        self.0.draw(|frame| {
            let area = frame.area();
            view.draw(area, frame.buffer_mut());
        })?;
        Ok(())
    }

    /// Waits for a key. Ctrl-C is `q`.
    pub(super) fn key_within(&mut self, time: Duration) -> io::Result<Option<KeyCode>> {
        if !event::poll(time)? {
            return Ok(None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Release => None,
            Event::Key(key) => match (key.code, key.modifiers) {
                (KeyCode::Char('c'), KeyModifiers::CONTROL) => Some(KeyCode::Char('q')),
                (code, _) => Some(code),
            },
            _ => None,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
