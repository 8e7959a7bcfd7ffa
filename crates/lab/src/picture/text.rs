//! Estimates the width of a text by DejaVu Sans, the widest of a picture's fonts.

pub const FAMILY: &str =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Noto Sans', 'DejaVu Sans', sans-serif";

/// From space to `~`, in hundredths of the font's size.
#[rustfmt::skip]
const PLAIN: [u8; 95] = [
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84,
    84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61,
    69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59,
    82, 59, 59, 52, 64, 34, 64, 84,
];

const BOLD: f64 = 1.13;

pub fn width(text: &str, size: f64, bold: bool) -> f64 {
    let hundredths: f64 = text.chars().map(hundredths).sum();
    hundredths / 100.0 * size * if bold { BOLD } else { 1.0 }
}

pub fn widest<'a>(texts: impl IntoIterator<Item = &'a str>, size: f64, bold: bool) -> f64 {
    texts.into_iter().map(|text| width(text, size, bold)).fold(0.0, f64::max)
}

fn hundredths(c: char) -> f64 {
    let code = c as usize;
    match c {
        ' '..='~' => f64::from(PLAIN[code - 32]),
        '–' | '·' => 50.0,
        _ if code < 0x500 => {
            if c.is_uppercase() {
                86.0
            } else {
                66.0
            }
        }
        _ => 100.0,
    }
}

pub fn wrap(text: &str, size: f64, bold: bool, most: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width(&longer, size, bold) <= most {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            line.push(c);
            if width(&line, size, bold) > most && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::replace(&mut line, c.to_string()));
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

pub fn cut(text: &str, size: f64, bold: bool, most: f64) -> String {
    // Tolerates rounding.
    let most = most + 0.01;
    if width(text, size, bold) <= most {
        return text.to_owned();
    }
    let mut short = text.to_owned();
    while short.pop().is_some() {
        let end = format!("{}…", short.trim_end());
        if width(&end, size, bold) <= most {
            return end;
        }
    }
    String::new()
}
