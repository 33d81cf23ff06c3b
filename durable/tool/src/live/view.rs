//! What is on the screen, and the keys that change it.

use std::collections::VecDeque;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Row, Sparkline, Table, Widget, Wrap};

use super::seen::Seen;
use crate::time::rough;

/// The largest number of looks whose counts are kept.
const MOST_LOOKS: usize = 1_000;
const KEYS: &str = "Tab list  ↑↓ PgUp PgDn Home End scroll  Space pause  r look now  q quit";
const NEXT: [&str; 5] = ["DUE", "STATE", "KIND", "KEY", "ATTEMPTS"];
const LETTERS: [&str; 5] = ["ID", "KIND", "KEY", "ATTEMPTS", "REASON"];
const COUNTS: [&str; 4] = ["live", "overdue", "behind", "dead letters"];

/// What follows from a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Press {
    Stay,
    Look,
    Quit,
}

/// The two lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Focus {
    Next,
    Letters,
}

/// The last look, the counts of those before, and what the user has chosen.
pub(super) struct View {
    name: String,
    every: Duration,
    seen: Option<Seen>,
    /// The reason why the last look has failed.
    failure: Option<String>,
    /// Live and overdue jobs, milliseconds behind, and dead letters; the last look last.
    past: VecDeque<[u64; 4]>,
    focus: Focus,
    /// The first row of each list.
    tops: [usize; 2],
    /// The number of rows that the list in focus had room for.
    page: usize,
    is_paused: bool,
}

impl View {
    pub(super) fn new(name: &str, every: Duration) -> View {
        View {
            name: name.to_owned(),
            every,
            seen: None,
            failure: None,
            past: VecDeque::new(),
            focus: Focus::Next,
            tops: [0; 2],
            page: 1,
            is_paused: false,
        }
    }

    /// Takes note of a look. While the view is paused, the screen stays as it is.
    pub(super) fn note(&mut self, look: Result<Seen, String>) {
        if self.is_paused {
            return;
        }
        match look {
            Ok(seen) => self.see(seen),
            Err(message) => self.failure = Some(message),
        }
    }

    fn see(&mut self, seen: Seen) {
        let behind = u64::try_from(seen.behind.as_millis()).unwrap_or(u64::MAX);
        self.past.push_back([seen.live, seen.overdue as u64, behind, seen.dead]);
        if self.past.len() > MOST_LOOKS {
            self.past.pop_front();
        }
        self.failure = None;
        self.seen = Some(seen);
        self.keep_tops();
    }

    /// Acts on a key.
    pub(super) fn press(&mut self, key: KeyCode) -> Press {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Press::Quit,
            KeyCode::Char('r') => return Press::Look,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Tab | KeyCode::BackTab => self.switch(),
            KeyCode::Up => self.scroll(|top, _| top.saturating_sub(1)),
            KeyCode::Down => self.scroll(|top, _| top + 1),
            KeyCode::PageUp => self.scroll(|top, page| top.saturating_sub(page)),
            KeyCode::PageDown => self.scroll(|top, page| top + page),
            KeyCode::Home => self.scroll(|_, _| 0),
            KeyCode::End => self.scroll(|_, _| usize::MAX),
            _ => {}
        }
        Press::Stay
    }

    fn switch(&mut self) {
        self.focus = match self.focus {
            Focus::Next => Focus::Letters,
            Focus::Letters => Focus::Next,
        };
    }

    fn scroll(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        let top = &mut self.tops[self.focus as usize];
        *top = to(*top, self.page);
        self.keep_tops();
    }

    /// Keeps a row of each list on the screen.
    fn keep_tops(&mut self) {
        let seen = self.seen.as_ref();
        let lengths = seen.map_or([0; 2], |seen| [seen.next.len(), seen.letters.len()]);
        for (top, length) in self.tops.iter_mut().zip(lengths) {
            *top = (*top).min(length.saturating_sub(1));
        }
    }

    pub(super) fn draw(&mut self, area: Rect, buffer: &mut Buffer) {
        let rows = [
            Constraint::Length(1),
            Constraint::Length(COUNTS.len() as u16),
            Constraint::Fill(3),
            Constraint::Fill(2),
            Constraint::Length(1),
        ];
        let [head, counts, next, letters, keys] = Layout::vertical(rows).areas(area);
        Line::from(self.title()).style(Modifier::BOLD).render(head, buffer);
        self.draw_counts(counts, buffer);
        match &self.failure {
            Some(failure) => draw_failure(failure, next.union(letters), buffer),
            None => self.draw_lists(next, letters, buffer),
        }
        Line::from(KEYS).style(Modifier::DIM).render(keys, buffer);
    }

    fn title(&self) -> String {
        let at = self.seen.as_ref().map(|seen| format!(" at {}", seen.now));
        let state = if self.is_paused {
            "paused".to_owned()
        } else {
            format!("a look every {}", rough(self.every))
        };
        format!("{}{}, {state}", self.name, at.unwrap_or_default())
    }

    /// Draws each count with those of the looks before, which the width of the screen limits.
    fn draw_counts(&self, area: Rect, buffer: &mut Buffer) {
        let texts = self.seen.as_ref().map_or_else(Default::default, texts);
        let lines: [Rect; COUNTS.len()] =
            Layout::vertical([Constraint::Length(1); COUNTS.len()]).areas(area);
        for (count, (line, text)) in lines.into_iter().zip(texts).enumerate() {
            let [name, past] =
                Layout::horizontal([Constraint::Length(26), Constraint::Fill(1)]).areas(line);
            Line::from(format!("{:<13} {text:>11}", COUNTS[count])).render(name, buffer);
            let width = usize::from(past.width);
            let past_counts = self.past.iter().map(|counts| counts[count]);
            let skipped = self.past.len().saturating_sub(width);
            Sparkline::default().data(past_counts.skip(skipped)).render(past, buffer);
        }
    }

    fn draw_lists(&mut self, next: Rect, letters: Rect, buffer: &mut Buffer) {
        let Some(seen) = &self.seen else { return };
        let [top_next, top_letters] = self.tops;
        let title = title("Next due", top_next, seen.next.len(), seen.live);
        let widths = [14, 8, 18, 18, 8].map(Constraint::Max);
        let table = list(NEXT, &seen.next[top_next..], widths);
        let style = self.border(Focus::Next);
        table.block(block(title, style)).render(next, buffer);
        let title = self::title("Dead letters", top_letters, seen.letters.len(), seen.dead);
        let [id, kind, key, attempts] = [20, 14, 12, 8].map(Constraint::Max);
        let widths = [id, kind, key, attempts, Constraint::Fill(1)];
        let table = list(LETTERS, &seen.letters[top_letters..], widths);
        let style = self.border(Focus::Letters);
        table.block(block(title, style)).render(letters, buffer);
        let area = match self.focus {
            Focus::Next => next,
            Focus::Letters => letters,
        };
        // Without the title and the names of the columns.
        self.page = usize::from(area.height.saturating_sub(2)).max(1);
    }

    fn border(&self, list: Focus) -> Style {
        if self.focus == list { Modifier::BOLD.into() } else { Modifier::DIM.into() }
    }
}

fn texts(seen: &Seen) -> [String; COUNTS.len()] {
    [seen.live.to_string(), seen.overdue_text(), rough(seen.behind), seen.dead.to_string()]
}

/// Returns the title of a list: which row is the first on the screen, and how many there are.
fn title(name: &str, top: usize, listed: usize, all: u64) -> String {
    match listed {
        0 => format!(" {name}: none "),
        _ if (listed as u64) < all => {
            format!(" {name}: from {} of the first {listed} of {all} ", top + 1)
        }
        _ => format!(" {name}: from {} of {all} ", top + 1),
    }
}

fn block(title: String, style: Style) -> Block<'static> {
    Block::new().borders(Borders::TOP).border_style(style).title(title)
}

fn list<'a>(head: [&'a str; 5], rows: &'a [[String; 5]], widths: [Constraint; 5]) -> Table<'a> {
    let rows = rows.iter().map(|row| Row::new(row.iter().map(String::as_str)));
    let head = Row::new(head).style(Modifier::UNDERLINED);
    Table::new(rows, widths).header(head)
}

fn draw_failure(failure: &str, area: Rect, buffer: &mut Buffer) {
    Paragraph::new(failure)
        .wrap(Wrap { trim: true })
        .block(block(" The last look failed ".to_owned(), Modifier::BOLD.into()))
        .render(area, buffer);
}

#[cfg(test)]
mod tests;
