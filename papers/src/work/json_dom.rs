//! Documents that are parsed, edited and written again, as by a service that speaks JSON. Some stay
//! in a table. Small ones are more frequent.

use super::Load;
use craton_lab::rng::{Rng, mix};
use serde_json::{Map, Value};

pub fn run(load: &Load) -> u64 {
    let mut rounds = Rounds { rng: Rng::new(load.seed, 0), kept: Vec::new(), sum: 0 };
    rounds.kept.resize_with(KEPT as usize, || None);
    let (mut made, all) = (0, load.of(NODES));
    while made < all {
        made += rounds.round();
    }
    rounds.sum
}

const NODES: u64 = 3_800_000;
const KEPT: u32 = 512;
const LARGEST: u32 = 8000;
/// Nodes for one edit.
const PER_EDIT: u32 = 8;

#[rustfmt::skip]
const NAMES: [&str; 12] = [
    "id", "name", "type", "tags", "owner", "created_at", "updated_at", "description", "items", "attributes", "url",
    "parent",
];

struct Rounds {
    rng: Rng,
    kept: Vec<Option<Value>>,
    sum: u64,
}

impl Rounds {
    fn round(&mut self) -> u64 {
        let size = 8 + self.rng.skewed(LARGEST - 8);
        let mut left = size;
        let made = node(&mut self.rng, &mut left, 0);
        let mut document = self.through_text(&made);
        drop(made);
        for _ in 0..=size / PER_EDIT {
            edit(&mut document, &mut self.rng);
        }
        let document = self.through_text(&document);
        let place = self.rng.below(KEPT) as usize;
        match self.rng.below(4) {
            0 => self.kept[place] = Some(document),
            1 => {
                if let Some(mut other) = self.kept[place].take() {
                    (0..10).for_each(|_| edit(&mut other, &mut self.rng));
                    let other = self.through_text(&other);
                    // Drops one that has grown too large.
                    self.kept[place] = Some(other).filter(|other| count(other) < LARGEST);
                }
            }
            _ => {}
        }
        u64::from(size - left)
    }

    fn through_text(&mut self, document: &Value) -> Value {
        let text = document.to_string();
        let bytes = text.as_bytes().chunks(8);
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.sum = bytes.fold(self.sum, |sum, bytes| sum.wrapping_mul(0x100_0000_01b3).wrapping_add(word(bytes)));
        serde_json::from_str(&text).unwrap_or_else(|_| {
            // Overwritten memory, or edits nested too deep: changes the checksum.
            self.sum = mix(self.sum);
            Value::Null
        })
    }
}

fn string(rng: &mut Rng) -> String {
    let len = rng.skewed(200) as usize;
    let mut string = String::new();
    while string.len() < len {
        let bits = rng.next();
        match bits % 64 {
            0 => string.push('"'),
            1 => string.push('\n'),
            2 => string.push('é'),
            _ => string.extend((1..8).map(|i| char::from(b'a' + (bits >> (8 * i) & 15) as u8))),
        }
    }
    string
}

fn name(rng: &mut Rng) -> String {
    let name = NAMES[rng.below(NAMES.len() as u32) as usize];
    if rng.one_in(4) { format!("{name}_{}", rng.below(100)) } else { name.to_owned() }
}

/// About `left` nodes, which are counted down.
fn node(rng: &mut Rng, left: &mut u32, depth: u32) -> Value {
    *left = left.saturating_sub(1);
    let kind = if depth < 2 { 8 + rng.below(2) } else { rng.below(10) };
    match kind {
        _ if depth > 12 => Value::Null,
        0 => Value::Null,
        1 => rng.one_in(2).into(),
        2..=4 => ((rng.next() as i64) >> rng.below(63)).into(),
        5..=7 => string(rng).into(),
        8 => {
            let mut nodes = Vec::new();
            // At the top as long as nodes are left; further down a few.
            let most = if depth == 0 { u32::MAX } else { 1 + rng.skewed(60) };
            while *left > 0 && (nodes.len() as u32) < most {
                nodes.push(node(rng, left, depth + 1));
            }
            nodes.into()
        }
        _ => {
            let mut members = Map::new();
            let most = if depth == 0 { u32::MAX } else { 1 + rng.below(16) };
            let mut tries = 0;
            while *left > 0 && tries < most {
                let name = if depth == 0 { format!("{}#{tries}", name(rng)) } else { name(rng) };
                members.insert(name, node(rng, left, depth + 1));
                tries += 1;
            }
            members.into()
        }
    }
}

fn edit(document: &mut Value, rng: &mut Rng) {
    let len = document.as_array().map_or(0, Vec::len).max(document.as_object().map_or(0, Map::len));
    let any = rng.below((len as u32).max(1)) as usize;
    match document {
        Value::Array(nodes) => match rng.below(8) {
            0 => nodes.push(node(rng, &mut 4, 3)),
            1 => nodes.truncate(nodes.len() - nodes.len() / 8),
            2 if !nodes.is_empty() => _ = nodes.swap_remove(any),
            _ => _ = nodes.get_mut(any).map(|node| edit(node, rng)),
        },
        Value::Object(members) => match rng.below(8) {
            0 => _ = members.insert(name(rng), node(rng, &mut 4, 3)),
            1 => _ = members.remove(&name(rng)),
            _ => _ = members.values_mut().nth(any).map(|node| edit(node, rng)),
        },
        Value::String(text) if rng.one_in(2) => text.push_str(&string(rng)),
        other => *other = string(rng).into(),
    }
}

fn count(document: &Value) -> u32 {
    1 + match document {
        Value::Array(nodes) => nodes.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
