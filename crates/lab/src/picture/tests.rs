use super::axis::Ruler;
use super::*;
use roxmltree::{Document, Node};
use std::f64::consts::E;

/// They break what does not escape, cut or measure them.
const EVIL: [&str; 4] =
    ["<&\">'", "a-name-that-is-much-longer-than-any-column-can-be-made-for-it", "", "ünïcödé 分配器"];

fn heading() -> Heading {
    Heading {
        title: "A <title> with \"quotes\" & a length that needs more than a single line of the picture to be set"
            .into(),
        subtitle: "what is drawn & how".into(),
        source:
            "machine · commit · a-command --with=a-word-without-spaces-that-is-longer-than-a-line-of-the-picture-is\
                 -wide-when-it-is-drawn -- x < y"
                .into(),
    }
}

fn names(count: usize) -> Vec<String> {
    let known = ["craton", "glibc", "jemalloc", "mimalloc", "tcmalloc", "snmalloc", "hardened_malloc", "other"];
    (0..count).map(|i| if i < 8 { known[i].to_owned() } else { format!("{}{i}", EVIL[i % 4]) }).collect()
}

fn number(seed: usize, low: f64, high: f64) -> f64 {
    let share = (seed.wrapping_mul(2_654_435_761) >> 4) % 1000;
    low + (high - low) * share as f64 / 999.0
}

fn estimate(seed: usize, low: f64, high: f64) -> Estimate {
    let value = number(seed, low, high);
    Estimate::between(value, value * 0.93, value * 1.08)
}

fn ratio_axis() -> Axis {
    Axis::log("time relative to glibc <1 & less>", Unit::Ratio)
}

fn dots(count: usize, width_px: f64) -> Dots {
    let row = |(i, name): (usize, String)| DotRow {
        allocator: name.clone(),
        name,
        estimate: (i % 7 != 4).then(|| estimate(i, 0.4, 1.8)),
        runs: (0..5).map(|run| number(i * 5 + run, 0.4, 1.8)).collect(),
        note: if i % 7 == 4 { "timed out <&>".into() } else { String::new() },
    };
    let rows = names(count).into_iter().enumerate().map(row).collect();
    Dots { heading: heading(), axis: ratio_axis(), rows, reference: Some(1.0), width_px }
}

fn bars(groups: usize, series: usize, axis: Axis, width_px: f64) -> Bars {
    let group = |g: usize| Group {
        name: if g < 4 { EVIL[g].to_owned() } else { format!("program-{g}") },
        bars: (0..series).map(|s| (g + s != 3).then(|| estimate(g * 31 + s, 0.3, 4.0))).collect(),
    };
    let groups = (0..groups).map(group).collect();
    let series = names(series);
    Bars { heading: heading(), axis, series, groups, reference: Some(1.0), width_px }
}

fn lines(count: usize, points: usize, x: Axis, width_px: f64) -> Lines {
    let point = |line: usize, i: usize| {
        let y = number(line * 97 + i, 1e6, 9e7);
        let band = (i % 5 != 2).then_some((y * 0.9, y * 1.1));
        Point { x: 8.0 * E.powf(i as f64 / 3.0), y, band }
    };
    let line = |(l, name)| Line { name, points: (0..points).map(|i| point(l, i)).collect() };
    let series = names(count).into_iter().enumerate().map(line).collect();
    let y = Axis::linear("resident memory", Unit::Bytes);
    Lines { heading: heading(), x, y, series, reference: None, width_px }
}

fn heat(rows: usize, columns: usize) -> Heat {
    let cell = |r: usize, c: usize| match (r * 7 + c * 3) % 11 {
        5 => Cell::Missing("timed out <&> after 60 seconds".into()),
        7 => Cell::Ratio(f64::NAN),
        8 => Cell::Ratio(-1.0),
        _ => Cell::Ratio(number(r * 31 + c, -3.0, 3.0).exp()),
    };
    let row = |r: usize| HeatRow { name: EVIL[r % 4].into(), cells: (0..columns).map(|c| cell(r, c)).collect() };
    let rows = (0..rows).map(row).collect();
    Heat { heading: heading(), label: "time < glibc's".into(), columns: names(columns), rows, limit: 2.0 }
}

fn scatter(count: usize, width_px: f64) -> Scatter {
    let spot = |(i, name)| Spot { name, x: estimate(i * 3 + 1, 0.7, 1.3), y: estimate(i * 5 + 2, 0.6, 1.9) };
    let spots = names(count).into_iter().enumerate().map(spot).collect();
    let (x, y) = (ratio_axis(), Axis::log("memory & more", Unit::Ratio));
    Scatter { heading: heading(), x, y, spots, corner: "less of <both>".into(), width_px }
}

fn gallery() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for width in [320.0, 480.0, 760.0] {
        for count in [1, 2, 12] {
            let mut add = |kind: &str, svg: String| all.push((format!("{kind} of {count}, {width} px"), svg));
            add("dots", dots(count, width).svg());
            add("scatter", scatter(count, width).svg());
            add("lines", lines(count, 30, Axis::linear("time", Unit::Seconds), width).svg());
            add("lines of a point", lines(count, 1, Axis::log("size", Unit::Bytes), width).svg());
            add("lines by powers", lines(count, 20, Axis::log2("size", Unit::Bytes), width).svg());
            for groups in [1, 5, 40] {
                let linear = Axis::linear("ratio", Unit::Ratio);
                add("linear bars", bars(groups, count, linear, width).svg());
                add("logarithmic bars", bars(groups, count, ratio_axis(), width).svg());
            }
        }
    }
    for (rows, columns) in [(1, 2), (2, 1), (40, 12)] {
        all.push((format!("heat {rows} × {columns}"), heat(rows, columns).svg()));
    }
    all
}

/// Left, top, right, bottom.
struct Placed {
    text: String,
    turned: bool,
    area: [f64; 4],
}

fn attribute(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|v| v.parse().ok()).unwrap_or_else(|| panic!("{name} in {node:?}"))
}

fn placed(node: Node<'_, '_>) -> Placed {
    let (x, y, size) = (attribute(node, "x"), attribute(node, "y"), attribute(node, "font-size"));
    let text = node.text().unwrap_or_default().to_owned();
    let width = text::width(&text, size, node.attribute("font-weight").is_some());
    let left = match node.attribute("text-anchor") {
        Some("middle") => -width / 2.0,
        Some("end") => -width,
        _ => 0.0,
    };
    let angle = node.attribute("transform").map_or(0.0, |t| {
        let degrees = t.trim_start_matches("rotate(").split(' ').next().expect("an angle");
        degrees.parse::<f64>().expect("a number").to_radians()
    });
    let corners = [(left, -0.75 * size), (left + width, -0.75 * size), (left, 0.2 * size), (left + width, 0.2 * size)]
        .map(|(a, b)| (x + a * angle.cos() - b * angle.sin(), y + a * angle.sin() + b * angle.cos()));
    let reach = |pick: fn(&(f64, f64)) -> f64, start: f64, fold: fn(f64, f64) -> f64| {
        corners.iter().map(pick).fold(start, fold)
    };
    let area = [
        reach(|c| c.0, f64::INFINITY, f64::min),
        reach(|c| c.1, f64::INFINITY, f64::min),
        reach(|c| c.0, f64::NEG_INFINITY, f64::max),
        reach(|c| c.1, f64::NEG_INFINITY, f64::max),
    ];
    Placed { text, turned: angle != 0.0, area }
}

fn texts(document: &Document<'_>) -> Vec<Placed> {
    document.descendants().filter(|n| n.has_tag_name("text")).map(placed).collect()
}

#[test]
fn pictures_are_well_formed_and_hold_finite_numbers_alone() {
    for (name, svg) in gallery() {
        let document = Document::parse(&svg).unwrap_or_else(|e| panic!("{name}: {e}"));
        for node in document.descendants().filter(Node::is_element) {
            for a in node.attributes().filter(|a| !["fill", "font-family", "aria-label"].contains(&a.name())) {
                assert!(!a.value().contains("NaN") && !a.value().contains("inf"), "{name}: {a:?}");
            }
        }
    }
}

#[test]
fn every_label_lies_inside_its_picture() {
    for (name, svg) in gallery() {
        let document = Document::parse(&svg).expect("well-formed");
        let view = document.root_element().attribute("viewBox").expect("a view").split(' ');
        let view: Vec<f64> = view.map(|v| v.parse().expect("a number")).collect();
        for Placed { text, area, .. } in texts(&document) {
            let inside = area[0] >= 0.0 && area[1] >= 0.0 && area[2] <= view[2] && area[3] <= view[3];
            assert!(inside, "{name}: {text:?} at {area:?} leaves {view:?}");
        }
    }
}

#[test]
fn no_two_labels_overlap() {
    for (name, svg) in gallery() {
        let document = Document::parse(&svg).expect("well-formed");
        let level: Vec<Placed> = texts(&document).into_iter().filter(|t| !t.turned).collect();
        for (i, a) in level.iter().enumerate() {
            for b in &level[..i] {
                let (p, q) = (a.area, b.area);
                let touch = p[0] < q[2] && q[0] < p[2] && p[1] < q[3] && q[1] < p[3];
                assert!(!touch, "{name}: {:?} at {p:?} and {:?} at {q:?}", a.text, b.text);
            }
        }
    }
}

#[test]
fn the_same_data_give_the_same_bytes() {
    assert_eq!(gallery(), gallery());
}

#[test]
fn names_come_back_as_they_were_given() {
    let mut chart = dots(2, 760.0);
    chart.rows[0].name = "<&\">'".into();
    let svg = chart.svg();
    let document = Document::parse(&svg).expect("well-formed");
    assert!(texts(&document).iter().any(|t| t.text == "<&\">'"), "{svg}");
    assert_eq!(escape("a\u{0}b\u{1b}c\nd"), "a\u{fffd}b\u{fffd}c d", "XML has no place for control characters");
}

#[test]
fn nothing_to_show_is_said() {
    let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300];
    let mut pictures = vec![dots(0, 480.0).svg(), scatter(0, 480.0).svg(), heat(0, 3).svg(), heat(3, 0).svg()];
    pictures.push(lines(0, 0, ratio_axis(), 480.0).svg());
    pictures.push(lines(3, 0, ratio_axis(), f64::NAN).svg());
    for (groups, series) in [(0, 0), (0, 2), (2, 0)] {
        pictures.push(bars(groups, series, ratio_axis(), 480.0).svg());
    }
    for value in bad {
        let mut chart = dots(1, 480.0);
        chart.rows[0].estimate = Some(Estimate::between(value, value, value));
        chart.rows[0].runs = vec![value, -1.0, 0.0];
        pictures.push(chart.svg());
        let mut chart = bars(2, 2, Axis::linear("time", Unit::Seconds), 480.0);
        chart.groups.iter_mut().for_each(|group| group.bars.fill(Some(Estimate::exact(value))));
        pictures.push(chart.svg());
        let mut chart = lines(1, 3, Axis::linear("time", Unit::Seconds), 480.0);
        chart.series[0].points.iter_mut().for_each(|point| point.y = value);
        pictures.push(chart.svg());
        let mut chart = scatter(1, 480.0);
        chart.spots[0].x = Estimate::exact(value);
        pictures.push(chart.svg());
    }
    for svg in pictures {
        Document::parse(&svg).expect("well-formed");
        assert!(svg.contains(">no data<") && !svg.contains("NaN"), "{svg}");
    }
}

#[test]
fn zeros_and_tiny_and_equal_values_are_drawn() {
    for value in [0.0, 1e-320, 1e-25, 5.0, 1e29] {
        let mut chart = bars(2, 2, Axis::linear("bytes", Unit::Bytes), 480.0);
        chart.reference = None;
        chart.groups.iter_mut().for_each(|group| group.bars.fill(Some(Estimate::exact(value))));
        let svg = chart.svg();
        Document::parse(&svg).expect("well-formed");
        assert!(!svg.contains("NaN"), "{value}: {svg}");
        assert!(value == 1e-320 || !svg.contains("no data"), "{value}: {svg}");
    }
}

#[test]
fn an_estimate_is_written_with_its_interval() {
    let axis = Axis::log("ratio", Unit::Ratio);
    assert_eq!(Estimate::between(0.88, 0.85, 0.92).write(&axis), "0.88 (0.85–0.92)");
    assert_eq!(Estimate::between(0.88, 0.0, 0.92).write(&axis), "0.88", "an end without a place is no end");
}

#[test]
fn ticks_are_round_in_order_and_enclose_the_data() {
    let axes = [Axis::linear("", Unit::Ratio), Axis::log("", Unit::Ratio), Axis::log2("", Unit::Ratio)];
    for axis in &axes {
        for seed in 0..400 {
            let low = 10f64.powf(number(seed, -4.0, 4.0));
            let high = low * 10f64.powf(number(seed + 1000, 0.0, [0.05, 1.0, 5.0][seed % 3]));
            let ruler = Ruler::new(axis, [low, high], 0.0, 600.0, true).expect("data");
            let of = format!("{axis:?} over {low} to {high}: {:?}", ruler.ticks);
            assert!(ruler.low <= low * (1.0 + 1e-6) && ruler.high >= high * (1.0 - 1e-6), "{of}");
            assert!((2..=20).contains(&ruler.ticks.len()), "{of}");
            assert!(ruler.ticks.windows(2).all(|pair| pair[0].value < pair[1].value), "{of}");
            if axis.scale == Scale::Linear && high - low > 1e-3 * high {
                let step = ruler.ticks[1].value - ruler.ticks[0].value;
                assert!(ruler.low > low - step * 1.01 && ruler.high < high + step * 1.01, "{of}");
            }
            for tick in &ruler.ticks {
                if axis.scale == Scale::Log2 {
                    assert_eq!(tick.value.log2().fract(), 0.0, "{of}");
                } else {
                    let read: f64 = tick.label.parse().expect("a number");
                    assert!((read - tick.value).abs() <= tick.value.abs() * 1e-9, "{of}: {} is cut", tick.label);
                }
            }
        }
    }
}

#[test]
fn ticks_are_round_in_the_unit_that_is_shown() {
    let mib = 1024.0 * 1024.0;
    let ruler = Ruler::new(&Axis::linear("memory", Unit::Bytes), [0.0, 93.0 * mib], 0.0, 500.0, true).expect("data");
    assert_eq!(ruler.label, "memory (MiB)");
    assert_eq!((ruler.ticks[1].value / mib, ruler.ticks[1].label.as_str()), (10.0, "10"));
    assert_eq!(ruler.high, 100.0 * mib);
    let ruler = Ruler::new(&Axis::log2("size", Unit::Bytes), [8.0, 65536.0], 0.0, 700.0, true).expect("data");
    assert_eq!((ruler.ticks[0].label.as_str(), ruler.high), ("8 B", 65536.0));
}

#[test]
fn numbers_are_written_with_three_digits_and_a_unit() {
    let cases = [
        (Unit::Seconds, 0.0123456, "12.3 ms"),
        (Unit::Seconds, 61.5, "61.5 s"),
        (Unit::Seconds, 0.0, "0.00 s"),
        (Unit::Bytes, 1536.0, "1.50 KiB"),
        (Unit::Bytes, 12.0, "12 B"),
        (Unit::Part, 0.0625, "6.25 %"),
        (Unit::Part, 0.0, "0.00 %"),
        (Unit::Count, 123.0, "123"),
        (Unit::Count, 45_678.0, "45.7 k"),
        (Unit::Ratio, 0.884, "0.88"),
        (Unit::Ratio, 0.0123, "0.012"),
        (Unit::Ratio, f64::NAN, "–"),
    ];
    for (unit, value, text) in cases {
        assert_eq!(unit.write(value), text);
    }
}

#[test]
fn an_allocator_has_one_colour_and_craton_has_its_own() {
    assert_eq!(colour_of("tcmalloc"), colour_of("TCMalloc-4.2"));
    let colours: std::collections::BTreeSet<&str> = names(7).iter().map(|n| colour_of(n)).collect();
    assert_eq!(colours.len(), 7, "known names differ");
    assert!(is_craton("craton-2") && !is_craton("crater") && !is_craton("分配器"));
    let others = (0..500).map(|i| format!("x{i}")).filter(|name| colour_of(name) == colour_of("craton"));
    assert_eq!(others.count(), 0, "no other name gets Craton's colour");
}

fn contrast(a: &str, b: &str) -> f64 {
    let luminance = |colour: &str| {
        let part = |at: usize| {
            let c = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).expect("hexadecimal")) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) + 0.05
    };
    let (a, b) = (luminance(a), luminance(b));
    a.max(b) / a.min(b)
}

#[test]
fn numbers_of_a_heat_map_can_be_read_on_every_ground() {
    for i in 0..=80 {
        let ratio = 4f64.powf(f64::from(i) / 40.0 - 1.0);
        let (ground, ink) = colour::of_ratio(ratio, 2.0);
        assert!(contrast(&ground, ink) >= 4.4, "{ratio}: {ink} on {ground}");
    }
    assert_eq!(colour::of_ratio(1.0, 2.0).0, "#f7f7f7", "the same is nearly white");
    assert_eq!(colour::of_ratio(2.0, 2.0), colour::of_ratio(900.0, 2.0));
}

#[test]
fn the_last_row_of_a_heat_map_is_the_geometric_mean_of_what_there_is() {
    let row = |name: &str, cells: Vec<Cell>| HeatRow { name: name.into(), cells };
    let missing = || Cell::Missing("signal 11".into());
    let rows = vec![row("a", vec![Cell::Ratio(0.5), Cell::Ratio(1.0)]), row("b", vec![Cell::Ratio(0.32), missing()])];
    let heat = Heat { columns: names(2), rows, ..heat(0, 0) };
    let svg = heat.svg();
    let document = Document::parse(&svg).expect("well-formed");
    let texts: Vec<String> = texts(&document).into_iter().map(|t| t.text).collect();
    assert!(texts.contains(&"0.40".to_owned()), "{texts:?}");
    assert!(texts.contains(&"1 of 2".to_owned()) && texts.contains(&"signal 11".to_owned()), "{texts:?}");
}
