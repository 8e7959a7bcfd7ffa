//! `micro`: the cost of one malloc and its free ([`craton_lab::micro`]).

use super::sheet::{Fields, Row, Sheet, Title, by, lines};
use super::{Ask, Findings};
use craton_lab::measure::Progress;
use craton_lab::micro::{self, Config, Status, report};
use craton_lab::picture::{Axis, Unit};
use craton_lab::ratios::{OURS, Ratios};

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let program = (ask.tool)("craton-micro")?;
    let progress = |now: micro::Progress<'_>| {
        let what = if now.counting { "instructions of " } else { "" };
        let name = format!("{what}{} {} B", now.pattern.name(), now.size_bytes);
        let round = Progress { allocator: now.allocator, round: Some(0), done: now.done, total: now.total };
        (ask.progress)(&name, round);
    };
    let mut config = Config::standard(ask.quick, ask.allocators, program, ask.stop, &progress);
    only(ask, &mut config)?;
    let measured = micro::run(&config)?;
    let rows = measured.iter().map(|row| serde_json::to_value(row).unwrap_or_default()).collect();
    let mut sheet = Sheet::new(ask, rows).compared(ask.allocators, &Ratios::default());
    sheet.failed = measured.iter().filter(|row| !matches!(row.status, Status::Ok | Status::NotCounted(_))).count();
    let ratios = sheet.ratios(|_| report::ratios(&measured, OURS), 3);
    let title = Title("pair", "A malloc and its free", "warm, one thread; median, the loop of 2 to 3 ns included");
    let timed =
        measured.iter().zip(sheet.rows()).filter(|(of, _)| of.pattern == "pair" && of.threads == 1 && of.is_timed());
    let timed: Vec<&Row> = timed.map(|(_, row)| row).collect();
    let series = lines(timed, by("allocator"), |row| (row.num("size_bytes"), row.num("ns_median") / 1e9));
    sheet.lines(
        title,
        (Axis::log2("size of the object", Unit::Bytes), Axis::log("time of a pair", Unit::Seconds)),
        series,
        None,
    );
    sheet.findings(format!("{}\n{ratios}", report::table(&measured)))
}

fn only(ask: &Ask<'_>, config: &mut Config<'_>) -> Result<(), String> {
    ask.known("pattern", &config.patterns.iter().map(|pattern| pattern.name()).collect::<Vec<_>>())?;
    if !ask.only.is_empty() {
        config.patterns.retain(|pattern| ask.only.contains(&pattern.name()));
        config.counted_patterns.retain(|pattern| ask.only.contains(&pattern.name()));
    }
    Ok(())
}
