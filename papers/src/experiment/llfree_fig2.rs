//! `llfree-fig2`: orders that Linux asks for while it starts (LLFree figure 2).

use super::llfree_kernel::{Unit, guest};
use super::sheet::{Column, Fields, Row, Sheet, Show, json, percent, table};
use super::{Ask, Findings};
use craton_lab::picture::{Axis, Estimate, Group, Unit as AxisUnit};

const PAPER: &str =
    "the paper: memory of programs is requested at orders 0 and 9 alone; the kernel mostly requests others\n";

const COLUMNS: [Column; 3] = [
    ("order", "order", Show::Plain),
    ("requests", "requests", Show::Count),
    ("", "", Show::By(|row| percent(row.num("part"), 2))),
];

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    let lines = guest(ask, Unit::Instructions)?;
    let boot: Vec<&Row> = lines.iter().filter(|line| line.word("step") == "boot").collect();
    let all: u64 = boot.iter().map(|line| line.int("requests")).sum();
    if all == 0 {
        return Err("the guest's kernel recorded no request: has it the event kmem:mm_page_alloc?".to_owned());
    }
    let row = |line: &&Row| {
        let requests = line.int("requests");
        json!({ "order": line.int("order"), "requests": requests, "part": requests as f64 / all as f64 })
    };
    let mut rows: Vec<Row> = boot.iter().map(row).collect();
    rows.sort_by_key(|row| row.int("order"));
    let mut sheet = Sheet::new(ask, rows);
    let groups = sheet.rows().iter().map(|row| Group {
        name: format!("order {}", row.int("order")),
        bars: vec![Some(Estimate::exact(row.num("part")))],
    });
    let groups = groups.collect();
    let title =
        super::sheet::Title("", "Orders that Linux asks for while it starts", "Debian's kernel, in a guest of 1 GiB");
    sheet.bars(title, Axis::linear("requests", AxisUnit::Part), &["requests".to_owned()], groups, None);
    let text = table(&COLUMNS, sheet.rows().iter());
    sheet.findings(format!("{text}\n{PAPER}"))
}
