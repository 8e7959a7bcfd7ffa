use super::verdict::capital;
use super::{Column, Figure, Page};
use crate::picture::{Axis, Bars, DotRow, Dots, Estimate, Group, Heading, Line, Lines, Point, Unit};
use maud::{Markup, PreEscaped, html};

/// Half of a wide page; readable on a telephone.
const WIDTH: f64 = 480.0;

pub fn all(page: &Page) -> Markup {
    let names = page.figure_names();
    let mut charts: Vec<String> = names.first().map(|name| ratios(page, name)).into_iter().collect();
    let (of_hugepages, of_memory): (Vec<&str>, Vec<&str>) =
        names.iter().filter(|name| unit(page, name) == Some(Unit::Bytes)).partition(|name| is_on_hugepages(name));
    for (of_bytes, title) in [(of_memory, "Memory"), (of_hugepages, "Memory on hugepages")] {
        if !of_bytes.is_empty() {
            charts.push(bars(page, &of_bytes, title, Unit::Bytes));
        }
    }
    if page.allocators.iter().any(|column| !column.rss.is_empty()) {
        charts.push(over_time(page));
    }
    for name in names {
        if let Some(unit) = unit(page, name).filter(|unit| *unit != Unit::Bytes) {
            charts.push(bars(page, &[name], &capital(name), unit));
        }
    }
    html! {
        @if !charts.is_empty() {
            section {
                h2 { "Charts" }
                div.charts { @for chart in charts { figure { (PreEscaped(chart)) } } }
            }
        }
    }
}

fn figure<'a>(column: &'a Column, name: &str) -> Option<&'a Figure> {
    column.figures.iter().find(|figure| figure.name == name)
}

fn unit(page: &Page, name: &str) -> Option<Unit> {
    page.allocators.iter().find_map(|column| figure(column, name)).map(|figure| figure.unit)
}

/// As a figure's ratios are coloured.
fn more_is_better(page: &Page, name: &str) -> bool {
    page.allocators.iter().find_map(|column| figure(column, name)).is_some_and(|figure| figure.more_is_better)
}

/// More is better here, too; but no verdict counts it.
fn is_on_hugepages(name: &str) -> bool {
    name.contains("hugepage")
}

fn heading(page: &Page, title: String, subtitle: String) -> Heading {
    let short = page.commit.get(..12).unwrap_or(&page.commit);
    let cpu = page.machine.first().map_or("", |(_, value)| value.as_str());
    let known: Vec<&str> = [cpu, short, &page.measured].into_iter().filter(|part| !part.is_empty()).collect();
    Heading { title, subtitle, source: known.join(" · ") }
}

fn ratios(page: &Page, name: &str) -> String {
    let row = |column: &Column| {
        let figure = figure(column, name);
        let base = column.name == page.base;
        let note = match figure {
            _ if base => "1, the base".to_owned(),
            None => "no figure".to_owned(),
            Some(figure) if figure.ratio.is_none() => "no ratio".to_owned(),
            Some(_) => String::new(),
        };
        DotRow {
            name: column.name.clone(),
            allocator: column.name.clone(),
            estimate: if base { Some(Estimate::exact(1.0)) } else { figure.and_then(|figure| figure.ratio) },
            runs: if base { Vec::new() } else { figure.map_or_else(Vec::new, |figure| figure.round_ratios.clone()) },
            note,
        }
    };
    let title = format!("{} compared with {}", capital(name), page.base);
    let good = if more_is_better(page, name) { "right is more, and better" } else { "left is less, and better" };
    let subtitle = format!("ratio with its 95 % interval; small ticks are single rounds; {good}");
    let chart = Dots {
        heading: heading(page, title, subtitle),
        axis: Axis::log(format!("{name} ({} = 1)", page.base), Unit::Ratio),
        rows: page.allocators.iter().map(row).collect(),
        reference: Some(1.0),
        width_px: WIDTH,
    };
    chart.svg()
}

fn bars(page: &Page, names: &[&str], title: &str, unit: Unit) -> String {
    let bar = |column: &Column, name: &str| {
        figure(column, name).map(|figure| Estimate::between(figure.median, figure.min, figure.max))
    };
    let group = |name: &&str| Group {
        name: (*name).to_owned(),
        bars: page.allocators.iter().map(|column| bar(column, name)).collect(),
    };
    let more = names.iter().all(|name| is_on_hugepages(name) || more_is_better(page, name));
    let better = if more { "more" } else { "less" };
    let subtitle = format!("median of the runs, from the smallest to the largest; {better} is better");
    let chart = Bars {
        heading: heading(page, title.to_owned(), subtitle),
        axis: Axis::linear(if names.len() == 1 { names[0] } else { "memory" }, unit),
        series: page.allocators.iter().map(|column| column.name.clone()).collect(),
        groups: names.iter().map(group).collect(),
        reference: None,
        width_px: WIDTH,
    };
    chart.svg()
}

fn over_time(page: &Page) -> String {
    let sampled = page.allocators.iter().filter(|column| !column.rss.is_empty());
    let line = |column: &Column| Line {
        name: column.name.clone(),
        points: column.rss.iter().map(|(at, bytes)| Point::new(*at, *bytes)).collect(),
    };
    let chart = Lines {
        heading: heading(page, "Resident memory over time".to_owned(), "one representative run of each".to_owned()),
        x: Axis::linear("time since the start", Unit::Seconds),
        y: Axis::linear("resident memory", Unit::Bytes),
        series: sampled.map(line).collect(),
        reference: None,
        width_px: WIDTH,
    };
    chart.svg()
}
