//! The screen of a store on virtual time, as a terminal shows it.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tickwheel_durable::{
    Durable, Job, ManualClock, RedbStore, Retry, VirtualNode, WallClock, WallTime,
};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

struct World {
    jobs: Durable,
    node: VirtualNode,
    clock: ManualClock,
    view: View,
    terminal: Terminal<TestBackend>,
}

impl World {
    /// A store whose jobs of the kind `fails` become dead letters at their first attempt.
    fn new(height: u16) -> World {
        let clock = ManualClock::new(WallTime::from_unix_micros(1_800_000_000_000_000));
        let builder = Durable::builder()
            .handler("mail", |_| ())
            .handler("fails", |_| Err::<(), _>("no \u{1b}[2Jline"))
            .retry("fails", Retry::attempts(1));
        let store = RedbStore::in_memory_by(clock.clone());
        let (jobs, node) = builder.open_virtual(store, clock.clone()).unwrap();
        World {
            jobs,
            node,
            clock,
            view: View::new("jobs.redb", 2 * SECOND),
            terminal: Terminal::new(TestBackend::new(80, height)).unwrap(),
        }
    }

    fn schedule(&self, kind: &str, after: u32) {
        let due = self.clock.now() + after * SECOND;
        self.jobs.schedule(Job::new(kind, "").at(due)).unwrap();
    }

    fn look(&mut self) {
        let seen = Seen::of(&self.jobs, self.clock.now()).unwrap();
        self.view.note(Ok(seen));
    }

    fn press(&mut self, keys: &[KeyCode]) {
        for key in keys {
            assert_eq!(self.view.press(*key), Press::Stay);
        }
    }

    /// Returns the lines of the screen.
    fn screen(&mut self) -> Vec<String> {
        let view = &mut self.view;
        let draw = |frame: &mut ratatui::Frame<'_>| view.draw(frame.area(), frame.buffer_mut());
        self.terminal.draw(draw).unwrap();
        let buffer = self.terminal.backend().buffer();
        let lines = buffer.content.chunks(usize::from(buffer.area.width));
        let line =
            |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect();
        let text = |line: String| line.trim_end().to_owned();
        lines.map(line).map(text).collect()
    }

    fn has(&mut self, text: &str) -> bool {
        let screen = self.screen();
        let has = screen.iter().any(|line| line.contains(text));
        if !has {
            println!("{}", screen.join("\n"));
        }
        has
    }
}

#[test]
fn the_screen_shows_counts_next_jobs_and_dead_letters() {
    let mut world = World::new(20);
    world.schedule("fails", 1);
    world.node.run_until(world.clock.now() + 2 * SECOND);
    world.schedule("mail", 3);
    world.schedule("mail", 90);
    world.look();
    let screen = world.screen();
    assert_eq!(
        screen[..5],
        [
            "jobs.redb at 2027-01-15T08:00:02Z, a look every 2s",
            "live                    2 █",
            "overdue                 0",
            "behind                0ms",
            "dead letters            1 █",
        ]
    );
    assert!(screen[5].starts_with(" Next due: from 1 of 2 ─"));
    assert!(screen[6].starts_with("DUE            STATE    KIND "));
    assert!(screen[7].starts_with("in 3s          waiting  mail "));
    assert!(screen[8].starts_with("in 1m 30s      waiting  mail "));
    assert!(world.has(" Dead letters: from 1 of 1 ─"));
    // No byte of a reason acts on the terminal.
    assert!(world.has("no \\u{1b}[2Jline"));
}

#[test]
fn counts_are_drawn_over_time() {
    let mut world = World::new(20);
    for jobs in [1, 3, 4] {
        (0..jobs).for_each(|_| world.schedule("mail", 1));
        world.look();
    }
    assert!(world.has("live                    8 ▁▄█"));
    world.clock.set(world.clock.now() + 31 * SECOND);
    world.look();
    assert!(world.has("overdue                 8    █"));
    assert!(world.has("behind                30s    █"));
}

#[test]
fn keys_scroll_the_list_in_focus_and_no_further_than_its_end() {
    use KeyCode::{Down, End, Home, PageDown, Tab, Up};
    let mut world = World::new(20);
    for after in 1..=30 {
        world.schedule("mail", after);
    }
    world.look();
    assert!(world.has("from 1 of 30"));
    world.press(&[Down, Down, Up]);
    assert!(world.has("from 2 of 30"));
    world.press(&[PageDown]);
    let page = world.view.page;
    assert!(world.has(&format!("from {} of 30", 2 + page)));
    world.press(&[Home, Up]);
    assert!(world.has("in 1s "));
    world.press(&[End, Down]);
    assert!(world.has("from 30 of 30") && world.has("in 30s "));
    world.press(&[Tab, End]);
    assert!(world.has("from 30 of 30") && world.has("Dead letters: none"));
}

/// Jobs end while the user looks at the end of the list.
#[test]
fn a_list_that_shrinks_stays_on_the_screen() {
    let mut world = World::new(20);
    for after in 1..=30 {
        world.schedule("mail", after);
    }
    world.look();
    world.press(&[KeyCode::End]);
    world.node.run_until(world.clock.now() + 20 * SECOND);
    world.look();
    assert!(world.has("from 10 of 10") && world.has("in 10s "));
}

#[test]
fn a_pause_keeps_the_screen_and_the_keys() {
    let mut world = World::new(20);
    world.schedule("mail", 5);
    world.look();
    world.press(&[KeyCode::Char(' ')]);
    world.schedule("mail", 6);
    world.look();
    assert!(world.has(", paused") && world.has("from 1 of 1"));
    world.press(&[KeyCode::Char(' ')]);
    world.look();
    assert!(world.has("from 1 of 2"));
    assert_eq!(world.view.press(KeyCode::Char('r')), Press::Look);
    assert_eq!(world.view.press(KeyCode::Char('q')), Press::Quit);
    assert_eq!(world.view.press(KeyCode::Esc), Press::Quit);
}

#[test]
fn a_failure_is_shown_until_a_look_succeeds() {
    let mut world = World::new(20);
    world.view.note(Err("jobs.redb is open in 7".to_owned()));
    assert!(world.has("The last look failed") && world.has("is open in 7"));
    world.look();
    assert!(world.has("Next due: none") && !world.has("The last look failed"));
}

/// No size of a terminal is too small.
#[test]
fn any_size_can_be_drawn() {
    let mut world = World::new(20);
    world.schedule("mail", 5);
    world.look();
    for (width, height) in [(0, 0), (1, 1), (10, 3), (26, 6), (300, 100)] {
        let area = Rect::new(0, 0, width, height);
        world.view.draw(area, &mut Buffer::empty(area));
        world.press(&[KeyCode::PageDown, KeyCode::Tab]);
    }
}
