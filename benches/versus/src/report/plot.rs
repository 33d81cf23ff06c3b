//! Draws one picture per workload, with a panel for each view, and one of the ten rows that
//! users ask about.

use std::fs;
use std::path::Path;

use plotters::prelude::*;

use super::answer::Answer;
use super::canvas::Drawn;
use super::views::{Kind, in_order, views};
use super::{bars, dots, lines};
use crate::args::Workload;
use crate::case::Row;

const WIDTH: u32 = 900;
const PANEL_HEIGHT: u32 = 340;

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
    if let Some(picture) = bars::draw(&answers) {
        fs::write(directory.join("front.svg"), picture)?;
    }
    Ok(())
}

fn plot(file: &Path, workload: Workload, answers: &[&Answer<'_>]) -> Drawn {
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
