//! objdump's output without addresses: inner jumps go to numbered labels; outer jumps, calls and
//! data to names without hashes, unnamed data to `[rip]`.

use std::collections::BTreeSet;
use std::fmt::Write;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    at: u64,
    mnemonic: String,
    operands: String,
}

impl Instruction {
    fn parse(line: &str) -> Option<Self> {
        let (at, rest) = line.split_once(':')?;
        let at = u64::from_str_radix(at.trim(), 16).ok()?;
        let mut rest = rest.trim();
        let mut mnemonic = String::new();
        // A prefix is a separate word.
        loop {
            let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
            mnemonic += word;
            rest = behind.trim();
            if !["lock", "rep", "repz", "repnz", "notrack", "bnd", "cs", "data16"].contains(&word) {
                break;
            }
            mnemonic.push(' ');
        }
        Some(Self { at, mnemonic, operands: rest.to_owned() })
    }

    fn is_padding(&self) -> bool {
        self.mnemonic == "int3" || self.mnemonic.ends_with("nop") || self.mnemonic.ends_with("nopw")
    }

    fn target(&self) -> Option<(u64, &str)> {
        if !self.mnemonic.contains('j') && !self.mnemonic.contains("call") {
            return None;
        }
        let (at, name) = self.operands.split_once(' ')?;
        Some((u64::from_str_radix(at, 16).ok()?, name.trim_matches(['<', '>'])))
    }
}

pub fn address(names: &str, name: &str) -> Option<u64> {
    names.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let at = words.next()?;
        let found = words.nth(1)?.split('@').next()? == name;
        if found { u64::from_str_radix(at, 16).ok() } else { None }
    })
}

pub fn function(code: &str, at: u64) -> Vec<Instruction> {
    let head = format!("{at:016x} <");
    let lines = code.lines().skip_while(|line| !line.starts_with(&head)).skip(1);
    let mut all: Vec<_> = lines.map_while(Instruction::parse).collect();
    while all.last().is_some_and(Instruction::is_padding) {
        all.pop();
    }
    all
}

/// If no condition jumps.
pub fn straight(function: &[Instruction]) -> usize {
    let (mut next, mut count) = (0, 0);
    // A jump back could loop for ever.
    while let Some(instruction) = function.get(next).filter(|_| count < function.len()) {
        count += 1;
        next += 1;
        match instruction.mnemonic.as_str() {
            "ret" | "ud2" => break,
            "jmp" => match instruction.target().and_then(|(to, _)| function.iter().position(|i| i.at == to)) {
                Some(place) => next = place,
                None => break,
            },
            _ => (),
        }
    }
    count
}

pub fn text(function: &[Instruction]) -> String {
    let inside = |at: &u64| function.iter().any(|i| i.at == *at);
    let labels: BTreeSet<u64> = function.iter().filter_map(|i| Some(i.target()?.0)).filter(inside).collect();
    let label = |at: u64| labels.iter().position(|l| *l == at).map(|place| format!("L{}", place + 1));
    let mut text = String::new();
    for instruction in function {
        if let Some(label) = label(instruction.at) {
            let _ = writeln!(text, "{label}:");
        }
        let operands = match instruction.target() {
            Some((to, name)) => label(to).unwrap_or_else(|| format!("<{}>", plain(name))),
            None => of_data(&instruction.operands),
        };
        let _ = writeln!(text, "    {}", format!("{:7} {operands}", instruction.mnemonic).trim_end());
    }
    text
}

fn of_data(operands: &str) -> String {
    let (operands, name) = match operands.split_once('#') {
        Some((operands, comment)) => (operands.trim_end(), comment.split('<').nth(1).unwrap_or("")),
        None => (operands, ""),
    };
    let Some((before, rest)) = operands.split_once("[rip") else { return operands.to_owned() };
    let behind = rest.split_once(']').map_or("", |(_, behind)| behind);
    let name = name.trim_end_matches('>');
    // With a distance it is only the nearest name before.
    let name = if name.contains('+') || name.is_empty() { String::new() } else { format!(" {}", plain(name)) };
    format!("{before}[rip{name}]{behind}")
}

fn plain(name: &str) -> String {
    let name = name.split('@').next().unwrap_or(name);
    let Some(mut rest) = name.strip_prefix("_ZN") else { return name.to_owned() };
    let mut parts = Vec::new();
    while let Some(digits) = rest.find(|c: char| !c.is_ascii_digit()).filter(|digits| *digits > 0) {
        let Ok(length) = rest[..digits].parse::<usize>() else { break };
        let Some(part) = rest.get(digits..digits + length) else { break };
        parts.push(part);
        rest = &rest[digits + length..];
    }
    let hash = |part: &str| part.len() == 17 && part.starts_with('h');
    parts.retain(|part| !hash(part));
    if parts.is_empty() { name.to_owned() } else { parts.join("::") }
}

pub fn difference(old: &str, new: &str) -> Option<String> {
    let (mut old, mut new) = (old.split("\n\n"), new.split("\n\n"));
    let mut text = String::new();
    loop {
        match (old.next(), new.next()) {
            (None, None) => break,
            (old, new) => text += &changed(old.unwrap_or(""), new.unwrap_or("")),
        }
    }
    (!text.is_empty()).then_some(text)
}

fn changed(old: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let head = usize::from(!old.is_empty() && !new.is_empty());
    let same = head + old[head..].iter().zip(&new[head..]).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    if old == new {
        return String::new();
    }
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    let mut add = |sign: char, lines: &[&str]| lines.iter().for_each(|line| text += &format!("{sign} {line}\n"));
    if old[..head] == new[..head] {
        add(' ', &old[..head]);
    } else {
        add('-', &old[..head]);
        add('+', &new[..head]);
    }
    add(' ', &old[same.saturating_sub(3).max(head)..same]);
    add('-', &old_rest[..old_rest.len() - end]);
    add('+', &new_rest[..new_rest.len() - end]);
    text
}

#[cfg(test)]
mod tests;
