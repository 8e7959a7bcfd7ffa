//! Pushes the metrics to a collector by OTLP/HTTP, as JSON: `resourceMetrics` of
//! `opentelemetry-proto`, a resource for each process.
//!
//! **Failure.** A sentence when a push fails and the one before did not; it is tried again after
//! [`EVERY`].

use crate::host::machine;
use crate::metrics::{Family, families, labels_of};
use crate::processes::{Process, now_ms};
use serde_json::{Value, json};
use std::time::Duration;

pub const EVERY: Duration = Duration::from_secs(10);
const PATIENCE_S: u64 = 5;
const PATH: &str = "/v1/metrics";

#[derive(Debug)]
pub struct Pusher {
    url: String,
    experiment: Option<String>,
    started_ms: u64,
    failed: bool,
}

/// The metrics' address of a collector.
///
/// # Errors
/// Not `http://HOST…`.
pub fn address(url: &str) -> Result<String, String> {
    let Some(rest) = url.strip_prefix("http://") else {
        let why = match url.starts_with("https://") {
            true => "this program speaks plain HTTP; let a collector on this machine pass them on",
            false => "give an address of a collector",
        };
        return Err(format!("{why}, such as http://127.0.0.1:4318"));
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_plain = |c: char| c.is_ascii_graphic() && !"@?#".contains(c);
    if host.is_empty() || host.starts_with(':') || !rest.chars().all(is_plain) {
        return Err("give an address of a collector, such as http://127.0.0.1:4318".to_owned());
    }
    Ok(if path.is_empty() { format!("http://{host}{PATH}") } else { url.to_owned() })
}

impl Pusher {
    pub fn new(url: String, experiment: Option<String>) -> Self {
        Self { url, experiment, started_ms: now_ms(), failed: false }
    }

    /// A sentence when a push fails, and when one succeeds again.
    pub fn push(&mut self, processes: &[Process]) -> Option<String> {
        if processes.is_empty() {
            return None;
        }
        let body = self.body(processes).to_string();
        let sent = minreq::post(self.url.as_str())
            .with_header("Content-Type", "application/json")
            .with_timeout(PATIENCE_S)
            .with_body(body)
            .send();
        let why = match sent {
            Ok(answer) if (200..300).contains(&answer.status_code) => {
                let was = std::mem::replace(&mut self.failed, false);
                return was.then(|| format!("{}: the collector takes the metrics again", self.url));
            }
            Ok(answer) => format!("it answers {} {}", answer.status_code, answer.reason_phrase),
            Err(error) => error.to_string(),
        };
        let was = std::mem::replace(&mut self.failed, true);
        (!was).then(|| {
            let every = EVERY.as_secs();
            format!("{}: the collector does not take the metrics: {why}; tried again every {every} s", self.url)
        })
    }

    fn body(&self, processes: &[Process]) -> Value {
        let families = families(processes);
        let machine = machine();
        let resource = |(i, process): (usize, &Process)| {
            let mut attributes = vec![
                attribute("service.name", &process.page.exe),
                json!({ "key": "process.pid", "value": { "intValue": process.pid.to_string() } }),
                attribute("host.name", &machine),
            ];
            let labels = labels_of(process, self.experiment.as_deref());
            attributes.extend(labels.iter().filter(|(key, _)| *key == "experiment").map(|(k, v)| attribute(k, v)));
            let metrics: Vec<Value> = families.iter().filter_map(|family| self.metric(family, i)).collect();
            json!({
                "resource": { "attributes": attributes },
                "scopeMetrics": [{
                    "scope": { "name": "craton", "version": env!("CARGO_PKG_VERSION") },
                    "metrics": metrics,
                }],
            })
        };
        let all: Vec<Value> = processes.iter().enumerate().map(resource).collect();
        json!({ "resourceMetrics": all })
    }

    /// `None` without a number of this process.
    fn metric(&self, family: &Family, process: usize) -> Option<Value> {
        let nanoseconds = |ms: u64| (ms * 1_000_000).to_string();
        let now = nanoseconds(now_ms());
        let point = |(_, sample): &(usize, crate::metrics::Sample)| {
            let attributes: Vec<Value> = sample.labels.iter().map(|(key, value)| attribute(key, value)).collect();
            let mut point = json!({
                "asInt": sample.value.to_string(), "timeUnixNano": now, "attributes": attributes,
            });
            if family.is_counter {
                point["startTimeUnixNano"] = nanoseconds(self.started_ms).into();
            }
            point
        };
        let points: Vec<Value> = family.samples.iter().filter(|(i, _)| *i == process).map(point).collect();
        if points.is_empty() {
            return None;
        }
        let mut metric = json!({
            "name": family.name.replacen('_', ".", 1),
            "description": family.help,
            "unit": if family.is_bytes { "By" } else { "1" },
        });
        match family.is_counter {
            // 2: cumulative.
            true => metric["sum"] = json!({ "dataPoints": points, "aggregationTemporality": 2, "isMonotonic": true }),
            false => metric["gauge"] = json!({ "dataPoints": points }),
        }
        Some(metric)
    }
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

#[cfg(test)]
mod tests;
