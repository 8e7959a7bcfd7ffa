//! `packaging/grafana.json`, the dashboard of Grafana: its model, and its queries against the
//! metrics of a real process.
//!
//! **From.** The dashboard's JSON model in Grafana's manual, and PromQL in that of Prometheus.

use crate::common::{Place, Program};
use crate::serve::{HOLDS, Serving, metrics};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn dashboard() -> Value {
    serde_json::from_str(include_str!("../../../packaging/grafana.json")).unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no list {key} in {value}"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no text {key} in {value}"))
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no number {key} in {value}"))
}

/// Names that `$NAME` stands for.
fn variables(dashboard: &Value) -> BTreeSet<&str> {
    list(&dashboard["templating"], "list").iter().map(|variable| text(variable, "name")).collect()
}

#[test]
fn each_panel_has_a_place_of_its_own_and_a_source() {
    let dashboard = dashboard();
    assert!(number(&dashboard, "schemaVersion") >= 36 && !text(&dashboard, "uid").is_empty());
    assert!(["title", "refresh"].iter().all(|key| !text(&dashboard, key).is_empty()));
    assert!(["from", "to"].iter().all(|key| text(&dashboard["time"], key).starts_with("now")));
    let source = list(&dashboard["templating"], "list").iter().find(|variable| variable["name"] == "datasource");
    let source = source.expect("a variable for the source");
    assert!(source["type"] == "datasource" && source["query"] == "prometheus", "{source}");
    let is_source = |of: &Value| {
        assert_eq!((text(&of["datasource"], "type"), text(&of["datasource"], "uid")), ("prometheus", "${datasource}"));
    };
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in list(&dashboard, "panels") {
        let title = text(panel, "title");
        assert!(["stat", "timeseries"].contains(&text(panel, "type")) && !title.is_empty(), "{title}");
        assert!(ids.insert(number(panel, "id")), "{title}: the number is another panel's");
        let units = ["bytes", "percent", "percentunit", "ops", "short", "Bps"];
        assert!(units.contains(&text(&panel["fieldConfig"]["defaults"], "unit")), "{title}");
        assert!(panel["options"].is_object() && !text(panel, "description").is_empty(), "{title}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| number(&panel["gridPos"], key));
        assert!(w > 0 && h > 0 && x + w <= 24, "{title}");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(cell), "{title} lies over another panel at {cell:?}");
        }
        is_source(panel);
        let targets = list(panel, "targets");
        let refs: BTreeSet<&str> = targets.iter().map(|target| text(target, "refId")).collect();
        assert!(!targets.is_empty() && refs.len() == targets.len(), "{title}");
        targets.iter().for_each(is_source);
    }
    // No gap that Grafana would close by moving panels up.
    let bottom = taken.iter().map(|(_, y)| y + 1).max().unwrap();
    assert_eq!(taken.len() as u64, 24 * bottom, "a row of the dashboard has a hole");
    for variable in list(&dashboard["templating"], "list").iter().filter(|variable| variable["type"] == "query") {
        is_source(variable);
    }
}

/// Labels of a metric's samples, and their values.
type Labels = BTreeMap<String, BTreeSet<String>>;

/// By the metric's name.
fn known(page: &str) -> BTreeMap<String, Labels> {
    let mut all: BTreeMap<String, Labels> = BTreeMap::new();
    for (sample, _) in metrics(page) {
        let (name, labels) = sample.trim_end_matches('}').split_once('{').unwrap();
        let known = all.entry(name.to_owned()).or_default();
        for label in labels.split(',') {
            let (label, value) = label.split_once('=').unwrap();
            known.entry(label.to_owned()).or_default().insert(value.trim_matches('"').to_owned());
        }
    }
    all
}

#[test]
fn each_query_is_of_metrics_and_labels_that_a_process_has() {
    let place = Place::new("serve-dashboard");
    let program = Program::start(&place, "holds", HOLDS);
    let serving = Serving::start(&["--experiment", "a", &program.pid()]);
    let (dashboard, known) = (dashboard(), known(&serving.get("/metrics").body));
    let variables = variables(&dashboard);
    let mut queries = 0;
    for panel in list(&dashboard, "panels") {
        for target in list(panel, "targets") {
            let mut query = Query::new(text(target, "expr"), &known, &variables);
            query.whole();
            queries += 1;
            let shown = target["legendFormat"].as_str().unwrap_or("");
            for label in shown.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap()) {
                assert!(query.labels.contains(label), "{shown}: the result of {} has {:?}", query.text, query.labels);
            }
        }
    }
    assert!(queries > 15, "{queries}");
    // `label_values(SELECTOR, LABEL)`.
    for variable in list(&dashboard["templating"], "list").iter().filter(|variable| variable["type"] == "query") {
        let inner = text(variable, "query").strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let (selector, label) = inner.and_then(|inner| inner.rsplit_once(", ")).expect("label_values(SELECTOR, LABEL)");
        let mut query = Query::new(selector, &known, &variables);
        query.whole();
        assert!(query.labels.contains(label), "{variable}");
    }
}

#[test]
fn wrong_queries_are_found() {
    let page = "# HELP craton_a_bytes a\n# TYPE craton_a_bytes gauge\ncraton_a_bytes{row=\"x\"} 1\n\
                # HELP craton_b_total b\n# TYPE craton_b_total counter\ncraton_b_total{row=\"x\"} 1\n";
    let (known, variables) = (known(page), BTreeSet::from(["row"]));
    let is_right = |text: &str| {
        std::panic::catch_unwind(|| {
            let mut query = Query::new(text, &known, &variables);
            query.whole();
        })
        .is_ok()
    };
    for right in [
        "craton_a_bytes",
        "sum by (row) (craton_a_bytes{row=~\"$row\"}) > 0",
        "sum(craton_a_bytes) / sum(rate(craton_b_total[5m])) - 1",
        "rate(craton_b_total{row=\"x\"}[$__rate_interval])",
    ] {
        assert!(is_right(right), "{right}");
    }
    for wrong in [
        "craton_c_bytes",
        "sum(craton_a_bytes",
        "sum(craton_a_bytes))",
        "craton_a_bytes{row=~\"$nothing\"}",
        "craton_a_bytes{row=\"y\"}",
        "craton_a_bytes{column=\"x\"}",
        "craton_a_bytes{row=x}",
        "sum by (column) (craton_a_bytes)",
        "rate(craton_b_total)",
        "rate(craton_a_bytes[5m])",
        "craton_b_total[5m]",
        "craton_b_total",
        "craton_a_bytes craton_a_bytes",
        "craton_a_bytes +",
        "",
    ] {
        assert!(!is_right(wrong), "{wrong}");
    }
}

/// A parser of the part of PromQL that the dashboard uses. It panics at the first fault.
struct Query<'a> {
    text: &'a str,
    at: usize,
    known: &'a BTreeMap<String, Labels>,
    variables: &'a BTreeSet<&'a str>,
    /// Of the result.
    labels: BTreeSet<String>,
}

impl<'a> Query<'a> {
    fn new(text: &'a str, known: &'a BTreeMap<String, Labels>, variables: &'a BTreeSet<&'a str>) -> Self {
        Self { text, at: 0, known, variables, labels: BTreeSet::new() }
    }

    fn rest(&self) -> &'a str {
        self.text[self.at..].trim_start()
    }

    fn has(&mut self, token: &str) -> bool {
        let rest = self.rest();
        let is_there = rest.starts_with(token);
        if is_there {
            self.at = self.text.len() - rest.len() + token.len();
        }
        is_there
    }

    fn expect(&mut self, token: &str) {
        assert!(self.has(token), "{}: {token} is missing before \"{}\"", self.text, self.rest());
    }

    /// Up to the first sign that `is_part` refuses.
    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let word = &rest[..rest.find(|sign| !is_part(sign)).unwrap_or(rest.len())];
        assert!(!word.is_empty(), "{}: a word is missing before \"{rest}\"", self.text);
        self.at = self.text.len() - rest.len() + word.len();
        word
    }

    fn name(&mut self) -> &'a str {
        self.word(|sign| sign.is_ascii_alphanumeric() || sign == '_')
    }

    fn whole(&mut self) {
        self.labels = self.sum();
        assert!(self.rest().is_empty(), "{}: \"{}\" is left", self.text, self.rest());
    }

    /// Terms and operators, whose order does not matter here; returns the labels of the first term.
    fn sum(&mut self) -> BTreeSet<String> {
        let labels = self.term();
        while ["+", "-", "*", "/", ">", "<"].iter().any(|operator| self.has(operator)) {
            let other = self.term();
            assert!(other.is_empty() || other == labels, "{}: {labels:?} and {other:?} do not match", self.text);
        }
        labels
    }

    fn term(&mut self) -> BTreeSet<String> {
        if self.has("(") {
            let labels = self.sum();
            self.expect(")");
            return labels;
        }
        if self.rest().starts_with(|sign: char| sign.is_ascii_digit()) {
            let number = self.word(|sign| sign.is_ascii_digit() || sign == '.');
            assert!(number.parse::<f64>().is_ok(), "{}: {number}", self.text);
            return BTreeSet::new();
        }
        match self.name() {
            "sum" | "avg" | "min" | "max" => self.aggregate(),
            "rate" => {
                self.expect("(");
                let labels = self.series(true);
                self.expect(")");
                labels
            }
            name => self.series_of(name, false),
        }
    }

    fn aggregate(&mut self) -> BTreeSet<String> {
        let mut by = BTreeSet::new();
        if self.has("by") {
            self.expect("(");
            by.insert(self.name().to_owned());
            while self.has(",") {
                by.insert(self.name().to_owned());
            }
            self.expect(")");
        }
        self.expect("(");
        let labels = self.sum();
        self.expect(")");
        assert!(by.is_subset(&labels), "{}: {by:?} of {labels:?}", self.text);
        by
    }

    fn series(&mut self, is_range: bool) -> BTreeSet<String> {
        let name = self.name();
        self.series_of(name, is_range)
    }

    /// A counter's rate, or a gauge.
    fn series_of(&mut self, name: &str, is_range: bool) -> BTreeSet<String> {
        let known = self.known.get(name).unwrap_or_else(|| panic!("{}: there is no metric {name}", self.text));
        assert_eq!(name.ends_with("_total"), is_range, "{}: {name}", self.text);
        if self.has("{") {
            self.matcher(known);
            while self.has(",") {
                self.matcher(known);
            }
            self.expect("}");
        }
        if is_range {
            self.expect("[");
            let range = self.word(|sign| sign != ']');
            let is_time = |time: &str| time.trim_end_matches(['s', 'm', 'h']).parse::<u32>().is_ok();
            assert!(range == "$__rate_interval" || is_time(range), "{}: {range}", self.text);
            self.expect("]");
        }
        known.keys().cloned().collect()
    }

    fn matcher(&mut self, known: &Labels) {
        let label = self.name();
        let values = known.get(label).unwrap_or_else(|| panic!("{}: there is no label {label}", self.text));
        let is_pattern = self.has("=~");
        if !is_pattern {
            self.expect("=");
        }
        self.expect("\"");
        let value = self.word(|sign| sign != '"');
        self.expect("\"");
        match value.strip_prefix('$') {
            Some(variable) => assert!(is_pattern && self.variables.contains(variable), "{}: {value}", self.text),
            None => value.split('|').for_each(|value| assert!(values.contains(value), "{}: {value}", self.text)),
        }
    }
}
