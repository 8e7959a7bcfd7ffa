//! Objects, their holders and their users as text.

use super::{SHOWN, byte_count, table};
use crate::terminal::plain;
use craton_inspect::{Dump, ENDS, Histogram, Holder, Refs, Users, Word};
use craton_lab::format::{bytes, count, plural};

pub fn refs_text(name: &str, found: &Refs) -> String {
    let held = found.holders.len() as u64 + found.more;
    let words = plural(held, "word");
    let point = if held == 1 { "points" } else { "point" };
    let mut text =
        format!("{name}: {words} {point} to the object of {} at {:#x}\n", byte_count(found.bytes), found.address);
    for holder in found.holders.iter().take(SHOWN) {
        text += &format!("  {}\n", plain(&holder.to_string()));
    }
    if let more @ 1.. = held.saturating_sub(SHOWN as u64) {
        text += &format!("  and {} more; --json shows up to 1,000\n", count(more));
    }
    match found.path.split_first() {
        None => text + "no register, stack or variable leads to it: it is lost\n",
        Some((root, chain)) => text + &path_text(root, chain, found),
    }
}

fn path_text(root: &Holder, chain: &[Holder], found: &Refs) -> String {
    let mut text = format!("it is alive because of\n  {}\n", plain(&root.to_string()));
    for (i, holder) in chain.iter().enumerate() {
        if found.path_left_out > 0 && i + 1 == ENDS {
            text += &format!("  … {} more\n", count(found.path_left_out));
        }
        text += &format!("  → {}\n", plain(&holder.to_string()));
    }
    text + &format!("  → the object at {:#x}\n", found.address)
}

pub fn dump_text(found: &Dump) -> String {
    let mut text = match found.bytes {
        0 => format!("{:#x}: in no live object\n", found.address),
        size => format!("{:#x}: object of {}\n", found.address, byte_count(size)),
    };
    let mut before: Option<&Word> = None;
    let mut same = 0;
    let folded = |same: u64| format!("… the same in {}\n", plural(same, "more word"));
    for word in &found.words {
        let is_asked = (word.at..word.at + 8).contains(&found.asked);
        if !is_asked && before.is_some_and(|before| before.value == word.value) {
            same += 1;
            continue;
        }
        if same > 0 {
            text += &folded(std::mem::take(&mut same));
        }
        before = Some(word);
        let line = format!("{:#x}  {:016x}  {:8}  {}", word.at, word.value, word.text, plain(&word.points_to));
        let here = found.asked != found.address && is_asked;
        text += &format!("{}{}\n", line.trim_end(), if here { "  ←" } else { "" });
    }
    if same > 0 {
        text += &folded(same);
    }
    if found.more_bytes > 0 {
        text += &format!("and {} more; --bytes shows them\n", byte_count(found.more_bytes));
    }
    text
}

pub fn users_text(name: &str, found: &Users, all: bool) -> String {
    let most = if all { usize::MAX } else { SHOWN };
    let mut text = format!("{name}: {}, {}\n", plural(found.objects, "live object"), bytes(found.bytes));
    for user in found.users.iter().take(most) {
        let share = 100.0 * user.bytes as f64 / found.bytes.max(1) as f64;
        let first = user.name.first().map_or("", String::as_str);
        let kind = if user.kind == "class" { String::new() } else { format!("{} ", user.kind) };
        text += &format!(
            "\n{}, {share:.1} %, {} such as {:#x}: {kind}{}\n",
            bytes(user.bytes),
            plural(user.objects, "object"),
            user.example,
            plain(first)
        );
        for (i, frame) in user.name.iter().enumerate().skip(1) {
            text += &format!("    #{i} {}\n", plain(frame));
        }
    }
    text + &more(found.users.len(), most)
}

pub fn histogram_text(name: &str, found: &Histogram, all: bool) -> String {
    let most = if all { usize::MAX } else { SHOWN };
    let rows = found.rows.iter().take(most).map(|row| {
        let first = if row.first_word.is_empty() { "-".to_owned() } else { cut(&plain(&row.first_word)) };
        vec![first, count(row.object_bytes), count(row.objects), bytes(row.bytes), format!("{:#x}", row.example)]
    });
    let head = ["first word points to", "size", "objects", "bytes", "such as"];
    let text = format!("{name}: {}, {}\n\n", plural(found.objects, "live object"), bytes(found.bytes));
    text + &table(&head, rows, &[0]) + &more(found.rows.len(), most)
}

/// A longer name would tear the table apart.
fn cut(name: &str) -> String {
    const MOST: usize = 32;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).chain(['…']).collect()
}

fn more(all: usize, most: usize) -> String {
    match all.saturating_sub(most) {
        0 => String::new(),
        more => format!("and {} more; --all shows them\n", count(more as u64)),
    }
}
