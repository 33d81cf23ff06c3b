//! Writing into a part of the screen, with nothing written beside it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// The part that a piece of the screen plays. Colours are accents on the terminal's own
/// foreground and background; everything can be read without them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ink {
    /// Ordinary text.
    Text,
    /// The title of a panel, and other words that stand out.
    Title,
    /// Rules, units and explanations.
    Faint,
    /// The hand of a level.
    Hand,
    /// Timers in slots.
    Timers,
    /// Expired timers on their way to a worker.
    Ready,
}

impl Ink {
    fn style(self, colours: bool) -> Style {
        let style = match self {
            Ink::Text => Style::new(),
            Ink::Title => Style::new().add_modifier(Modifier::BOLD),
            Ink::Faint => Style::new().add_modifier(Modifier::DIM),
            Ink::Hand => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            Ink::Timers => Style::new().fg(Color::Green),
            Ink::Ready => Style::new().fg(Color::Magenta),
        };
        match colours {
            true => style,
            false => Style { fg: None, ..style },
        }
    }
}

/// Writes into one area of a buffer. Positions count from its upper left corner; what does
/// not fit is cut off.
#[derive(Debug)]
pub struct Pen<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    colours: bool,
}

impl<'a> Pen<'a> {
    /// Creates a pen for the part of `area` that lies in the buffer.
    pub fn new(buffer: &'a mut Buffer, area: Rect, colours: bool) -> Pen<'a> {
        let area = area.intersection(buffer.area);
        Pen {
            buffer,
            area,
            colours,
        }
    }

    /// Returns a pen for a part of this pen's area.
    pub fn part(&mut self, x: u16, y: u16, width: u16, height: u16) -> Pen<'_> {
        let (left, top) = (self.area.x.saturating_add(x), self.area.y.saturating_add(y));
        let part = Rect::new(left, top, width, height).intersection(self.area);
        Pen::new(self.buffer, part, self.colours)
    }

    /// Returns the width of the area.
    #[must_use]
    pub fn width(&self) -> u16 {
        self.area.width
    }

    /// Returns the height of the area.
    #[must_use]
    pub fn height(&self) -> u16 {
        self.area.height
    }

    /// Writes a text.
    pub fn text(&mut self, x: u16, y: u16, text: impl AsRef<str>, ink: Ink) {
        if x < self.area.width && y < self.area.height {
            let room = usize::from(self.area.width - x);
            let style = ink.style(self.colours);
            let (left, top) = (self.area.x + x, self.area.y + y);
            let (end, _) = self.buffer.set_stringn(left, top, text, room, style);
            for x in left..end {
                // Without what was written here before.
                let cell = &mut self.buffer[(x, top)];
                (cell.fg, cell.modifier) = (style.fg.unwrap_or_default(), style.add_modifier);
            }
        }
    }

    /// Writes a text that ends before column `end`.
    pub fn text_before(&mut self, end: u16, y: u16, text: impl AsRef<str>, ink: Ink) {
        let width = text.as_ref().chars().count() as u16;
        self.text(end.saturating_sub(width), y, text, ink);
    }

    /// Writes a text if the whole of it fits.
    pub fn text_if_it_fits(&mut self, x: u16, y: u16, text: impl AsRef<str>, ink: Ink) {
        let width = text.as_ref().chars().count();
        if usize::from(x) + width <= usize::from(self.area.width) {
            self.text(x, y, text, ink);
        }
    }

    /// Draws a rule across the area, with a title in it.
    pub fn rule(&mut self, y: u16, title: &str) {
        self.text(0, y, "─".repeat(usize::from(self.area.width)), Ink::Faint);
        self.text(1, y, format!(" {title} "), Ink::Title);
    }

    /// Draws a bar whose length is `part` of `whole`, at least an eighth of a column if
    /// there is anything.
    pub fn bar(&mut self, x: u16, y: u16, width: u16, part: u64, whole: u64, ink: Ink) {
        if part == 0 || width == 0 || x + width > self.area.width {
            return;
        }
        let eighths = u64::from(width) * 8;
        let filled = (u128::from(part) * u128::from(eighths) / u128::from(whole)) as u64;
        let filled = filled.clamp(1, eighths) as usize;
        let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][filled % 8];
        self.text(x, y, "█".repeat(filled / 8) + rest, ink);
    }
}
