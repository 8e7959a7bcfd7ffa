//! A profile as a tree for the page: calls from the outermost on, with the bytes below each.

use craton_inspect::{Measure, Stacks};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Parts of the whole below a 4000th are too narrow to see.
const NARROW: u64 = 4000;
const MOST_FUNCTIONS: usize = 60;

/// With short names, since there are thousands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Function.
    pub n: String,
    /// File and line, else the program or library.
    pub p: String,
    /// Bytes; in a difference, those that came.
    pub v: u64,
    /// Objects, likewise.
    pub o: u64,
    /// Callees, the widest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub c: Vec<Node>,
}

/// By the innermost call outside of the language's library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Function {
    pub name: String,
    pub place: String,
    /// Below 0 in a difference: what went.
    pub bytes: i64,
    pub objects: i64,
}

#[derive(Default)]
struct Tree {
    place: String,
    bytes: u64,
    objects: u64,
    below: BTreeMap<String, Tree>,
}

impl Tree {
    fn node(self, name: String, least: u64) -> Node {
        let below = self.below.into_iter().filter(|(_, tree)| tree.bytes >= least);
        let mut c: Vec<Node> = below.map(|(name, tree)| tree.node(name, least)).collect();
        c.sort_by_key(|node| Reverse(node.v));
        Node { n: name, p: self.place, v: self.bytes, o: self.objects, c }
    }
}

pub fn tree(stacks: &Stacks, measure: Measure) -> Node {
    let mut root = Tree::default();
    for stack in &stacks.0 {
        let sum = stack.sums.get(measure);
        let (Ok(bytes), objects) = (u64::try_from(sum.bytes), u64::try_from(sum.objects).unwrap_or(0)) else {
            continue;
        };
        let add = |tree: &mut Tree| (tree.bytes, tree.objects) = (tree.bytes + bytes, tree.objects + objects);
        add(&mut root);
        let mut at = &mut root;
        for call in stack.calls.iter().rev() {
            at = at.below.entry(call.function.clone()).or_default();
            if at.place.is_empty() {
                at.place = call.place().unwrap_or_else(|| call.module.clone());
            }
            add(at);
        }
        if stack.calls.is_empty() {
            add(root.below.entry("unknown: no stack".to_owned()).or_default());
        }
    }
    let least = (root.bytes / NARROW).max(1);
    root.node("all".to_owned(), least)
}

pub fn functions(stacks: &Stacks, measure: Measure) -> Vec<Function> {
    let mut all: BTreeMap<(String, String), (i64, i64)> = BTreeMap::new();
    for stack in &stacks.0 {
        let name =
            |call: &craton_inspect::Call| (call.function.clone(), call.place().unwrap_or_else(|| call.module.clone()));
        let key = stack.owner().map_or_else(|| ("unknown: no stack".to_owned(), String::new()), name);
        let (sum, place) = (stack.sums.get(measure), all.entry(key).or_default());
        *place = (place.0 + sum.bytes, place.1 + sum.objects);
    }
    let function = |((name, place), (bytes, objects))| Function { name, place, bytes, objects };
    let mut all: Vec<Function> = all.into_iter().map(function).filter(|f| f.bytes != 0).collect();
    all.sort_by_key(|function| Reverse(function.bytes.unsigned_abs()));
    all.truncate(MOST_FUNCTIONS);
    all
}

#[cfg(test)]
mod tests;
