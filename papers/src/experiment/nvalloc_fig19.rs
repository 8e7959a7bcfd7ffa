//! `nvalloc-fig19`: stripes where caches persist (NVAlloc §6.7).

use super::nvalloc::{SPEED, check};
use super::nvalloc_fig16::{draw, sweep};
use super::sheet::{Sheet, Title, table};
use super::{Ask, Findings};
use crate::heaps::{Load, Mode};

const STRIPES: [u64; 5] = [1, 2, 4, 6, 8];

const PAPER: &str = "\
the paper's figures: without flushes the number of stripes does not matter
";

pub fn run(ask: &Ask<'_>) -> Result<Findings, String> {
    check(ask, &[])?;
    let mut sheet = Sheet::new(ask, sweep(ask, Load::Threadtest, Mode::None, "stripes", &STRIPES)?);
    draw(
        &mut sheet,
        "stripes",
        Title("", "Stripes of bitmaps where caches persist", "Threadtest, one thread; medians"),
    );
    let table = table(&SPEED, sheet.rows());
    sheet.findings(format!("{table}\n{PAPER}"))
}
