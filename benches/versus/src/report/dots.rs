//! Draws a dot per engine, with its spread, on a logarithmic scale.

use plotters::prelude::*;

use super::canvas::{Drawn, Panel, color, scale, shown};
use super::views::View;

pub fn draw(panel: &Panel<'_>, view: &View<'_>) -> Drawn {
    let mut answers = view.answers.clone();
    answers.sort_by(|a, b| b.summary.median.total_cmp(&a.summary.median));
    let values = scale(&answers);
    let mut chart = ChartBuilder::on(panel)
        .caption(&view.title, ("sans-serif", 16))
        .margin(10)
        .margin_left(220)
        .x_label_area_size(30)
        .build_cartesian_2d(values.log_scale(), -0.5..answers.len() as f64 - 0.5)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .draw()?;
    for (index, answer) in answers.iter().enumerate() {
        let summary = answer.summary;
        let height = index as f64;
        let color = color(answer.row.engine, None);
        let ends = [summary.min, summary.max].map(|value| (shown(value), height));
        chart.draw_series(LineSeries::new(ends, color.stroke_width(2)))?;
        let median = (shown(summary.median), height);
        chart.draw_series([Circle::new(median, 5, color.filled())])?;
        let (_, y) = chart.backend_coord(&median);
        name(panel, y, answer.row.engine)?;
    }
    Ok(())
}

/// Draws an engine's name beside its dot. `y` counts from the top of the picture.
fn name(panel: &Panel<'_>, y: i32, engine: &str) -> Drawn {
    let (_, top) = panel.get_base_pixel();
    let place = (15, y - top - 7);
    panel.draw(&Text::new(engine.to_owned(), place, ("sans-serif", 13)))?;
    Ok(())
}
