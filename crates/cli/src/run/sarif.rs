//! Findings as SARIF 2.1.0 (OASIS, 2020).
//!
//! **What.** GitHub's code scanning reads a part of it: the rules, a message, one location with a
//! line. Paths below the root of the sources are relative to it. A finding without lines names the
//! program's file, with line 1, since code scanning refuses a result without a place. Suppressed
//! findings are left out, since code scanning would show them; a note counts them.

use super::findings::Finding;
use super::kinds::{KINDS, index};
use super::reports::Role;
use craton_inspect::Call;
use serde_json::{Value, json};
use std::path::Path;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The name for the root of the sources.
const ROOT: &str = "%SRCROOT%";

/// The run that made the findings.
pub struct Invocation<'a> {
    pub command: &'a [String],
    /// CMD.
    pub program: &'a str,
    /// Of `craton`.
    pub status: u8,
    /// Why CMD's process was not checked.
    pub unserved: Option<&'a str>,
    pub notes: &'a [String],
}

pub fn text(findings: &[Finding], invocation: &Invocation<'_>, root: &Path) -> String {
    let rules: Vec<Value> = KINDS.iter().map(rule).collect();
    let results: Vec<Value> =
        findings.iter().filter(|finding| !finding.is_suppressed()).map(|finding| result(finding, root)).collect();
    let note = |level: &str, text: &str| json!({ "level": level, "message": { "text": text } });
    let unserved = invocation.unserved.map(|text| note("error", text));
    let notes = invocation.notes.iter().map(|text| note("note", text));
    let notes: Vec<Value> = unserved.into_iter().chain(notes).collect();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "Craton",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "invocations": [{
                "executionSuccessful": invocation.unserved.is_none(),
                "commandLine": invocation.command.join(" "),
                "arguments": invocation.command.iter().skip(1).collect::<Vec<_>>(),
                "exitCode": invocation.status,
                "toolExecutionNotifications": notes,
            }],
            "originalUriBaseIds": { ROOT: { "uri": format!("file://{}/", encoded(&root.display().to_string())) } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{document:#}\n")
}

fn rule(kind: &super::kinds::Kind) -> Value {
    let help = format!("{}. Craton's debugging kit found it while the program ran: docs/debugging.md.", kind.text);
    json!({
        "id": kind.name,
        "name": kind.name,
        "shortDescription": { "text": kind.text },
        "fullDescription": { "text": help },
        "help": { "text": help },
        "defaultConfiguration": { "level": level(kind.name) },
        "properties": {
            "tags": ["security", "memory", format!("external/cwe/cwe-{}", kind.weakness)],
            "precision": "very-high",
            "security-severity": kind.severity,
        },
    })
}

fn level(kind: &str) -> &'static str {
    if kind == "leak" { "warning" } else { "error" }
}

fn result(finding: &Finding, root: &Path) -> Value {
    let related = related(finding, root);
    let links: String = related.iter().map(|(role, i, _)| format!(" [{} here]({i}).", capital(role.name()))).collect();
    let mut value = json!({
        "ruleId": finding.kind,
        "level": level(&finding.kind),
        "message": { "text": format!("{}.{links}", escaped(&capital(&finding.message))) },
        "locations": [location(finding, root)],
        "relatedLocations": related.into_iter().map(|(_, _, location)| location).collect::<Vec<_>>(),
        "stacks": finding.stacks().map(|(role, calls)| stack(role, calls, root)).collect::<Vec<_>>(),
        "partialFingerprints": { "kindAndFunctions/v1": format!("{:016x}", finding.fingerprint()) },
        "occurrenceCount": finding.times.max(1),
        "properties": {
            "processes": finding.processes,
            "programs": finding.programs,
            "details": finding.details,
        },
    });
    if let Some(i) = index(&finding.kind) {
        value["ruleIndex"] = json!(i);
    }
    if finding.is_leak() {
        value["properties"]["bytes"] = json!(finding.bytes + finding.held_bytes);
        value["properties"]["objects"] = json!(finding.objects + finding.held_objects);
    }
    value
}

/// The places of the other stacks.
fn related(finding: &Finding, root: &Path) -> Vec<(Role, usize, Value)> {
    let placed = |calls: &[Call]| calls.iter().find(|call| call.line.is_some() && !call.is_of_language()).cloned();
    let others = finding.stacks().skip(1).filter_map(|(role, calls)| Some((role, placed(calls)?)));
    let numbered = others.enumerate().map(|(i, (role, call))| {
        let mut value = at(&call, root);
        value["id"] = json!(i + 1);
        value["message"] = json!({ "text": format!("{} here", role.name()) });
        (role, i + 1, value)
    });
    numbered.collect()
}

fn stack(role: Role, calls: &[Call], root: &Path) -> Value {
    let frame = |call: &Call| json!({ "location": at(call, root), "module": call.module });
    json!({ "message": { "text": role.name() }, "frames": calls.iter().map(frame).collect::<Vec<_>>() })
}

fn location(finding: &Finding, root: &Path) -> Value {
    if let Some(call) = &finding.place {
        return at(call, root);
    }
    let mut value = json!({
        "physicalLocation": { "artifactLocation": artifact(finding.module(), root), "region": { "startLine": 1 } },
    });
    if let Some(call) = finding.stacks().flat_map(|(_, calls)| calls).next() {
        value["logicalLocations"] = logical(call);
    }
    value
}

fn at(call: &Call, root: &Path) -> Value {
    let mut value = json!({ "logicalLocations": logical(call) });
    if let Some(file) = &call.file {
        value["physicalLocation"] = json!({ "artifactLocation": artifact(file, root) });
        if let Some(line) = call.line.filter(|line| *line > 0) {
            value["physicalLocation"]["region"] = json!({ "startLine": line });
        }
    }
    value
}

fn logical(call: &Call) -> Value {
    json!([{ "fullyQualifiedName": call.function, "kind": "function" }])
}

fn artifact(file: &str, root: &Path) -> Value {
    match Path::new(file).strip_prefix(root) {
        Ok(inside) => json!({ "uri": encoded(&inside.display().to_string()), "uriBaseId": ROOT }),
        Err(_) if file.starts_with('/') => json!({ "uri": format!("file://{}", encoded(file)) }),
        Err(_) => json!({ "uri": encoded(file) }),
    }
}

/// As RFC 3986 wants paths.
fn encoded(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~+@,=".contains(&byte);
    let one = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    path.bytes().map(one).collect()
}

/// Brackets would begin a link.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests;
