//! The profile as a flame graph.

use crate::failure::Failure;
use craton_inspect::{Measure, Stacks};
use inferno::flamegraph::{self, Options};

pub fn picture(name: &str, stacks: &Stacks, measure: Measure) -> Result<Vec<u8>, Failure> {
    let folded = stacks.folded(measure);
    if folded.is_empty() {
        return Err(format!("{name}: no bytes {}, so that there is nothing to draw", measure.name()).into());
    }
    let mut options = Options::default();
    options.title = format!("{name}: bytes {}", measure.name());
    options.count_name = "bytes".to_owned();
    let mut picture = Vec::new();
    flamegraph::from_lines(&mut options, folded.lines(), &mut picture)
        .map_err(|e| format!("the flame graph cannot be drawn: {e}"))?;
    Ok(picture)
}
