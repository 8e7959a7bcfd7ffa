//! Findings as a Code Quality report of GitLab: a list of issues, each with its file and line.
//! Findings without lines name the program's file. A process that was not served is an issue, since
//! the form has no other place for it.

use super::findings::Finding;
use super::sarif::Invocation;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

pub fn text(findings: &[Finding], invocation: &Invocation<'_>, root: &Path) -> String {
    // Fingerprints must differ within a report.
    let mut seen: HashMap<u64, u64> = HashMap::new();
    let mut issue = |finding: &Finding| {
        let fingerprint = finding.fingerprint();
        let nth = seen.entry(fingerprint).and_modify(|n| *n += 1).or_insert(0);
        let place = finding.place.as_ref().and_then(|call| Some((call.file.as_deref()?, call.line?)));
        let (file, line) = place.unwrap_or((finding.module(), 1));
        let path = Path::new(file).strip_prefix(root).unwrap_or(Path::new(file));
        json!({
            "description": format!("{}: {}", finding.kind, finding.message),
            "check_name": format!("craton/{}", finding.kind),
            "fingerprint": format!("{fingerprint:016x}{nth:04x}"),
            "severity": if finding.is_leak() { "major" } else { "critical" },
            "location": { "path": path.display().to_string(), "lines": { "begin": line } },
        })
    };
    let unserved = |why: &str| {
        json!({
            "description": format!("not checked: {why}"),
            "check_name": "craton/not-served",
            "fingerprint": "craton-not-served",
            "severity": "major",
            "location": { "path": invocation.program, "lines": { "begin": 1 } },
        })
    };
    let unserved = invocation.unserved.map(unserved);
    let issues = findings.iter().filter(|finding| !finding.is_suppressed()).map(&mut issue);
    let all: Vec<Value> = unserved.into_iter().chain(issues).collect();
    format!("{:#}\n", Value::Array(all))
}
