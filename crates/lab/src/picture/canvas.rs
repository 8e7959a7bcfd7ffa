//! The writer of SVG elements: equal data give equal bytes. No ids and no style sheets, so a page
//! may contain any number of pictures.
//!
//! **Units.** Pixels from the upper left corner; degrees, clockwise.

use super::text::FAMILY;
use std::fmt::Write;

#[derive(Clone, Copy, Debug)]
pub struct Stroke<'a> {
    pub colour: &'a str,
    pub width: f64,
    /// Dashes and gaps.
    pub dash: &'a str,
}

impl<'a> Stroke<'a> {
    pub fn plain(colour: &'a str, width: f64) -> Self {
        Self { colour, width, dash: "" }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Copy, Debug)]
pub struct Type<'a> {
    pub size: f64,
    pub colour: &'a str,
    pub bold: bool,
    pub anchor: Anchor,
    pub turn: f64,
    pub halo: &'a str,
}

impl<'a> Type<'a> {
    pub fn new(size: f64, colour: &'a str) -> Self {
        Self { size, colour, bold: false, anchor: Anchor::Start, turn: 0.0, halo: "" }
    }

    pub fn bold(self, bold: bool) -> Self {
        Self { bold, ..self }
    }

    pub fn middle(self) -> Self {
        Self { anchor: Anchor::Middle, ..self }
    }

    pub fn end(self) -> Self {
        Self { anchor: Anchor::End, ..self }
    }

    pub fn rimmed(self, halo: &'a str) -> Self {
        Self { halo, ..self }
    }

    pub fn turned(self, degrees: f64) -> Self {
        Self { turn: degrees, ..self }
    }
}

#[derive(Debug, Default)]
pub struct Canvas {
    body: String,
}

impl Canvas {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, stroke: Stroke<'_>) {
        self.path(&format!("M{} {}L{} {}", number(x1), number(y1), number(x2), number(y2)), "none", Some(stroke));
    }

    /// A negative size counts as 0.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        let (width, height) = (number(width.max(0.0)), number(height.max(0.0)));
        self.push(format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>",
            number(x),
            number(y)
        ));
    }

    pub fn disc(&mut self, x: f64, y: f64, radius: f64, fill: &str, edge: &str) {
        self.push(format!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{fill}\" stroke=\"{edge}\" stroke-width=\"1\"/>",
            number(x),
            number(y),
            number(radius)
        ));
    }

    pub fn path(&mut self, d: &str, fill: &str, stroke: Option<Stroke<'_>>) {
        let mut element = format!("<path d=\"{d}\" fill=\"{fill}\"");
        if let Some(Stroke { colour, width, dash }) = stroke {
            let _ = write!(element, " stroke=\"{colour}\" stroke-width=\"{}\"", number(width));
            let _ = write!(element, " stroke-linejoin=\"round\"");
            if !dash.is_empty() {
                let _ = write!(element, " stroke-dasharray=\"{dash}\"");
            }
        }
        element.push_str("/>");
        self.push(element);
    }

    pub fn veil(&mut self, d: &str, fill: &str, opacity: f64) {
        self.push(format!("<path d=\"{d}\" fill=\"{fill}\" fill-opacity=\"{}\"/>", number(opacity)));
    }

    /// `y` is the base line.
    pub fn text(&mut self, x: f64, y: f64, text: &str, how: Type<'_>) {
        if text.is_empty() {
            return;
        }
        let (x, y) = (number(x), number(y));
        let mut element =
            format!("<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\"", number(how.size), how.colour);
        if how.bold {
            element.push_str(" font-weight=\"700\"");
        }
        if !how.halo.is_empty() {
            let _ = write!(element, " stroke=\"{}\" stroke-width=\"3\" stroke-linejoin=\"round\"", how.halo);
            element.push_str(" paint-order=\"stroke\"");
        }
        match how.anchor {
            Anchor::Start => {}
            Anchor::Middle => element.push_str(" text-anchor=\"middle\""),
            Anchor::End => element.push_str(" text-anchor=\"end\""),
        }
        if how.turn != 0.0 {
            let _ = write!(element, " transform=\"rotate({} {x} {y})\"", number(how.turn));
        }
        let _ = write!(element, ">{}</text>", escape(text));
        self.push(element);
    }

    pub fn tip(&mut self, tip: &str, draw: impl FnOnce(&mut Self)) {
        self.push(format!("<g><title>{}</title>", escape(tip)));
        draw(self);
        self.push("</g>".to_owned());
    }

    pub fn finish(self, width: f64, height: f64, ground: &str, title: &str) -> String {
        let (w, h) = (number(width.ceil()), number(height.ceil()));
        let title = escape(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" \
             aria-label=\"{title}\" font-family=\"{FAMILY}\">\n<title>{title}</title>\n\
             <rect width=\"{w}\" height=\"{h}\" rx=\"6\" fill=\"{ground}\"/>\n{}</svg>\n",
            self.body
        )
    }

    fn push(&mut self, element: String) {
        self.body.push_str(&element);
        self.body.push('\n');
    }
}

pub fn polyline(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    let mut pen = false;
    for (x, y) in points {
        let there = x.is_finite() && y.is_finite();
        if there {
            let _ = write!(d, "{}{} {}", if pen { 'L' } else { 'M' }, number(x), number(y));
        }
        pen = there;
    }
    d
}

pub fn number(value: f64) -> String {
    let hundredths = if value.is_finite() { (value * 100.0).round() / 100.0 } else { 0.0 };
    // Makes -0 a 0.
    format!("{}", hundredths + 0.0)
}

/// Characters that XML forbids become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}
