//! A buffer of cells as an SVG picture.
//!
//! The picture has a background of its own and two sets of colours, for readers whose
//! pages are light and for those whose pages are dark. Blocks, rules and the signs of the
//! levels are drawn as shapes, because fonts disagree about them.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// The size of a cell, and of the text in it.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 17.0;
const FONT: f64 = 14.0;
const MARGIN: f64 = 12.0;

const STYLE: &str = "\
.p{fill:#fff;stroke:#d0d7de}\
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}\
.b{font-weight:700}\
.t{fill:#1f2328}.f{fill:#656d76}.r{fill:#cf222e}.g{fill:#1a7f37}.m{fill:#8250df}\
line.t{stroke:#1f2328}line.f{stroke:#8c959f}line.g{stroke:#1a7f37}line.r{stroke:#cf222e}line.m{stroke:#8250df}\
@media(prefers-color-scheme:dark){\
.p{fill:#0d1117;stroke:#30363d}\
.t{fill:#e6edf3}.f{fill:#8d96a0}.r{fill:#ff7b72}.g{fill:#3fb950}.m{fill:#d2a8ff}\
line.t{stroke:#e6edf3}line.f{stroke:#6e7681}line.g{stroke:#3fb950}line.r{stroke:#ff7b72}line.m{stroke:#d2a8ff}}";

/// Renders a buffer. The title is the name of the picture; the description says what is to
/// be seen, for readers who do not see it.
#[must_use]
pub fn render(buffer: &Buffer, title: &str, description: &str) -> String {
    let area = buffer.area;
    let width = f64::from(area.width) * WIDTH + 2.0 * MARGIN;
    let height = f64::from(area.height) * HEIGHT + 2.0 * MARGIN;
    let mut svg = String::new();
    let (title, description) = (escape(title), escape(description));
    writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="t d" viewBox="0 0 {width:.1} {height:.1}" width="{width:.0}" height="{height:.0}">
<title id="t">{title}</title>
<desc id="d">{description}</desc>
<style>{STYLE}</style>
<rect class="p" x="0.5" y="0.5" width="{:.1}" height="{:.1}" rx="6"/>"#,
        width - 1.0,
        height - 1.0
    )
    .expect("a string accepts all");
    for y in 0..area.height {
        let row = (0..area.width).map(|x| &buffer[(area.x + x, area.y + y)]);
        Line::new(&mut svg, y).draw(&row.collect::<Vec<_>>());
    }
    svg.push_str("</svg>\n");
    svg
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

/// The class of a cell's colour, and whether it is bold.
fn class(cell: &Cell) -> (&'static str, bool) {
    let class = match cell.fg {
        Color::Red => "r",
        Color::Green => "g",
        Color::Magenta => "m",
        _ if cell.modifier.contains(Modifier::DIM) => "f",
        _ => "t",
    };
    (class, cell.modifier.contains(Modifier::BOLD))
}

/// One line of cells.
struct Line<'a> {
    svg: &'a mut String,
    top: f64,
}

impl Line<'_> {
    fn new(svg: &mut String, y: u16) -> Line<'_> {
        Line {
            svg,
            top: MARGIN + f64::from(y) * HEIGHT,
        }
    }

    fn draw(&mut self, cells: &[&Cell]) {
        let mut x = 0;
        while x < cells.len() {
            let cell = cells[x];
            let same =
                |other: &&&Cell| other.symbol() == cell.symbol() && class(other) == class(cell);
            let repeated = cells[x..].iter().take_while(same).count();
            let left = MARGIN + x as f64 * WIDTH;
            x += match cell.symbol() {
                " " => repeated,
                "─" => self.rule(left, repeated, class(cell).0),
                symbol if self.shape(symbol, left, class(cell).0) => 1,
                _ => self.text(left, &cells[x..]),
            };
        }
    }

    fn rule(&mut self, left: f64, cells: usize, class: &str) -> usize {
        self.line(class, left, 0.5, left + cells as f64 * WIDTH, 0.5);
        cells
    }

    /// Draws a line; the heights are parts of the line's height.
    fn line(&mut self, class: &str, left: f64, from: f64, right: f64, to: f64) {
        let (from, to) = (self.top + from * HEIGHT, self.top + to * HEIGHT);
        self.push(format_args!(
            r#"<line class="{class}" x1="{left:.1}" y1="{from:.1}" x2="{right:.1}" y2="{to:.1}"/>"#
        ));
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.svg, "{element}").expect("a string accepts all");
    }

    /// Draws a symbol that is a shape. Returns whether it is one.
    fn shape(&mut self, symbol: &str, left: f64, class: &str) -> bool {
        let mut symbol = symbol.chars();
        let (Some(symbol), None) = (symbol.next(), symbol.next()) else {
            return false;
        };
        match symbol {
            '▁'..='█' => self.block(symbol as u32 - '▁' as u32 + 1, left, class),
            '▉'..='▏' => self.bar('▏' as u32 - symbol as u32 + 1, left, class),
            '·' => self.circle(left, 1.1, class),
            '●' => self.circle(left, 3.6, class),
            '▼' => self.hand(left, class),
            '▶' => self.arrow(left, class),
            _ => return self.corner(symbol, left, class),
        }
        true
    }

    /// Draws a block of so many eighths of the line's height.
    fn block(&mut self, eighths: u32, left: f64, class: &str) {
        let height = HEIGHT * f64::from(eighths) / 8.0;
        let top = self.top + HEIGHT - height;
        let width = WIDTH - 0.6;
        self.push(format_args!(
            r#"<rect class="{class}" x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}"/>"#
        ));
    }

    /// Draws a block of so many eighths of a cell's width.
    fn bar(&mut self, eighths: u32, left: f64, class: &str) {
        let width = WIDTH * f64::from(eighths) / 8.0;
        let top = self.top;
        self.push(format_args!(
            r#"<rect class="{class}" x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{HEIGHT}"/>"#
        ));
    }

    fn circle(&mut self, left: f64, radius: f64, class: &str) {
        let (x, y) = (left + WIDTH / 2.0, self.top + HEIGHT / 2.0);
        self.push(format_args!(
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius}"/>"#
        ));
    }

    fn hand(&mut self, left: f64, class: &str) {
        let (right, middle) = (left + WIDTH, left + WIDTH / 2.0);
        let (top, bottom) = (self.top + 4.0, self.top + 13.0);
        self.push(format_args!(
            r#"<path class="{class}" d="M{left:.1} {top:.1}H{right:.1}L{middle:.1} {bottom:.1}Z"/>"#
        ));
    }

    fn arrow(&mut self, left: f64, class: &str) {
        let (right, middle) = (left + WIDTH, self.top + HEIGHT / 2.0);
        let (top, bottom) = (middle - 4.5, middle + 4.5);
        self.push(format_args!(
            r#"<path class="{class}" d="M{left:.1} {top:.1}V{bottom:.1}L{right:.1} {middle:.1}Z"/>"#
        ));
    }

    /// Draws a corner or a crossing of rules. Returns whether the symbol is one.
    fn corner(&mut self, symbol: char, left: f64, class: &str) -> bool {
        // Left, right, up, down.
        let arms = match symbol {
            '│' => [false, false, true, true],
            '┌' => [false, true, false, true],
            '┐' => [true, false, false, true],
            '└' => [false, true, true, false],
            '┘' => [true, false, true, false],
            '├' => [false, true, true, true],
            '┤' => [true, false, true, true],
            '┬' => [true, true, false, true],
            '┴' => [true, true, true, false],
            '┼' => [true, true, true, true],
            _ => return false,
        };
        let middle = left + WIDTH / 2.0;
        let ends = [
            (left, 0.5),
            (left + WIDTH, 0.5),
            (middle, 0.0),
            (middle, 1.0),
        ];
        for ((x, y), _) in ends.into_iter().zip(arms).filter(|&(_, drawn)| drawn) {
            self.line(class, middle, 0.5, x, y);
        }
        true
    }

    /// Draws the text from here to the next gap, shape or change of style. Returns the
    /// number of its cells.
    fn text(&mut self, left: f64, cells: &[&Cell]) -> usize {
        let (class, bold) = class(cells[0]);
        let mut text = String::new();
        let mut length = 0;
        for (place, cell) in cells.iter().enumerate() {
            let next = cells.get(place + 1).map_or(" ", |next| next.symbol());
            let is_gap = cell.symbol() == " " && next == " ";
            if is_gap || is_shape(cell.symbol()) || self::class(cell) != (class, bold) {
                break;
            }
            text.push_str(cell.symbol());
            length += 1;
        }
        let trimmed = text.trim_end();
        let shown = trimmed.chars().count();
        let width = shown as f64 * WIDTH;
        let base = self.top + (HEIGHT + FONT) / 2.0 - 3.0;
        let bold = if bold { " b" } else { "" };
        let text = escape(trimmed);
        self.push(format_args!(
            r#"<text class="{class}{bold}" x="{left:.1}" y="{base:.1}" textLength="{width:.1}" lengthAdjust="spacingAndGlyphs">{text}</text>"#
        ));
        length.max(1)
    }
}

fn is_shape(symbol: &str) -> bool {
    const SHAPES: &str = "·●▼▶─│┌┐└┘├┤┬┴┼";
    let is_block = |c: char| ('▁'..='▏').contains(&c);
    symbol.chars().all(|c| is_block(c) || SHAPES.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;

    #[test]
    fn text_is_escaped_and_keeps_its_place() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
        buffer.set_string(2, 0, "a < b", ratatui::style::Style::new());
        let svg = render(&buffer, "a & b", "<nothing>");
        assert!(svg.contains(">a &lt; b</text>"), "{svg}");
        assert!(svg.contains(r#"x="28.8""#), "{svg}");
        assert!(svg.contains("<title id=\"t\">a &amp; b</title>"));
        assert!(!svg.contains("<nothing>"));
    }

    #[test]
    fn blocks_are_shapes() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
        buffer.set_string(0, 0, "▁▄█▏▌▼▶●·│┼──", ratatui::style::Style::new());
        let svg = render(&buffer, "", "");
        assert!(!svg.contains("<text"), "{svg}");
    }
}
