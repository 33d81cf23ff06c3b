//! Draws a busy engine as the terminal shows it, for `docs/pictures/viewer.svg`.
//!
//! ```text
//! cargo run -p tickwheel-see --example picture > docs/pictures/viewer.svg
//! ```

use std::time::Duration;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use tickwheel_see::{Playground, Settings, Viewer};

/// A cell of the terminal.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;

const STYLE: &str = "text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}\
.p{fill:#fff;stroke:#d0d7de}.b{font-weight:bold}.f{fill:#8c959f}.g{fill:#1a7f37}.m{fill:#8250df}\
.r{fill:#cf222e}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.p{fill:#0d1117;stroke:#30363d}\
.f{fill:#6e7681}.g{fill:#3fb950}.m{fill:#bc8cff}.r{fill:#ff7b72}}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut viewer = Viewer::of(Playground::start(Settings::default())?).with_colours(true);
    let area = Rect::new(0, 0, 80, 24);
    let mut buffer = Buffer::empty(area);
    // Four seconds: with more timers, a stall, and workers that rest at the end.
    for frame in 0..80 {
        let key = match frame {
            10..40 => 'a',
            55 => 'j',
            70 => 'w',
            _ => '_',
        };
        viewer.press(key);
        buffer.reset();
        viewer.frame(Duration::from_millis(50), area, &mut buffer);
    }
    println!("{}", svg(&buffer));
    Ok(())
}

fn svg(buffer: &Buffer) -> String {
    let (width, height) = (
        f64::from(buffer.area.width) * WIDTH + 24.0,
        f64::from(buffer.area.height) * HEIGHT + 24.0,
    );
    let lines = buffer.content.chunks(usize::from(buffer.area.width));
    let lines: String =
        lines.enumerate().map(|(y, cells)| line(12.0 + y as f64 * HEIGHT, cells)).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
        role=\"img\" aria-label=\"A live engine in the terminal\"><style>{STYLE}</style>\n\
        <rect class=\"p\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n{lines}</svg>",
        width - 1.0,
        height - 1.0
    )
}

/// Draws blocks as rectangles, and every other run of cells with one style as a text.
fn line(top: f64, cells: &[Cell]) -> String {
    let mut line = String::new();
    let mut x = 0;
    for run in
        cells.chunk_by(|a, b| class(a) == class(b) && eighths(a).is_some() == eighths(b).is_some())
    {
        let (left, class) = (12.0 + x as f64 * WIDTH, class(&run[0]));
        x += run.len();
        if eighths(&run[0]).is_some() {
            for (index, cell) in run.iter().enumerate() {
                let (x, height) =
                    (left + index as f64 * WIDTH, eighths(cell).unwrap_or(0.0) * HEIGHT / 8.0);
                let y = top + HEIGHT - height;
                line += &format!(
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{WIDTH}\" height=\"{height:.1}\"/>"
                );
            }
            continue;
        }
        let text: String = run.iter().map(Cell::symbol).collect();
        let blank = text.chars().take_while(|it| it.is_whitespace()).count();
        let text = text.trim().replace(' ', "\u{a0}").replace('&', "&amp;").replace('<', "&lt;");
        let (x, y) = (left + blank as f64 * WIDTH, top + 14.0);
        let length = text.replace("&lt;", "<").replace("&amp;", "&").chars().count() as f64 * WIDTH;
        if !text.is_empty() {
            line += &format!(
                "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\">{text}</text>"
            );
        }
    }
    if line.is_empty() { line } else { line + "\n" }
}

/// Returns the height of a block.
fn eighths(cell: &Cell) -> Option<f64> {
    let symbol = cell.symbol().chars().next()?;
    ('▁'..='█').contains(&symbol).then(|| f64::from(symbol as u32 - '▁' as u32 + 1))
}

fn class(cell: &Cell) -> &'static str {
    match cell.fg {
        Color::Green => "g",
        Color::Magenta => "m",
        Color::Red => "r",
        _ if cell.modifier.contains(Modifier::DIM) => "f",
        _ if cell.modifier.contains(Modifier::BOLD) => "b",
        _ => "",
    }
}
