//! `size-classes`: the waste of rounding sizes up to classes, slabs' tails included, by several
//! rules (TEMERAIRE §3: at most 1/8).

use super::sheet::{Column, Fields, Row, Sheet, Show, Title, by, groups, json, mean, part, percent, table};
use super::simulation::{self, ONCE};
use super::{Ask, Findings, profiles};
use crate::empirical::profile::Profile;
use craton_base::PAGE_SIZE;
use craton_lab::picture::{Axis, Unit};
use craton_slab::size_class::{CLASSES, geometry};

/// By the C ABI's alignment, sizes up to this are not among the worst.
const ALIGNED: u64 = 128;
const LARGEST: u64 = 256 << 10;
const MOST_WASTE: f64 = 0.04;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Class {
    object: u64,
    pages: u64,
    objects: u64,
}

impl Class {
    fn taken(&self) -> f64 {
        (self.pages * PAGE_SIZE as u64) as f64 / self.objects as f64
    }
}

struct Rule {
    name: &'static str,
    about: &'static str,
    classes: fn() -> Vec<Class>,
}

const RULES: [Rule; 4] = [
    Rule { name: "craton", about: "the library's: multiples of 16 to 256 B, then parts of spans", classes: library },
    Rule {
        name: "eighths",
        about: "multiples of 16 to 128 B, eight even steps in each doubling; slabs of 8 objects with a sixteenth of tail",
        classes: || even(8),
    },
    Rule { name: "sixteenths", about: "the same to 256 B with sixteen steps", classes: || even(16) },
    Rule { name: "multiples", about: "the library's, and every multiple of 16 to 1 KiB", classes: multiples },
];

fn library() -> Vec<Class> {
    let of = |class| {
        let g = geometry(class);
        Class { object: g.object.into(), pages: g.pages.0.into(), objects: g.capacity.into() }
    };
    (1..=CLASSES).map(of).collect()
}

/// The shortest, with at most this part as tail.
fn slab(object: u64, objects: u64, part: u64) -> Class {
    let fits = |pages: &u64| {
        let span = pages * PAGE_SIZE as u64;
        (span / object >= objects || *pages >= 8 && span >= object) && span % object * part <= span
    };
    let pages = (0..5).map(|power| 1 << power).find(fits).unwrap_or(32);
    Class { object, pages, objects: pages * PAGE_SIZE as u64 / object }
}

/// Multiples of 16, then `steps` in each doubling; above 32 KiB whole pages.
fn even(steps: u64) -> Vec<Class> {
    let mut classes: Vec<_> = (1..=steps).map(|n| slab(16 * n, 8, 16)).collect();
    let mut start = 16 * steps;
    while start < LARGEST {
        classes.extend((1..=steps).map(|step| start + start * step / steps).map(|object| match object > 32 << 10 {
            true => Class { object, pages: object.div_ceil(PAGE_SIZE as u64), objects: 1 },
            false => slab(object, 8, 16),
        }));
        start *= 2;
    }
    classes
}

fn multiples() -> Vec<Class> {
    let mut classes: Vec<_> = (1..=64).map(|n| slab(16 * n, 2, 32)).collect();
    classes.extend(library().into_iter().filter(|class| class.object > 1024));
    classes
}

const COLUMNS: [Column; 7] = [
    ("profile", "profile", Show::Text),
    ("table", "table", Show::Text),
    ("classes", "classes", Show::Plain),
    ("waste", "waste", Show::Percent(2)),
    ("rounding", "rounding", Show::Percent(2)),
    ("tails", "tail", Show::Percent(2)),
    ("pages", "pages", Show::Percent(2)),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let profiles = profiles::here()?;
    let mut rows = Vec::new();
    for ((name, profile), _) in simulation::asked(ask, &profiles, &ONCE)? {
        rows.extend(RULES.iter().map(|rule| measure(rule.name, &(rule.classes)(), name, profile)));
    }
    let text = format!("{}\n{}", profiles::note(&profiles), show(&rows));
    let mut sheet = Sheet::new(ask, rows);
    let title = Title(
        "",
        "Waste by size classes",
        "objects in full slabs, tails counted in; the line: 4 %, the most it may be over all",
    );
    let names = RULES.map(|rule| rule.name.to_owned());
    let bars = groups(sheet.rows(), by("profile"), (&names, by("table")), |row| row.num("waste"));
    sheet.bars(
        title,
        Axis::linear("part of the memory taken", Unit::Part),
        &RULES.each_ref().map(series),
        bars,
        Some(MOST_WASTE),
    );
    sheet.findings(text)
}

/// Of each class's smallest size.
fn worst(classes: &[Class]) -> impl Iterator<Item = (f64, u64)> {
    let least = std::iter::once(1).chain(classes.iter().map(|class| class.object + 1));
    least.zip(classes).map(|(size, class)| (1.0 - size as f64 / class.taken(), size))
}

fn measure(table: &str, classes: &[Class], profile: &str, objects: &Profile) -> Row {
    let (mut requested, mut taken, mut rounding, mut tail, mut pages) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for row in objects.rows() {
        let size = row.size as f64;
        requested += row.live * size;
        match classes.get(classes.partition_point(|class| class.object < row.size)) {
            Some(class) => {
                taken += row.live * class.taken();
                rounding += row.live * (class.object as f64 - size);
                tail += row.live * (class.taken() - class.object as f64);
            }
            None => {
                let whole = row.size.next_multiple_of(PAGE_SIZE as u64) as f64;
                taken += row.live * whole;
                pages += row.live * (whole - size);
            }
        }
    }
    let large = worst(classes).filter(|(_, size)| *size > ALIGNED);
    let (worst_waste, worst_bytes) = large.fold((0.0, 0), |most, one| if one.0 > most.0 { one } else { most });
    let of_taken = |waste: f64| if taken > 0.0 { waste / taken } else { 0.0 };
    json!({
        "table": table,
        "profile": profile,
        "classes": classes.len(),
        "worst_waste": worst_waste,
        "worst_bytes": worst_bytes,
        "requested_bytes": requested as u64,
        "taken_bytes": taken as u64,
        // By the bytes taken.
        "waste": of_taken(taken - requested),
        "rounding": of_taken(rounding),
        "tail": of_taken(tail),
        "pages": of_taken(pages),
    })
}

fn show(rows: &[Row]) -> String {
    let mut text: String = RULES.iter().map(|rule| format!("{}: {}\n", rule.name, rule.about)).collect();
    text += &format!("\n{}\nmeans, and the worst of sizes above {ALIGNED} B\n", table(&COLUMNS, rows));
    for rule in &RULES {
        let of = || rows.iter().filter(|row| row.word("table") == rule.name);
        let Some(first) = of().next() else { continue };
        let sum = |field| of().map(|row| row.int(field)).sum();
        text += &format!(
            "{:<10}  {} by profiles, {} by bytes; worst {} at {} B\n",
            rule.name,
            percent(mean(of().map(|row| row.num("waste"))), 2),
            percent(1.0 - part(sum("requested_bytes"), sum("taken_bytes")), 2),
            percent(first.num("worst_waste"), 2),
            first.int("worst_bytes")
        );
    }
    text += "\nthe library's classes: bytes, pages of a slab, objects in it, waste at the slab's end, of the smallest size\n";
    let classes = library();
    let cells: Vec<Vec<String>> = worst(&classes)
        .zip(&classes)
        .map(|((waste, _), class)| {
            let tail = 1.0 - class.object as f64 / class.taken();
            let numbers = [class.object, class.pages, class.objects].map(|n| n.to_string());
            numbers.into_iter().chain([tail, waste].map(|part| percent(part, 2))).collect()
        })
        .collect();
    text + craton_lab::format::table(&cells, &[]).as_str()
}

fn series(rule: &Rule) -> String {
    format!("{}, with {} classes", rule.name, (rule.classes)().len())
}

#[cfg(test)]
mod tests;
