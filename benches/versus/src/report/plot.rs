//! One picture per workload, with a panel for each view.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use super::views::{Kind, in_order, views};
use super::{Answer, dots, lines};
use crate::case::Row;

pub type Drawn = Result<(), Box<dyn Error>>;
pub type Panel<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

const WIDTH: u32 = 900;
const PANEL_HEIGHT: u32 = 340;

/// What a logarithmic scale shows for zero and less.
const LEAST: f64 = 0.1;

pub fn plots(directory: &Path, rows: &[Row]) -> Drawn {
    let answers: Vec<Answer<'_>> = rows.iter().filter_map(Answer::of).collect();
    for workload in in_order(answers.iter().map(|answer| answer.row.workload)) {
        let of_it = |answer: &&Answer<'_>| answer.row.workload == workload;
        let answers: Vec<&Answer<'_>> = answers.iter().filter(of_it).collect();
        plot(
            &directory.join(format!("{workload}.svg")),
            workload,
            &answers,
        )?;
    }
    Ok(())
}

fn plot(file: &Path, workload: &str, answers: &[&Answer<'_>]) -> Drawn {
    let views = views(workload, answers);
    let height = PANEL_HEIGHT * views.len() as u32;
    let root = SVGBackend::new(file, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    for (panel, view) in root.split_evenly((views.len(), 1)).iter().zip(&views) {
        match view.kind {
            Kind::Dots => dots::draw(panel, view)?,
            Kind::OverSize | Kind::OverThreads => lines::draw(panel, view)?,
        }
    }
    root.present()?;
    Ok(())
}

/// A value as a logarithmic scale can show it.
pub fn shown(value: f64) -> f64 {
    value.max(LEAST)
}

/// From half the least to twice the greatest of all values.
pub fn scale(answers: &[&Answer<'_>]) -> std::ops::Range<f64> {
    let mins = answers.iter().map(|answer| shown(answer.summary.min));
    let maxs = answers.iter().map(|answer| shown(answer.summary.max));
    let least = mins.fold(f64::INFINITY, f64::min);
    let greatest = maxs.fold(LEAST, f64::max);
    least / 2.0..greatest * 2.0
}

/// No reds and no greys, and none too pale for a thin line on white.
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

/// Red is tickwheel, grey a floor. Rivals are told apart by their index where
/// they have one.
pub fn color(engine: &str, index: Option<usize>) -> RGBAColor {
    match engine {
        "tickwheel wheel" => RGBColor(255, 0, 0).to_rgba(),
        "tickwheel engine" => RGBColor(160, 0, 0).to_rgba(),
        floor if floor.starts_with("floor") => RGBColor(150, 150, 150).to_rgba(),
        _ => match index {
            Some(index) => RIVALS[index % RIVALS.len()].to_rgba(),
            None => BLUE.to_rgba(),
        },
    }
}
