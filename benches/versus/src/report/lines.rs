//! Draws a line per engine through the medians, over the size or the number of threads,
//! on logarithmic scales. Bars reach from the fastest to the slowest round.

use plotters::prelude::*;

use super::answer::{Answer, label};
use super::canvas::{Drawn, Panel, color, scale, shown};
use super::views::{View, in_order};
use crate::case::Summary;

/// The width of the ends of an error bar.
const BAR_WIDTH: u32 = 6;

pub fn draw(panel: &Panel<'_>, view: &View<'_>) -> Drawn {
    let View { kind, answers, .. } = view;
    let places = || answers.iter().map(|answer| kind.place(answer) as f64);
    let least = places().fold(f64::INFINITY, f64::min);
    let greatest = places().fold(1.0, f64::max);
    let values = scale(answers);
    let mut chart = ChartBuilder::on(panel)
        .caption(&view.title, ("sans-serif", 16))
        .margin(10)
        .margin_right(220)
        .x_label_area_size(30)
        .y_label_area_size(60)
        .build_cartesian_2d(
            (least * 0.9..greatest * 1.1).log_scale(),
            values.log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_label_formatter(&|place| label(place.round() as usize))
        .light_line_style(TRANSPARENT)
        .draw()?;
    let engines = in_order(answers.iter().map(|answer| answer.row.engine));
    for (index, engine) in engines.into_iter().enumerate() {
        let color = color(engine, Some(index)).stroke_width(2);
        let of_it = |answer: &&&Answer<'_>| answer.row.engine == engine;
        let point = |answer: &&Answer<'_>| {
            let place = kind.place(answer) as f64;
            (place, shown(answer.summary.median))
        };
        let points: Vec<(f64, f64)> = answers.iter().filter(of_it).map(point).collect();
        chart.draw_series(LineSeries::new(points.iter().copied(), color).point_size(3))?;
        let spread = |answer: &&Answer<'_>| {
            let Summary {
                min, median, max, ..
            } = answer.summary;
            let [min, median, max] = [min, median, max].map(|&value| shown(value));
            let place = kind.place(answer) as f64;
            ErrorBar::new_vertical(place, min, median, max, color, BAR_WIDTH)
        };
        let bars: Vec<_> = answers.iter().filter(of_it).map(spread).collect();
        chart.draw_series(bars)?;
        name(panel, index, engine)?;
    }
    Ok(())
}

/// Draws an entry of the legend, in the margin.
fn name(panel: &Panel<'_>, index: usize, engine: &str) -> Drawn {
    let (width, _) = panel.dim_in_pixel();
    let left = width as i32 - 210;
    let top = 45 + 20 * index as i32;
    let color = color(engine, Some(index)).filled();
    panel.draw(&Rectangle::new([(left, top), (left + 14, top + 4)], color))?;
    let place = (left + 20, top - 5);
    panel.draw(&Text::new(engine.to_owned(), place, ("sans-serif", 13)))?;
    Ok(())
}
