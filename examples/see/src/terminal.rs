//! The loop between the terminal and a viewer, and the terminal's return to its owner.

use std::cell::Cell;
use std::io::{self, IsTerminal, Stdout, stdout};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};

use crate::viewer::Viewer;

/// The time from one frame to the next.
const FRAME: Duration = Duration::from_millis(50);

/// Whether another thread has panicked, and its message may have spoilt the screen.
static SPOILT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread has the terminal.
    static HAS_TERMINAL: Cell<bool> = const { Cell::new(false) };
}

/// The terminal in the state that full-screen programs need. Dropping it restores the
/// state before.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    fn take() -> io::Result<Screen> {
        if !stdout().is_terminal() {
            return Err(io::Error::other("the output is not a terminal: run the viewer in one"));
        }
        restore_before_panics();
        enable_raw_mode()?;
        HAS_TERMINAL.set(true);
        // From here on, a failure restores the terminal too.
        let screen = Screen { terminal: Terminal::new(CrosstermBackend::new(stdout()))? };
        execute!(stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, if this thread has it.
fn restore() {
    if HAS_TERMINAL.replace(false) {
        let _ = execute!(stdout(), LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
    }
}

/// Makes a panic of the viewer's thread restore the terminal before the message is
/// printed. The panic of another thread, for instance of a task, leaves the viewer alone.
fn restore_before_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            report(info);
            SPOILT.store(true, Ordering::Relaxed);
        }));
    });
}

/// Shows a viewer in the terminal until the user quits.
pub(crate) fn run(mut viewer: Viewer<'_>) -> io::Result<()> {
    let mut screen = Screen::take()?;
    let mut shown = Instant::now();
    loop {
        if SPOILT.swap(false, Ordering::Relaxed) {
            screen.terminal.clear()?;
        }
        let passed = shown.elapsed();
        shown += passed;
        screen.terminal.draw(|frame| {
            let area = frame.area();
            viewer.frame(passed, area, frame.buffer_mut());
        })?;
        if !read_keys(&mut viewer, shown + FRAME)? {
            return Ok(());
        }
    }
}

/// Acts on keys until the next frame is due. Returns whether the viewer goes on.
fn read_keys(viewer: &mut Viewer<'_>, until: Instant) -> io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if !event::poll(left)? {
            return Ok(true);
        }
        match event::read()? {
            Event::Key(key) if !acts(viewer, key) => return Ok(false),
            // Do not wait for the rest of the frame with an old size.
            Event::Resize(..) => return Ok(true),
            _ => {}
        }
    }
}

fn acts(viewer: &mut Viewer<'_>, key: KeyEvent) -> bool {
    if key.kind == KeyEventKind::Release {
        return true;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => false,
        KeyCode::Char(key) => viewer.press(key),
        KeyCode::Esc => viewer.press('q'),
        KeyCode::Right => viewer.press('.'),
        _ => true,
    }
}
