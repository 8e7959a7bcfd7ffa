//! `temeraire-fig11`: which hugepage a span goes to, and what that costs after demand has dropped.
//!
//! **What.** Spans are born and die on the page heap; at half time, half of the demand dies at one moment, each span as likely
//! as any other, and births go on at half the rate. Memory over time, with the filler's three searches: the longest free
//! range first, the fullest hugepage first, the global best fit. These have all spans as sparse, since that is what the
//! searches are for; `craton` is the heap as it is, the first search with dense spans on hugepages of their own.
//!
//! **From.** TEMERAIRE Figure 11 and §6.1. **The load** is that of [`spans`]: what the objects of a profile would ask of the page
//! heap, their slabs as spans. How long spans live decides how soon memory can follow demand: no span moves, and a hugepage
//! comes free when the last of its spans has died. So there are three loads of each profile: `even`, in which all spans live as
//! long as the profile's bytes do in the mean; `object`, in which a slab lives as long as an object of its class; `last
//! object`, in which it lives until the last of its objects has died, each on its own, and a minute is a fraction of the
//! longest lives. Lives are those of the profile in seconds; a larger heap has more births, not longer lives. Nothing is
//! released but by the heap's own limits, so that hugepages stay intact.
//!
//! **State.** The built-in profile, and those of [`profiles::FOLDER`]. Full: 1 GiB before the drop. Quick: 512 MiB, of which the
//! 16 MiB that the cache always keeps are a sixteenth of the demand after it.

use super::profiles;
use super::world::{SECOND_NS, World};
use super::{Ask, Experiment, Findings};
use crate::document::Document;
use crate::empirical::process::{self, Event, LARGEST_PART, Process};
use crate::empirical::profile::{Profile, Row};
use crate::empirical::schedule::Schedule;
use crate::empirical::spans::{Lives, span_of, spans};
use crate::format::{bytes, seconds, table};
use crate::measure::Progress;
use crate::picture::{Axis, Line, Lines, Point, Unit};
use crate::ratios::Ratios;
use craton_base::{Density, PageRange};
use craton_pages::{Fit, FullestFirst, GlobalBestFit, LongestFreeFirst};
use serde::Serialize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// The experiment, in the list.
pub const EXPERIMENT: Experiment = Experiment {
    name: "temeraire-fig11",
    about: "memory after half of the demand is gone: longest free range first, fullest first, global best fit",
    answers: "TEMERAIRE figure 11",
    run,
};

const FULL_BYTES: u64 = 1 << 30;
const QUICK_BYTES: u64 = 512 << 20;
/// Simulated seconds before the drop, and after it.
const HALF_S: f64 = 120.0;
/// When the searches are compared.
const AFTER_S: f64 = 60.0;
const SEED: u64 = 1;

/// A way to play the load, by its name: the search, and whether dense spans are asked for as such.
type Play = fn(&Profile, u64) -> Result<Vec<DropRow>, String>;
const POLICIES: [(&str, Play); 4] = [
    ("craton", play::<LongestFreeFirst, true>),
    ("longest free first", play::<LongestFreeFirst, false>),
    ("fullest first", play::<FullestFirst, false>),
    ("global best fit", play::<GlobalBestFit, false>),
];

/// The loads of a profile.
const LOADS: [(&str, Lives); 3] =
    [("even", Lives::Even), ("object", Lives::Object), ("last object", Lives::LastObject)];
/// Memory that is so near to demand, by it, has followed.
const NEAR: f64 = 1.1;

/// The heap at a moment.
#[derive(Clone, Copy, Serialize)]
struct DropRow {
    time_s: f64,
    used_bytes: u64,
    backed_bytes: u64,
    huge_bytes: u64,
}

/// A row of the document.
#[derive(Serialize)]
struct PolicyRow {
    profile: String,
    lives: &'static str,
    policy: &'static str,
    #[serde(flatten)]
    at: DropRow,
    status: &'static str,
}

/// What a search made of a load.
struct Course {
    policy: &'static str,
    rows: Vec<DropRow>,
    wall_s: f64,
}

/// A load, and what the searches made of it.
struct Played {
    profile: String,
    lives: &'static str,
    courses: Vec<Course>,
}

fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let profiles = profiles::here()?;
    let names: Vec<&str> = profiles.iter().map(|(name, _)| name.as_str()).collect();
    super::simulated(ask, EXPERIMENT.name, &names)?;
    let heap_bytes = if ask.quick { QUICK_BYTES } else { FULL_BYTES };
    let mut played: Vec<Played> = Vec::new();
    let total = POLICIES.len() * LOADS.len() * profiles.len();
    for (name, profile) in profiles.iter().filter(|(name, _)| ask.only.is_empty() || ask.only.contains(name)) {
        for (lives, of) in LOADS {
            let (spans, mut courses) = (spans(profile, of), Vec::new());
            for (policy, play) in POLICIES {
                if ask.stop.load(Relaxed) {
                    break;
                }
                let done = played.len() * POLICIES.len() + courses.len();
                (ask.progress)(name, Progress { allocator: policy, round: Some(0), done, total });
                let start = Instant::now();
                let rows = play(&spans, heap_bytes).map_err(|why| format!("{name}, {lives}, {policy}: {why}"))?;
                courses.push(Course { policy, rows, wall_s: start.elapsed().as_secs_f64() });
            }
            played.push(Played { profile: name.clone(), lives, courses });
        }
    }
    let mut rows = Vec::new();
    for Played { profile, lives, courses } in &played {
        for course in courses {
            let row = |at: &DropRow| PolicyRow {
                profile: profile.clone(),
                lives,
                policy: course.policy,
                at: *at,
                status: "ok",
            };
            rows.extend(course.rows.iter().map(row));
        }
    }
    let document = Document::new(EXPERIMENT.name, ask.command, &[], rows, &Ratios::default());
    let name = |load: &Played| format!("{}-{}", load.profile, load.lives.replace(' ', "-"));
    Ok(Findings {
        text: format!("{}\n{}", profiles::note(&profiles), show(&played)),
        pictures: played.iter().map(|load| (name(load), picture(load, &document))).collect(),
        failed: 0,
        document: super::text(&document)?,
    })
}

/// Births and deaths a second of the spans that fit, and their bytes, at the profile's own size.
fn rate_and_bytes(spans: &Profile, heap_bytes: u64) -> (f64, f64) {
    let fit = spans.rows().iter().filter(|row| row.size <= heap_bytes / LARGEST_PART);
    fit.fold((0.0, 0.0), |(rate, bytes), row: &Row| (rate + row.rate, bytes + row.live * row.size as f64))
}

/// Plays spans until [`HALF_S`] after the drop, with a row for each second.
fn play<P: Fit, const APART: bool>(spans: &Profile, heap_bytes: u64) -> Result<Vec<DropRow>, String> {
    let (rate, bytes) = rate_and_bytes(spans, heap_bytes);
    // The process makes a larger heap by longer lives; time runs faster by as much, which makes lives the profile's.
    let scale = heap_bytes as f64 / bytes;
    let seconds = 2.0 * HALF_S;
    let events = (2.0 * rate * Schedule::Drop.mean() * seconds * scale).ceil().max(1.0) as u64;
    let mut process = Process::new(&process::Config {
        profile: spans,
        heap_bytes,
        schedule: Schedule::Drop,
        events,
        remote_percent: 0,
        seed: SEED,
        number: 0,
    })?;
    let stretch = seconds / process.duration_s();
    let mut world: World<P> = World::new(4 * heap_bytes + (1 << 30));
    let mut out: Vec<PageRange> = Vec::with_capacity(process.slots_expected());
    let mut rows = Vec::with_capacity(seconds as usize + 2);
    while let Some(event) = process.next_event() {
        let now_s = process.now_s() * stretch;
        world.pass_until((now_s * SECOND_NS as f64) as u64);
        if now_s >= rows.len() as f64 {
            rows.push(row(&world, now_s));
        }
        match event {
            Event::Alloc { slot, size } => {
                let (pages, density) = span_of(size);
                let span = world.alloc(pages, if APART { density } else { Density::Sparse })?;
                if slot as usize == out.len() {
                    out.push(span);
                }
                out[slot as usize] = span;
            }
            Event::Free { slot, size, .. } => {
                let density = if APART { span_of(size).1 } else { Density::Sparse };
                world.free(out[slot as usize], density);
            }
        }
    }
    rows.push(row(&world, seconds));
    Ok(rows)
}

fn row<P: Fit>(world: &World<P>, time_s: f64) -> DropRow {
    let state = world.state();
    DropRow { time_s, used_bytes: state.used, backed_bytes: state.backed, huge_bytes: state.huge }
}

/// The row at a time, or the last before it.
fn at(rows: &[DropRow], time_s: f64) -> Option<&DropRow> {
    rows.iter().rfind(|row| row.time_s <= time_s + 0.5)
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Seconds after the drop from which on memory stays near demand.
fn near_after_s(rows: &[DropRow]) -> Option<f64> {
    let far = rows.iter().rposition(|row| ratio(row.backed_bytes, row.used_bytes) > NEAR);
    let near = rows.get(far.map_or(0, |far| far + 1))?;
    Some((near.time_s - HALF_S).max(0.0))
}

fn show(played: &[Played]) -> String {
    let head = [
        "profile",
        "lives",
        "search",
        "before the drop",
        "at once",
        "after 60 s",
        "on hugepages",
        "near after",
        "demand",
        "memory",
        "took",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for Played { profile, lives, courses } in played {
        for course in courses {
            let per_used = |time_s| at(&course.rows, time_s).map_or(0.0, |r| ratio(r.backed_bytes, r.used_bytes));
            let Some(late) = at(&course.rows, HALF_S + AFTER_S) else { continue };
            lines.push(vec![
                profile.clone(),
                (*lives).to_owned(),
                course.policy.to_owned(),
                format!("{:.3}", per_used(HALF_S - 2.0)),
                format!("{:.3}", per_used(HALF_S + 1.0)),
                format!("{:.3}", per_used(HALF_S + AFTER_S)),
                format!("{:.1} %", ratio(late.huge_bytes, late.backed_bytes) * 100.0),
                near_after_s(&course.rows).map_or("-".to_owned(), |s| format!("{s:.0} s")),
                bytes(late.used_bytes),
                bytes(late.backed_bytes),
                seconds(course.wall_s),
            ]);
        }
    }
    format!(
        "memory ÷ bytes in spans; half of the demand goes after {HALF_S} simulated seconds; near: memory stays below {NEAR} \
         times demand\n\n{}",
        table(&lines, &[0, 1, 2])
    )
}

fn picture(Played { profile, lives, courses }: &Played, document: &Document<PolicyRow>) -> String {
    let line = |name: &str, rows: &[DropRow], of: fn(&DropRow) -> u64| Line {
        name: name.to_owned(),
        points: rows.iter().map(|row| Point::new(row.time_s, of(row) as f64)).collect(),
    };
    let mut series: Vec<Line> =
        courses.iter().map(|course| line(course.policy, &course.rows, |row| row.backed_bytes)).collect();
    series.extend(courses.first().map(|course| line("demand", &course.rows, |row| row.used_bytes)));
    Lines {
        heading: super::heading(
            &format!("Memory after half of the demand is gone: {profile}, lives: {lives}"),
            "births and deaths of spans on the page heap alone, in simulated memory; demand: bytes in spans; \
             craton: longest free first, with dense spans apart",
            document,
        ),
        x: Axis::linear("simulated time", Unit::Seconds),
        y: Axis::linear("memory", Unit::Bytes),
        series,
        reference: None,
        width_px: 860.0,
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::colour_of;

    #[test]
    fn a_minute_after_the_drop_memory_is_near_demand_on_intact_hugepages() {
        let spans = spans(&Profile::built_in(), Lives::Even);
        let late = |play: Play| *at(&play(&spans, 256 << 20).expect("room"), HALF_S + AFTER_S).expect("played");
        let [ours, best_fit] = [POLICIES[0].1, POLICIES[3].1].map(late);
        assert!(ours.used_bytes < 150 << 20, "half is gone");
        // The cache keeps 16 MiB whatever the demand.
        assert!(ours.backed_bytes < ours.used_bytes * 11 / 10 + (16 << 20), "{}", ours.backed_bytes);
        assert!(ours.huge_bytes * 20 > ours.backed_bytes * 19, "{}", ours.huge_bytes);
        assert!(ours.backed_bytes < best_fit.backed_bytes);
    }

    #[test]
    fn memory_is_near_demand_from_the_last_time_on_that_it_was_far() {
        let row = |time_s, backed_bytes| DropRow { time_s, used_bytes: 100, backed_bytes, huge_bytes: 0 };
        assert_eq!(near_after_s(&[row(119.0, 105), row(120.0, 200), row(121.0, 120), row(122.0, 105)]), Some(2.0));
        assert_eq!(near_after_s(&[row(119.0, 105), row(121.0, 120)]), None);
    }

    #[test]
    fn lives_are_the_profile_s_whatever_the_heap() {
        let (rate, bytes) =
            rate_and_bytes(&Profile::parse("8192, 10, 20\n100000000, 1, 1\n", "p").expect("good"), 1 << 30);
        assert_eq!((rate, bytes), (10.0, 20.0 * 8192.0));
    }

    #[test]
    fn the_lines_of_the_picture_have_different_colours() {
        let mut colours: Vec<&str> =
            POLICIES.iter().map(|(name, _)| colour_of(name)).chain([colour_of("demand")]).collect();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), POLICIES.len() + 1);
    }
}
