//! What every panel is drawn on and with: the area, the scale of its values and
//! the colours of its engines. Knows of no kind of panel.

use std::error::Error;
use std::ops::Range;

use plotters::prelude::*;

use super::answer::Answer;

pub type Drawn = Result<(), Box<dyn Error>>;
pub type Panel<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// The smallest value on a logarithmic scale, which has no zero.
const LEAST: f64 = 0.1;

/// Returns a value as a logarithmic scale can show it.
pub fn shown(value: f64) -> f64 {
    value.max(LEAST)
}

/// Returns the scale, from half the least to twice the greatest of all values.
pub fn scale(answers: &[&Answer<'_>]) -> Range<f64> {
    let mins = answers.iter().map(|answer| shown(answer.summary.min));
    let maxs = answers.iter().map(|answer| shown(answer.summary.max));
    let least = mins.fold(f64::INFINITY, f64::min);
    let greatest = maxs.fold(LEAST, f64::max);
    least / 2.0..greatest * 2.0
}

/// Neither red nor grey, nor too pale for a thin line on white.
const RIVALS: [RGBColor; 12] = [
    RGBColor(31, 119, 180),
    RGBColor(44, 140, 44),
    RGBColor(255, 127, 14),
    RGBColor(128, 62, 189),
    RGBColor(23, 170, 190),
    RGBColor(140, 86, 75),
    RGBColor(220, 60, 170),
    RGBColor(150, 150, 20),
    RGBColor(20, 40, 120),
    RGBColor(0, 90, 60),
    RGBColor(200, 150, 0),
    RGBColor(90, 200, 90),
];

/// Red for tickwheel, grey for a floor. A rival with an index has a colour of
/// its own.
pub fn color(engine: &str, index: Option<usize>) -> RGBAColor {
    match engine {
        "tickwheel wheel" | "tickwheel sleep" => RGBColor(255, 0, 0).to_rgba(),
        "tickwheel engine" | "tickwheel sleep, driven" => RGBColor(160, 0, 0).to_rgba(),
        "tickwheel engine, many" => RGBColor(230, 120, 0).to_rgba(),
        floor if floor.starts_with("floor") => RGBColor(150, 150, 150).to_rgba(),
        _ => match index {
            Some(index) => RIVALS[index % RIVALS.len()].to_rgba(),
            None => BLUE.to_rgba(),
        },
    }
}
