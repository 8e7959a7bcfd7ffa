//! Numbers of all running processes: as Prometheus reads them, and for [`crate::otlp`].
//!
//! **What.** A family is a number with a name, such as `craton_rss_bytes`; it has a sample for each
//! process, told apart by the labels `pid` and `exe`, and `experiment` if that was given.

use crate::processes::Process;
use craton_inspect::Ledger;
use craton_tables::counters::{PROCESS, Unit};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;

pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

pub type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
pub struct Sample {
    pub labels: Labels,
    pub value: u64,
}

#[derive(Debug)]
pub struct Family {
    /// Without `_total`.
    pub name: String,
    pub help: String,
    pub is_counter: bool,
    pub is_bytes: bool,
    /// By process, in the order of the processes.
    pub samples: Vec<(usize, Sample)>,
}

/// The experiment's label follows pid and exe.
pub fn labels_of(process: &Process, experiment: Option<&str>) -> Labels {
    let mut labels = vec![("pid", process.pid.to_string()), ("exe", process.page.exe.clone())];
    labels.extend(experiment.map(|name| ("experiment", name.to_owned())));
    labels
}

type Values = Vec<(Labels, u64)>;

pub fn families(processes: &[Process]) -> Vec<Family> {
    let family = |name: &str, help: &str, unit: Unit, values: &dyn Fn(&Process) -> Values| {
        let of_one =
            |(i, process)| values(process).into_iter().map(move |(labels, value)| (i, Sample { labels, value }));
        Family {
            name: format!("craton_{name}"),
            help: help.to_owned(),
            is_counter: unit == Unit::Since,
            is_bytes: unit == Unit::Bytes,
            samples: processes.iter().enumerate().flat_map(of_one).collect(),
        }
    };
    let plain = |value: u64| vec![(Labels::new(), value)];
    let part = |name: &'static str| {
        move |p: &Process| -> Values {
            let rows = if name == "heap" { &p.ledger.heap } else { &p.ledger.rest };
            rows.iter().map(|row| (vec![("part", name.to_owned()), ("row", row.name.to_owned())], row.bytes)).collect()
        }
    };
    let ledger = |p: &Process| [part("heap")(p), part("rest")(p)].concat();
    let class = |value: fn(&craton_inspect::ClassRow) -> u64| {
        move |p: &Process| -> Values {
            p.ledger.classes.iter().map(|c| (vec![("object_bytes", c.object_bytes.to_string())], value(c))).collect()
        }
    };
    let value = |name: &'static str| move |p: &Process| plain(p.ledger.value(name).unwrap_or(0));
    let mut all = vec![
        family("rss_bytes", "resident memory: the sum of the ledger", Unit::Bytes, &value("rss_bytes")),
        family("pss_bytes", "with shared pages divided among processes", Unit::Bytes, &value("pss_bytes")),
        family("swap_bytes", "in the swap", Unit::Bytes, &value("swap_bytes")),
        family("heap_bytes", "of the resident memory, the heap", Unit::Bytes, &value("heap_bytes")),
        family("ledger_bytes", "what the resident memory is for (docs/live.md)", Unit::Bytes, &ledger),
        family("class_memory_bytes", "of a size class's slabs", Unit::Bytes, &class(|c| c.memory_bytes)),
        family("class_live_objects", "of a size class, with the program", Unit::Now, &class(|c| c.live)),
        family("threads", "of the process", Unit::Now, &|p| plain(p.threads)),
    ];
    // The ledger has the heap's; pid and huge bytes are a label and a row of it.
    let shown = PROCESS.iter().filter(|c| !matches!(c.name, "pid" | "resident_bytes" | "resident_huge_bytes"));
    all.extend(shown.map(|counter| {
        let help = counter.text.replace('`', "");
        family(counter.name, &help, counter.unit, &|p| plain(p.page.number(counter.name)))
    }));
    all
}

#[derive(Debug)]
struct Shown {
    families: Vec<Family>,
    /// By process.
    labels: Vec<Labels>,
}

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for family in self.families.iter().filter(|family| !family.samples.is_empty()) {
            let kind = if family.is_counter { MetricType::Counter } else { MetricType::Gauge };
            let mut metric = encoder.encode_descriptor(&family.name, &family.help, None, kind)?;
            for (process, sample) in &family.samples {
                let labels = [self.labels[*process].as_slice(), &sample.labels].concat();
                let one = metric.encode_family(&labels)?;
                match family.is_counter {
                    true => ConstCounter::new(sample.value).encode(one)?,
                    false => ConstGauge::new(sample.value).encode(one)?,
                }
            }
        }
        Ok(())
    }
}

/// Of running processes.
pub fn text(processes: &[Process], experiment: Option<&str>) -> String {
    let mut registry = Registry::default();
    let labels = processes.iter().map(|process| labels_of(process, experiment)).collect();
    registry.register_collector(Box::new(Shown { families: families(processes), labels }));
    let mut text = String::new();
    match prometheus_text::encode(&mut text, &registry) {
        Ok(()) => text,
        Err(error) => format!("# the metrics cannot be written: {error}\n"),
    }
}

/// Rows of the ledger by what a person does about them.
pub const GROUPS: [(&str, &str, &[&str]); 6] = [
    ("live", "in objects", &["live_bytes", "large_bytes", "huge_bytes", "heaps_bytes", "object_caches_bytes"]),
    ("caches", "free in caches", &["thread_cache_bytes", "processor_cache_bytes", "transfer_bytes"]),
    ("slabs", "free on slabs", &["slab_free_bytes"]),
    ("free", "free pages", &["free_page_bytes", "kept_mapping_bytes"]),
    ("own", "Craton's tables and code", &["metadata_bytes", "library_bytes"]),
    (
        "rest",
        "not the heap",
        &[
            "code_bytes",
            "file_data_bytes",
            "shared_bytes",
            "stack_bytes",
            "brk_bytes",
            "kernel_bytes",
            "anonymous_bytes",
        ],
    ),
];

/// Bytes of each group.
pub fn groups(ledger: &Ledger) -> BTreeMap<&'static str, u64> {
    let sum = |rows: &[&str]| rows.iter().filter_map(|name| ledger.value(name)).sum();
    GROUPS.iter().map(|(name, _, rows)| (*name, sum(rows))).collect()
}

#[cfg(test)]
mod tests;
