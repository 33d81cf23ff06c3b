//! A picture that is written from top to bottom.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;

use crate::draw::levels::{self, Row};
use crate::draw::pen::{Ink, Pen};

/// The width of all pictures of the documentation, and more lines than any needs.
const WIDTH: u16 = 76;
const MOST_LINES: u16 = 80;

pub(super) struct Sheet {
    buffer: Buffer,
    /// The first line that is free.
    next: u16,
}

impl Sheet {
    pub(super) fn new() -> Sheet {
        Sheet {
            buffer: Buffer::empty(Rect::new(0, 0, WIDTH, MOST_LINES)),
            next: 0,
        }
    }

    /// Takes the next `lines` lines.
    pub(super) fn lines(&mut self, lines: u16) -> Pen<'_> {
        let area = Rect::new(0, self.next, WIDTH, lines);
        self.next += lines;
        Pen::new(&mut self.buffer, area, true)
    }

    pub(super) fn gap(&mut self) {
        self.next += 1;
    }

    /// Writes a line that begins with words that stand out.
    pub(super) fn caption(&mut self, head: &str, text: &str) {
        let width = head.chars().count() + 2 + text.chars().count();
        assert!(width <= usize::from(WIDTH), "too long: {text}");
        let mut pen = self.lines(1);
        pen.text(0, 0, head, Ink::Title);
        pen.text(head.chars().count() as u16 + 2, 0, text, Ink::Text);
    }

    /// Draws the levels of a wheel.
    pub(super) fn wheel(&mut self, rows: &[Row]) {
        levels::draw(rows, &mut self.lines(rows.len() as u16));
    }

    /// Returns the lines that were taken, without a gap at the end.
    pub(super) fn finish(self) -> Buffer {
        let lines = self.buffer.content.chunks(usize::from(WIDTH));
        let is_written = |line: &[Cell]| line.iter().any(|cell| cell.symbol() != " ");
        let last = lines.clone().rposition(is_written).unwrap_or(0);
        let mut buffer = Buffer::empty(Rect::new(0, 0, WIDTH, last as u16 + 1));
        let cells = buffer.content.len();
        buffer
            .content
            .clone_from_slice(&self.buffer.content[..cells]);
        buffer
    }
}
