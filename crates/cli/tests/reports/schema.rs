//! What SARIF 2.1.0 requires of the objects that `craton run --sarif` writes: their required
//! members, their words, and the references between them.

use serde_json::Value;

/// An object's members: name, and whether it is required.
type Members = &'static [(&'static str, bool)];

const LOG: Members = &[("$schema", false), ("version", true), ("runs", true)];
const RUN: Members =
    &[("tool", true), ("invocations", false), ("originalUriBaseIds", false), ("columnKind", false), ("results", false)];
const DRIVER: Members = &[("name", true), ("semanticVersion", false), ("rules", false)];
const RULE: Members = &[
    ("id", true),
    ("name", false),
    ("shortDescription", false),
    ("fullDescription", false),
    ("help", false),
    ("defaultConfiguration", false),
    ("properties", false),
];
const INVOCATION: Members = &[
    ("executionSuccessful", true),
    ("commandLine", false),
    ("arguments", false),
    ("exitCode", false),
    ("toolExecutionNotifications", false),
];
const RESULT: Members = &[
    ("ruleId", false),
    ("ruleIndex", false),
    ("level", false),
    ("message", true),
    ("locations", false),
    ("relatedLocations", false),
    ("stacks", false),
    ("partialFingerprints", false),
    ("occurrenceCount", false),
    ("properties", false),
];
const LOCATION: Members =
    &[("id", false), ("physicalLocation", false), ("logicalLocations", false), ("message", false)];
const LEVELS: [&str; 4] = ["none", "note", "warning", "error"];

fn members(value: &Value, known: Members) {
    let object = value.as_object().unwrap_or_else(|| panic!("no object: {value}"));
    for (name, _) in known.iter().filter(|(_, required)| *required) {
        assert!(object.contains_key(*name), "no {name} in {value:#}");
    }
    for name in object.keys() {
        assert!(known.iter().any(|(known, _)| known == name), "{name} is not known in {value:#}");
    }
}

fn list(value: &Value) -> &[Value] {
    match value {
        Value::Null => &[],
        value => value.as_array().unwrap_or_else(|| panic!("no list: {value}")),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or_else(|| panic!("no text: {value}"))
}

fn message(value: &Value) {
    members(value, &[("text", true)]);
    text(&value["text"]);
}

fn at_least(value: &Value, least: u64) {
    assert!(value.as_u64().is_some_and(|n| n >= least), "{value} is not from {least} on");
}

fn location(value: &Value, bases: &Value) {
    members(value, LOCATION);
    if let Some(physical) = value.get("physicalLocation") {
        members(physical, &[("artifactLocation", true), ("region", false)]);
        let artifact = &physical["artifactLocation"];
        members(artifact, &[("uri", true), ("uriBaseId", false)]);
        let uri = text(&artifact["uri"]);
        assert!(uri.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"{}|\\^`[]".contains(&byte)), "{uri}");
        if let Some(base) = artifact.get("uriBaseId") {
            assert!(bases.get(text(base)).is_some() && !uri.starts_with('/'), "{artifact}");
        }
        if let Some(region) = physical.get("region") {
            members(region, &[("startLine", true)]);
            at_least(&region["startLine"], 1);
        }
    }
    for logical in list(&value["logicalLocations"]) {
        members(logical, &[("fullyQualifiedName", true), ("kind", false)]);
        text(&logical["fullyQualifiedName"]);
    }
    value.get("message").into_iter().for_each(message);
}

/// Panics with the first thing that is missing or wrong.
pub fn check(log: &Value) {
    members(log, LOG);
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(list(&log["runs"]).len(), 1);
    let run = &log["runs"][0];
    members(run, RUN);
    members(&run["tool"], &[("driver", true)]);
    let driver = &run["tool"]["driver"];
    members(driver, DRIVER);
    text(&driver["name"]);
    assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&text(&run["columnKind"])));
    let rules = list(&driver["rules"]);
    for rule in rules {
        members(rule, RULE);
        text(&rule["id"]);
        ["shortDescription", "fullDescription", "help"].iter().for_each(|name| message(&rule[*name]));
        assert!(LEVELS.contains(&text(&rule["defaultConfiguration"]["level"])));
        // Code scanning sorts by it.
        let severity: f64 = text(&rule["properties"]["security-severity"]).parse().unwrap();
        assert!((0.0..=10.0).contains(&severity));
    }
    for base in run["originalUriBaseIds"].as_object().unwrap().values() {
        let uri = text(&base["uri"]);
        assert!(uri.starts_with("file:///") && uri.ends_with('/'), "{uri}");
    }
    for invocation in list(&run["invocations"]) {
        members(invocation, INVOCATION);
        assert!(invocation["executionSuccessful"].is_boolean() && invocation["exitCode"].is_i64());
        list(&invocation["arguments"]).iter().for_each(|argument| assert!(argument.is_string()));
        for note in list(&invocation["toolExecutionNotifications"]) {
            members(note, &[("level", false), ("message", true)]);
            assert!(LEVELS.contains(&text(&note["level"])));
            message(&note["message"]);
        }
    }
    let bases = &run["originalUriBaseIds"];
    for result in list(&run["results"]) {
        members(result, RESULT);
        message(&result["message"]);
        assert!(LEVELS.contains(&text(&result["level"])));
        let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        at_least(&result["occurrenceCount"], 1);
        // Code scanning refuses a result without a place.
        assert_eq!(list(&result["locations"]).len(), 1);
        assert!(result["locations"][0]["physicalLocation"]["region"].is_object(), "{result:#}");
        let related = list(&result["relatedLocations"]);
        list(&result["locations"]).iter().chain(related).for_each(|place| location(place, bases));
        for (i, place) in related.iter().enumerate() {
            assert_eq!(place["id"], i + 1);
            assert!(text(&result["message"]["text"]).contains(&format!("]({})", i + 1)), "{result:#}");
        }
        for stack in list(&result["stacks"]) {
            members(stack, &[("message", false), ("frames", true)]);
            for frame in list(&stack["frames"]) {
                members(frame, &[("location", false), ("module", false)]);
                location(&frame["location"], bases);
            }
        }
        result["partialFingerprints"].as_object().unwrap().values().for_each(|value| _ = text(value));
    }
}
