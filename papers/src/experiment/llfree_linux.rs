//! Common parts of the experiments in Linux on page frames (docs/linux.md).

use super::Ask;
use super::sheet::Row;
use std::path::Path;
use std::process::Command;

pub const BUDDY: &str = "buddy";

/// The lines of JSON of a task of `scripts/linux.sh`, with these numbers in its environment.
pub fn guest(ask: &Ask<'_>, task: &'static str, numbers: &[(&str, usize)]) -> Result<Vec<Row>, String> {
    ask.refuse(&["--peers"], ", which compares allocators in a kernel")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/linux.sh");
    if !script.exists() {
        return Err(format!("{} is not there: this experiment needs Craton's sources", script.display()));
    }
    ask.show("Linux with page frames", task, 0, (0, 1));
    let said = Command::new(&script)
        .arg(task)
        .envs(numbers.iter().map(|(name, number)| (name, number.to_string())))
        .output()
        .map_err(|error| format!("{}: {error}", script.display()))?;
    if !said.status.success() {
        let why = String::from_utf8_lossy(&said.stderr);
        return Err(format!(
            "the Linux guest did not come to its end: {}",
            why.lines().last().unwrap_or("it said nothing")
        ));
    }
    let text = String::from_utf8_lossy(&said.stdout);
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
