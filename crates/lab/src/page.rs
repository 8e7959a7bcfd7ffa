//! A comparison as one HTML page that needs no network.
//!
//! **Units.** Ratios are to the base's figure, below 1 for less; seconds, bytes.

mod charts;
mod verdict;

use crate::picture::{Estimate, Unit};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page/style.css");

#[derive(Clone, Debug, Default)]
pub struct Page {
    pub title: String,
    pub measured: String,
    pub command: String,
    pub commit: String,
    pub machine: Vec<(String, String)>,
    /// `craton`.
    pub subject: String,
    /// `glibc`.
    pub base: String,
    pub rounds: usize,
    pub warmup: usize,
    pub method: Vec<String>,
    pub allocators: Vec<Column>,
    pub failures: Vec<Failure>,
}

#[derive(Clone, Debug, Default)]
pub struct Column {
    pub name: String,
    pub note: String,
    /// Matched between allocators by name; the first is the main one.
    pub figures: Vec<Figure>,
    /// In seconds, bytes.
    pub rss: Vec<(f64, f64)>,
}

#[derive(Clone, Debug)]
pub struct Figure {
    pub name: String,
    pub unit: Unit,
    pub more_is_better: bool,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// None for the base.
    pub ratio: Option<Estimate>,
    pub runs: Vec<f64>,
    /// To the base's run of the same round: ticks in the chart.
    pub round_ratios: Vec<f64>,
}

#[derive(Clone, Debug, Default)]
pub struct Failure {
    pub allocator: String,
    /// 0 for a warm-up.
    pub round: usize,
    pub status: String,
    pub stderr: String,
}

impl Page {
    pub fn html(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        p.kicker { "Allocators compared" }
                        h1 { (self.title) }
                        p.command { code { (self.measured) } }
                    }
                    main {
                        (self.verdict())
                        (self.table())
                        (charts::all(self))
                        (self.failed())
                        (self.how())
                    }
                }
            }
        };
        page.into_string()
    }

    fn figure_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for figure in self.allocators.iter().flat_map(|column| &column.figures) {
            if !names.contains(&figure.name.as_str()) {
                names.push(&figure.name);
            }
        }
        names
    }

    fn verdict(&self) -> Markup {
        let subject = self.allocators.iter().find(|column| column.name == self.subject);
        html! {
            section.verdict {
                @match subject {
                    Some(column) => p { (verdict::sentence(column, &self.base)) },
                    None => p { "No run of " (self.subject) " is in this comparison." },
                }
                @if !self.failures.is_empty() {
                    p.warning { (verdict::failures(&self.failures)) " " a href="#failures" { "What failed" } }
                }
            }
        }
    }

    fn table(&self) -> Markup {
        let names = self.figure_names();
        if names.is_empty() {
            return html! { section { h2 { "Figures" } p.quiet { "No run succeeded: there are no figures." } } };
        }
        html! {
            section {
                h2 { "Figures" }
                div.scroll tabindex="0" {
                    table {
                        thead { tr {
                            th scope="col" { "allocator" }
                            @for name in &names { th scope="col" { (name) } }
                        } }
                        tbody { @for column in &self.allocators {
                            tr.subject[column.name == self.subject] {
                                th scope="row" {
                                    span.swatch style={ "background:" (crate::picture::colour_of(&column.name)) } {}
                                    (column.name)
                                }
                                @for name in &names { (self.figure(column, name)) }
                            }
                        } }
                    }
                }
                p.quiet {
                    "Medians of the runs, with the smallest and the largest. Below: the difference to " (self.base)
                    " and its 95\u{a0}% interval; " span.less { "blue" } " is better, " span.more { "orange" }
                    " is worse, grey is no clear difference."
                }
            }
        }
    }

    fn figure(&self, column: &Column, name: &str) -> Markup {
        let Some(figure) = column.figures.iter().find(|figure| figure.name == name) else {
            return html! { td.quiet { "no figure" } };
        };
        let write = |value| figure.unit.write(value);
        let runs: Vec<String> = figure.runs.iter().map(|run| write(*run)).collect();
        html! {
            td title=[(!runs.is_empty()).then(|| format!("single runs: {}", runs.join(", ")))] {
                strong { (write(figure.median)) }
                span.range { (write(figure.min)) " – " (write(figure.max)) }
                @match (&figure.ratio, column.name == self.base) {
                    (_, true) => span.same { "the base" },
                    (Some(ratio), _) => span class=(verdict::class(ratio, figure.more_is_better)) { (verdict::short(ratio)) },
                    (None, _) => span.same { "no ratio" },
                }
            }
        }
    }

    fn failed(&self) -> Markup {
        if self.failures.is_empty() {
            return html! {};
        }
        html! {
            section #failures {
                h2 { "Failures" }
                @for failure in &self.failures {
                    article.failure {
                        h3 {
                            (failure.allocator) ", "
                            @if failure.round == 0 { "warm-up" } @else { "round " (failure.round) }
                            ": " span.status { (failure.status) }
                        }
                        @if failure.stderr.trim().is_empty() {
                            p.quiet { "It wrote nothing to standard error." }
                        } @else {
                            details open[self.failures.len() <= 6] {
                                summary { "The end of its standard error" }
                                pre { (printable(&failure.stderr)) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn how(&self) -> Markup {
        html! {
            section {
                h2 { "How it was measured" }
                p {
                    "The command ran once on each allocator in turn, for " (count(self.rounds, "round"))
                    @if self.warmup > 0 { " after " (count(self.warmup, "round")) " of warm-up that did not count" }
                    ", so that what disturbs the machine for a while disturbs all of them. "
                    "Ratios compare the runs of the same round. A run that failed is in no figure."
                }
                @for paragraph in &self.method { p { (paragraph) } }
                @if self.allocators.iter().any(|column| !column.note.is_empty()) {
                    dl { @for column in self.allocators.iter().filter(|column| !column.note.is_empty()) {
                        dt { (column.name) } dd { (column.note) }
                    } }
                }
                h3 { "Machine" }
                dl {
                    @for (name, value) in &self.machine { dt { (name) } dd { (value) } }
                    @if !self.commit.is_empty() { dt { "commit" } dd { code { (self.commit) } } }
                }
                h3 { "To do it again" }
                pre.again { (printable(&self.command)) }
            }
        }
    }
}

fn count(number: usize, of: &str) -> String {
    format!("{number} {of}{}", if number == 1 { "" } else { "s" })
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests;
