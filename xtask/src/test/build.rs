use super::job::{Job, Kind};
use super::plan::{Plan, Run, WAITING};
use crate::library::{HEAPS_LIBRARY, LIBRARY};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub fn build(root: &Path, plan: &Plan, nightly: bool) -> Result<Vec<Job>, String> {
    let mut command = Command::new(cargo());
    command.args(["test", "--no-run", "-q", "--message-format=json-render-diagnostics"]).args(&plan.args);
    command.envs(plan.env.iter().map(|(k, v)| (k, v))).current_dir(root).stderr(Stdio::inherit());
    let output = command.output().map_err(|e| format!("cannot start cargo: {e}"))?;
    if !output.status.success() {
        return Err(format!("`cargo test {}` does not build", plan.args.join(" ")));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages: Vec<Value> = messages.collect();
    let jobs = |run| messages.iter().filter_map(move |message| job(run, message, nightly));
    Ok(plan.runs.iter().flat_map(jobs).collect())
}

pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into()
}

fn job(run: &Run, message: &Value, nightly: bool) -> Option<Job> {
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let program = message["executable"].as_str().filter(|_| is_test)?;
    let dir = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = dir.file_name()?.to_string_lossy().into_owned();
    if run.package.is_some_and(|only| only != package) {
        return None;
    }
    let target = &message["target"];
    let part = match target["kind"][0].as_str()? {
        "test" => target["name"].as_str()?.to_owned(),
        kind => format!("{}, {kind}", target["name"].as_str()?),
    };
    let kind = if WAITING.contains(&package.as_str()) { Kind::Waits } else { Kind::Computes };
    let mut env = run.env.clone();
    env.push(("CARGO_MANIFEST_DIR".to_owned(), dir.to_string_lossy().into_owned()));
    let mut job = Job {
        name: format!("{}: {package} ({part})", run.name),
        program: program.into(),
        args: run.filter.clone(),
        env,
        dir: dir.to_owned(),
        kind,
        threads: kind.threads(),
        needs: Vec::new(),
    };
    // Unit tests do without.
    if kind == Kind::Waits && target["kind"][0] == "test" {
        job.needs.push(LIBRARY);
        job.needs.extend((package == "programs").then_some(HEAPS_LIBRARY));
    }
    job.args.push(format!("--test-threads={}", job.threads));
    if nightly {
        job.args.push("--include-ignored".to_owned());
    }
    Some(job)
}

#[cfg(test)]
mod tests;
