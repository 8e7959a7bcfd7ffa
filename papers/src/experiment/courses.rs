//! Courses of demand on the page heap, for several experiments.

use super::sheet::{Row, json, with};
use super::{Ask, simulation};
use crate::empirical::profile::Profile;
use crate::empirical::schedule::Schedule;
use crate::empirical::sim::{self, Sample, Summary};
use craton_pages::AUTO_RATE;

pub const RELEASE: [(&str, bool); 2] = [("release off", false), ("release on", true)];
const SAMPLES: u32 = 240;

pub struct Course {
    pub schedule: &'static str,
    pub release_bytes_per_s: u64,
    pub samples: Vec<Sample>,
}

impl Course {
    pub fn rate(&self) -> &'static str {
        rate_name(self.release_bytes_per_s)
    }

    pub fn summary(&self) -> Summary {
        sim::summary(&self.samples)
    }

    pub fn summary_row(&self) -> Row {
        with(json!({ "course": self.schedule, "rate": self.rate() }), &self.summary(), "ok")
    }
}

pub fn rate(release: bool) -> u64 {
    if release { AUTO_RATE } else { 0 }
}

pub fn rate_name(bytes_per_s: u64) -> &'static str {
    RELEASE[usize::from(bytes_per_s > 0)].0
}

pub fn play(
    ask: &Ask<'_>,
    ways: &[(&'static str, bool)],
    (heap_bytes, events): (u64, u64),
    seconds: f64,
) -> Result<Vec<Course>, String> {
    let mut courses = Vec::new();
    for ((name, schedule), (_, release)) in simulation::asked(ask, &Schedule::ALL, ways)? {
        let release_bytes_per_s = rate(*release);
        let samples = sim::simulate(&sim::Config {
            schedule: *schedule,
            seconds: Some(seconds),
            samples: SAMPLES,
            release_bytes_per_s,
            ..sim::Config::new(Profile::built_in(), heap_bytes, events)
        })?;
        courses.push(Course { schedule: name, release_bytes_per_s, samples });
    }
    Ok(courses)
}

pub fn rows(courses: &[Course]) -> Vec<Row> {
    let of = |course: &Course| {
        let head = json!({ "schedule": course.schedule, "release_bytes_per_s": course.release_bytes_per_s });
        course.samples.iter().map(move |sample| with(head.clone(), sample, "ok")).collect::<Vec<_>>()
    };
    courses.iter().flat_map(of).collect()
}
