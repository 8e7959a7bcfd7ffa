//! Cases of experiments on the simulated page heap.

use super::Ask;

/// Played once.
pub const ONCE: [(&str, ()); 1] = [("the page heap", ())];

pub fn check<N: AsRef<str>, T>(ask: &Ask<'_>, cases: &[(N, T)]) -> Result<(), String> {
    ask.refuse(&["--peers", "--runs"], ", which is a simulation of Craton's page heap")?;
    if cases.is_empty() {
        ask.refuse(&["--only"], "")?;
    }
    ask.known("case", &cases.iter().map(|(name, _)| name.as_ref()).collect::<Vec<_>>())
}

pub type Asked<'a, N, T, W> = (&'a (N, T), &'a (&'static str, W));

/// In every way, until the caller stops.
pub fn asked<'a, N: AsRef<str>, T, W>(
    ask: &'a Ask<'_>,
    cases: &'a [(N, T)],
    ways: &'a [(&'static str, W)],
) -> Result<impl Iterator<Item = Asked<'a, N, T, W>>, String> {
    check(ask, cases)?;
    let total = cases.len() * ways.len();
    let all = cases.iter().flat_map(move |case| ways.iter().map(move |way| (case, way)));
    let asked = all.enumerate().filter(|(_, (case, _))| ask.wants(case.0.as_ref()));
    Ok(asked.take_while(|_| !ask.stopped()).map(move |(done, (case, way))| {
        ask.show(case.0.as_ref(), way.0, 0, (done, total));
        (case, way)
    }))
}
