//! The pictures of docs/PERFORMANCE.md: the ten rows as bars, and lines over the number of
//! timers and of threads. Each can be read on a phone, and on a dark page.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::case::{Row, label};
use crate::table::{FRONT, number};

type Drawn = Result<(), Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Colours on a light page, and what they become on a dark one.
const PAPER: RGBColor = RGBColor(255, 255, 255);
const INK: RGBColor = RGBColor(31, 35, 40);
const FAINT: RGBColor = RGBColor(101, 109, 118);
const RULE: RGBColor = RGBColor(208, 215, 222);
const RED: RGBColor = RGBColor(207, 34, 46);
const ORANGE: RGBColor = RGBColor(149, 56, 0);
const BLUE: RGBColor = RGBColor(9, 105, 218);
const GREEN: RGBColor = RGBColor(26, 127, 55);
const VIOLET: RGBColor = RGBColor(130, 80, 223);
const DARK: [(&str, &str); 9] = [
    ("#FFFFFF", "#0D1117"),
    ("#1F2328", "#E6EDF3"),
    ("#656D76", "#8D96A0"),
    ("#D0D7DE", "#30363D"),
    ("#CF222E", "#FF7B72"),
    ("#953800", "#FFA657"),
    ("#0969DA", "#58A6FF"),
    ("#1A7F37", "#3FB950"),
    ("#8250DF", "#BC8CFF"),
];

/// Little, so that a phone need not make letters smaller.
const WIDTH: u32 = 420;

/// A chart: the rows of one workload and unit, over the numbers of timers or of threads.
struct Chart {
    title: &'static str,
    workload: &'static str,
    unit: &'static str,
    /// The only number of timers, if the axis has the threads.
    over_threads_at: Option<usize>,
    lines: &'static [Series],
}

/// A metric, an engine, and the colour and the name of its line.
type Series = (&'static str, &'static str, RGBColor, &'static str);

#[rustfmt::skip]
const PAIR: [Chart; 2] = [
    Chart {
        title: "Cancel and schedule, over timers in the background",
        workload: "pair",
        unit: "ns",
        over_threads_at: None,
        lines: &[
            ("background, shared", "tickwheel", RED, "tickwheel engine"),
            ("background, one owner", "tickwheel", ORANGE, "tickwheel wheel"),
            ("background, shared", "tokio", BLUE, "tokio"),
            ("background, one owner", "BTreeMap", GREEN, "BTreeMap"),
            ("background, one owner", "timer-queue", VIOLET, "timer-queue"),
        ],
    },
    Chart {
        title: "Cancel and schedule, over threads (two cores)",
        workload: "pair",
        unit: "ns",
        over_threads_at: Some(1_024),
        lines: &[
            ("shared", "tickwheel", RED, "tickwheel engine"),
            ("shared", "tokio", BLUE, "tokio"),
            ("shared", "Mutex<BTreeMap> per thread", GREEN, "BTreeMaps"),
            ("shared", "Mutex<tm-wheel> per thread", ORANGE, "tm-wheels"),
            ("shared", "hash-wheel thread", VIOLET, "hash-wheel"),
        ],
    },
];

#[rustfmt::skip]
const MEMORY: [Chart; 2] = [
    Chart {
        title: "Memory of a live timer, over live timers",
        workload: "memory",
        unit: "B",
        over_threads_at: None,
        lines: &[
            ("live, shared", "tickwheel", RED, "tickwheel engine"),
            ("live, one owner", "tickwheel", ORANGE, "tickwheel wheel"),
            ("live, shared", "tokio", BLUE, "tokio"),
            ("live, one owner", "BTreeMap", GREEN, "BTreeMap"),
            ("live, one owner", "tm-wheel", VIOLET, "tm-wheel"),
        ],
    },
    Chart {
        title: "The same after 90 % were cancelled",
        workload: "memory",
        unit: "B",
        over_threads_at: None,
        lines: &[
            ("after 90 % cancelled, shared", "tickwheel", RED, "tickwheel engine"),
            ("the same, given back, shared", "tickwheel", ORANGE, "… after shrink"),
            ("after 90 % cancelled, shared", "tokio", BLUE, "tokio"),
            ("after 90 % cancelled, one owner", "BTreeMap", GREEN, "BTreeMap"),
            ("after 90 % cancelled, one owner", "tm-wheel", VIOLET, "tm-wheel"),
        ],
    },
];

/// Draws the pictures whose rows were measured.
pub fn all(folder: &Path, rows: &[Row]) -> Drawn {
    fs::create_dir_all(folder)?;
    if FRONT.iter().all(|asked| asked.find(rows).is_some()) {
        picture(&folder.join("front.svg"), 44 * FRONT.len() as u32 + 12, |area| bars(area, rows))?;
    }
    for (name, charts) in [("pair", &PAIR), ("memory", &MEMORY)] {
        let mut lines = charts.iter().flat_map(|chart| chart.lines(rows));
        if lines.all(|line| line.len() > 1) {
            picture(&folder.join(format!("{name}.svg")), 600, |area| {
                let halves = area.split_evenly((charts.len(), 1));
                charts.iter().zip(&halves).try_for_each(|(chart, half)| chart.draw(half, rows))
            })?;
        }
    }
    Ok(())
}

/// Draws on paper, and lets the paper and the ink change with the reader's page.
fn picture(file: &Path, height: u32, draw: impl FnOnce(&Area<'_>) -> Drawn) -> Drawn {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        area.fill(&PAPER)?;
        draw(&area)?;
        area.present()?;
    }
    let rule = |(light, dark): &(&str, &str)| {
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    };
    let rules: String = DARK.iter().map(rule).collect();
    let style = format!("<style>@media(prefers-color-scheme:dark){{{rules}}}</style>");
    let end_of_tag = svg.find('>').ok_or("no element")? + 1;
    svg.insert_str(end_of_tag, &style);
    fs::write(file, svg)?;
    Ok(())
}

fn font(size: u32, color: RGBColor) -> TextStyle<'static> {
    let middle = Pos::new(HPos::Left, VPos::Center);
    ("system-ui, sans-serif", size).into_font().color(&color).pos(middle)
}

/// Draws two bars for each of the ten rows, as long as its figures.
fn bars(area: &Area<'_>, rows: &[Row]) -> Drawn {
    for (index, asked) in FRONT.iter().enumerate() {
        let ours = asked.find(rows).expect("all ten rows were measured");
        let both = [Some(ours), ours.best_rival(rows)];
        let longest = both.iter().flatten().map(|row| row.median()).fold(0.0, f64::max);
        let top = 8 + 44 * index as i32;
        area.draw_text(asked.question, &font(16, INK), (10, top + 6))?;
        for (row, (color, top)) in
            both.into_iter().flatten().zip([(RED, top + 15), (FAINT, top + 27)])
        {
            let end = 10 + (170.0 * row.median() / longest) as i32;
            let bar = Rectangle::new([(10, top), (end, top + 9)], color.filled());
            area.draw(&bar)?;
            let text = format!("{} {} {}", number(row.median()), row.unit, row.engine);
            area.draw_text(&text, &font(15, INK), (end + 6, top + 5))?;
        }
    }
    Ok(())
}

/// The values of a line, by the steps of the axis.
type Line = BTreeMap<usize, f64>;

impl Chart {
    fn lines(&self, rows: &[Row]) -> Vec<Line> {
        let place = |row: &Row| match self.over_threads_at {
            Some(size) => (row.size == size).then_some(row.threads),
            None => (row.threads == 1).then_some(row.size),
        };
        let of = |&(metric, engine, ..): &Series| {
            let of_line = rows.iter().filter(|row| {
                (&*row.workload, &*row.metric, &*row.engine) == (self.workload, metric, engine)
            });
            let points = of_line.filter_map(|row| Some((place(row)?, row.median())));
            points.collect()
        };
        self.lines.iter().map(of).collect()
    }

    fn draw(&self, area: &Area<'_>, rows: &[Row]) -> Drawn {
        let lines = self.lines(rows);
        let points = || lines.iter().flatten();
        let steps: Vec<usize> =
            BTreeSet::from_iter(points().map(|(step, _)| *step)).into_iter().collect();
        let least = points().map(|(_, value)| *value).fold(f64::MAX, f64::min);
        // So that the axis has two numbers at least.
        let decade = 10_f64.powf(least.log10().floor());
        let greatest = points().map(|(_, value)| *value).fold(0.0, f64::max);
        area.draw_text(self.title, &font(18, INK), (10, 16))?;
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .margin_top(34)
            .margin_right(128)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(0..steps.len() as i32 - 1, (decade..greatest * 1.5).log_scale())?;
        let axis = if self.over_threads_at.is_some() { "threads" } else { "timers" };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(RULE)
            .light_line_style(TRANSPARENT)
            .axis_style(FAINT)
            .label_style(font(15, FAINT))
            .x_labels(steps.len())
            .y_labels(4)
            .x_label_formatter(&|place| {
                steps.get(*place as usize).map_or(String::new(), |step| label(*step))
            })
            .y_label_formatter(&|value| {
                format!("{} {}", number(*value).trim_end_matches(".0"), self.unit)
            })
            .x_desc(axis)
            .draw()?;
        let mut labels = Vec::new();
        for (line, &(.., color, name)) in lines.iter().zip(self.lines) {
            let place = |step| steps.partition_point(|it| it < step) as i32;
            let points = line.iter().map(|(step, value)| (place(step), *value));
            let end = points.clone().next_back().ok_or("a line without points")?;
            labels.push((chart.backend_coord(&end).1, name, color));
            let line = LineSeries::new(points, color.stroke_width(2));
            chart.draw_series(line.point_size(3))?;
        }
        let (_, above) = area.get_base_pixel();
        labels.sort_unstable_by_key(|label| label.0);
        let mut free = 0;
        for (y, name, color) in labels {
            let y = (y - above).max(free);
            free = y + 15;
            area.draw_text(name, &font(15, color), (WIDTH as i32 - 122, y))?;
        }
        Ok(())
    }
}
