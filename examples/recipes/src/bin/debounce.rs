//! Debounce events: an editor saves its text when nothing was typed for 50 ms, and at the
//! latest 200 ms after the first change that is not saved.
//!
//! The first change schedules the save, and each further one postpones it. A change during
//! a save finds a timer that is running and cannot be postponed, so it schedules the next
//! save. No change is lost.
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin debounce
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use tickwheel::{Refusal, TaskEngine, TimerId};

const QUIET: Duration = Duration::from_millis(50);
const AT_LATEST: Duration = Duration::from_millis(200);

/// The time between two keys.
const KEY: Duration = Duration::from_millis(1);

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::temp_dir().join(format!("tickwheel-debounce-{}.txt", process::id()));
    let editor = Editor {
        timers: TaskEngine::builder().name("editor").start()?,
        text: Arc::new(Text::new(file.clone())),
        save: None,
    };
    let typed = try_out(editor);
    fs::remove_file(file)?;
    typed
}

fn try_out(mut editor: Editor) -> Result<(), Box<dyn Error>> {
    let text = Arc::clone(&editor.text);
    let saves = |text: &Text| text.state().saves;

    // A burst is one save, unless the machine stands still in the middle of it.
    editor.press_keys(30)?;
    text.wait_until_saved();
    let after_burst = saves(&text);
    println!("30 keys, {after_burst} save");
    assert!(after_burst < 10);

    // Typing without a pause does not postpone the save for ever.
    let (mut keys, mut meanwhile) = (0, 0);
    while meanwhile == 0 && keys < 10_000 {
        editor.press_keys(100)?;
        keys += 100;
        meanwhile = saves(&text) - after_burst;
    }
    text.wait_until_saved();
    let all = saves(&text) - after_burst;
    println!("{keys} keys without a pause, {all} saves, {meanwhile} of them meanwhile");
    assert!(meanwhile >= 1 && all < keys / 2);
    assert_eq!(fs::read_to_string(&text.file)?.len() as u32, 30 + keys);
    Ok(())
}

struct Editor {
    timers: TaskEngine,
    text: Arc<Text>,
    /// The last save that was scheduled, and its latest time.
    save: Option<(TimerId, Instant)>,
}

impl Editor {
    fn press_keys(&mut self, count: u32) -> Result<(), Refusal> {
        for _ in 0..count {
            self.text.state().content.push('x');
            self.changed()?;
            thread::sleep(KEY);
        }
        Ok(())
    }

    /// Postpones the save, or schedules one.
    fn changed(&mut self) -> Result<(), Refusal> {
        let now = Instant::now();
        if let Some((save, latest)) = self.save {
            let postponed = self.timers.reschedule(save, latest.min(now + QUIET));
            if postponed.is_ok() {
                return Ok(());
            }
        }
        let text = Arc::clone(&self.text);
        let save = self.timers.run_after(QUIET, move || text.save())?;
        self.save = Some((save, now + AT_LATEST));
        Ok(())
    }
}

/// A text, and the file that it is saved to.
struct Text {
    file: PathBuf,
    state: Mutex<State>,
    saved: Condvar,
}

#[derive(Default)]
struct State {
    content: String,
    /// The length of the content in the file.
    saved: usize,
    saves: u32,
}

impl Text {
    fn new(file: PathBuf) -> Text {
        Text { file, state: Mutex::default(), saved: Condvar::new() }
    }

    /// Saves the content as it is now.
    fn save(&self) {
        let content = self.state().content.clone();
        // A change during the save is not in the file, and has scheduled the next one.
        match fs::write(&self.file, &content) {
            Ok(()) => self.state().note_save(content.len()),
            Err(error) => eprintln!("not saved: {error}"),
        }
        self.saved.notify_all();
    }

    fn wait_until_saved(&self) {
        let waited = self.saved.wait_while(self.state(), |state| !state.is_saved());
        drop(waited);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note_save(&mut self, length: usize) {
        self.saved = length;
        self.saves += 1;
    }

    fn is_saved(&self) -> bool {
        self.saved == self.content.len()
    }
}
