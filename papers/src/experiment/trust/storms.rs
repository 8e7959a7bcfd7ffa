//! The checking client ([`crate::trust::client`]), alone and under storms. No file may be left.

use super::{Ours, Part};
use crate::experiment::Ask;
use crate::experiment::sheet::{Column, Row, Show, json, table, with};
use craton_lab::ratios::OURS;
use craton_lab::rng::Rng;
use craton_lab::scratch::Scratch;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The quick form runs every second one.
const STORMS: [(&str, &[&str]); 5] = [
    ("alone", &[]),
    ("one thread", &["--threads", "1"]),
    ("forks", &["--forks"]),
    ("signals", &["--signals"]),
    ("forks and signals, 16 threads", &["--forks", "--signals", "--threads", "16"]),
];
const FULL_S: u64 = 60;
const FULL_KILLS: usize = 500;
const QUICK_KILLS: usize = 10;
const LIFE_US: u32 = 200_000;

const COLUMNS: [Column; 8] = [
    ("", "name", Show::Text),
    ("operations", "operations", Show::Count),
    ("forks", "forks", Show::Count),
    ("signals", "signals", Show::Count),
    ("kills", "kills", Show::Count),
    ("peak live", "peak_live_bytes", Show::Bytes),
    ("peak rss", "peak_rss_bytes", Show::Bytes),
    ("rss ÷ recent live, worst", "worst_rss_per_live", Show::Fixed(2, "")),
];

pub fn run(ask: &Ask<'_>, ours: &Ours) -> Result<Part, String> {
    let client = (ask.tool)("craton-client")?;
    let scratch = Scratch::new("storms")?;
    let mut rows = Vec::new();
    for (done, (name, options)) in STORMS.iter().enumerate().step_by(ask.form(2, 1)) {
        if ask.stopped() {
            break;
        }
        ask.show(name, OURS, 0, (done, STORMS.len() + 1));
        let seconds = ask.form(1, FULL_S).to_string();
        let mut command = command(&client, ours, scratch.path());
        let output = command.args(["--seconds", &seconds]).args(*options).output();
        let head = json!({ "part": "storms", "name": name });
        let row = match output {
            Err(e) => with(head, &json!({}), &format!("failed: cannot start {}: {e}", client.display())),
            Ok(output) if output.status.success() => {
                let figures: Row = serde_json::from_slice(&output.stdout).unwrap_or_default();
                with(head, &figures, "ok")
            }
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                with(head, &json!({}), &format!("failed: {}: {}", output.status, said.trim()))
            }
        };
        rows.push(row);
    }
    if !ask.stopped() {
        rows.push(kills(ask, &client, ours, scratch.path()));
    }
    Ok((table(&COLUMNS, &rows), rows))
}

fn command(client: &Path, ours: &Ours, directory: &Path) -> Command {
    let mut command = Command::new(client);
    command.envs(ours.variables.iter().map(|(key, value)| (key, value))).env("TMPDIR", directory);
    command.current_dir(directory).stdin(Stdio::null());
    command
}

fn kills(ask: &Ask<'_>, client: &Path, ours: &Ours, directory: &Path) -> Row {
    let (count, mut rng, mut wrong) = (ask.form(QUICK_KILLS, FULL_KILLS), Rng::new(1, 0), Vec::new());
    for kill in 0..count {
        if ask.stopped() {
            break;
        }
        ask.show("kills", OURS, kill, (kill, count));
        let mut command = command(client, ours, directory);
        command.args(["--threads", "4", "--seconds", "60"]).stdout(Stdio::null()).stderr(Stdio::null());
        let ended = command.spawn().and_then(|mut child| {
            std::thread::sleep(Duration::from_micros(rng.below(LIFE_US).into()));
            let _ = child.kill();
            child.wait()
        });
        match ended {
            Ok(status) if status.signal() == Some(libc::SIGKILL) => {}
            Ok(status) => wrong.push(format!("the client ended by itself: {status}")),
            Err(e) => wrong.push(e.to_string()),
        }
    }
    let left = directory.read_dir().map_or(0, Iterator::count);
    if left > 0 {
        wrong.push(format!("{left} files are left"));
    }
    let status = wrong.first().map_or("ok".to_owned(), |why| format!("failed: {why}"));
    with(json!({ "part": "storms", "name": "kills" }), &json!({ "kills": count }), &status)
}
