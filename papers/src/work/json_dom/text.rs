//! Documents as text: the parser and the writer.
//!
//! **What.** [`parse`] makes a tree of boxed nodes of a document, [`write`] makes the text again: without spaces,
//! members in the order of their names, so that what was written is read and written again as it was.
//!
//! **From.** RFC 8259. Numbers are whole ones of 64 bits, which is all that the workload's documents have.
//!
//! **Failure.** A text that is no document of this kind gives none, and never a part of one.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A node of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Null,
    Bool(bool),
    Number(i64),
    Text(String),
    // Boxed, so that each node of a list is an object of its own, as in a document model with references to nodes.
    #[expect(clippy::vec_box)]
    List(Vec<Box<Node>>),
    Members(BTreeMap<String, Box<Node>>),
}

/// Lists and members within each other at most.
const DEEPEST: u32 = 128;

/// Appends a node as text.
pub fn write(node: &Node, to: &mut String) {
    match node {
        Node::Null => to.push_str("null"),
        Node::Bool(value) => to.push_str(if *value { "true" } else { "false" }),
        Node::Number(value) => _ = write!(to, "{value}"),
        Node::Text(text) => quote(text, to),
        Node::List(nodes) => {
            to.push('[');
            for (i, node) in nodes.iter().enumerate() {
                to.push_str(if i == 0 { "" } else { "," });
                write(node, to);
            }
            to.push(']');
        }
        Node::Members(members) => {
            to.push('{');
            for (i, (name, node)) in members.iter().enumerate() {
                to.push_str(if i == 0 { "" } else { "," });
                quote(name, to);
                to.push(':');
                write(node, to);
            }
            to.push('}');
        }
    }
}

fn quote(text: &str, to: &mut String) {
    to.push('"');
    for c in text.chars() {
        match c {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            '\0'..='\x1f' => _ = write!(to, "\\u{:04x}", u32::from(c)),
            _ => to.push(c),
        }
    }
    to.push('"');
}

/// The document of a text.
pub fn parse(text: &str) -> Option<Box<Node>> {
    let mut parser = Parser { text, at: 0 };
    let node = parser.node(0)?;
    parser.skip_spaces();
    (parser.at == text.len()).then_some(node)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    /// Goes past a sign, and the spaces before it, if it comes next.
    fn take(&mut self, sign: u8) -> Option<()> {
        self.skip_spaces();
        (self.peek()? == sign).then(|| self.at += 1)
    }

    fn word(&mut self, word: &str, node: Node) -> Option<Box<Node>> {
        self.text[self.at..].starts_with(word).then(|| self.at += word.len())?;
        Some(Box::new(node))
    }

    fn node(&mut self, depth: u32) -> Option<Box<Node>> {
        self.skip_spaces();
        match self.peek()? {
            _ if depth > DEEPEST => None,
            b'n' => self.word("null", Node::Null),
            b't' => self.word("true", Node::Bool(true)),
            b'f' => self.word("false", Node::Bool(false)),
            b'"' => self.string().map(|text| Box::new(Node::Text(text))),
            b'[' => self.list(depth),
            b'{' => self.members(depth),
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Option<Box<Node>> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
        self.at += end;
        rest[..end].parse().ok().map(|value| Box::new(Node::Number(value)))
    }

    fn string(&mut self) -> Option<String> {
        self.take(b'"')?;
        let mut string = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(['"', '\\'])?;
            string.push_str(&rest[..plain]);
            self.at += plain + 1;
            if rest.as_bytes()[plain] == b'"' {
                return Some(string);
            }
            let escape = self.peek()?;
            self.at += 1;
            match escape {
                b'"' | b'\\' | b'/' => string.push(char::from(escape)),
                b'n' => string.push('\n'),
                b't' => string.push('\t'),
                b'r' => string.push('\r'),
                b'b' => string.push('\x08'),
                b'f' => string.push('\x0c'),
                b'u' => {
                    let digits = self.text.get(self.at..self.at + 4)?;
                    self.at += 4;
                    string.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                }
                _ => return None,
            }
        }
    }

    fn list(&mut self, depth: u32) -> Option<Box<Node>> {
        self.take(b'[')?;
        let mut nodes = Vec::new();
        if self.take(b']').is_none() {
            loop {
                nodes.push(self.node(depth + 1)?);
                if self.take(b',').is_none() {
                    break self.take(b']')?;
                }
            }
        }
        Some(Box::new(Node::List(nodes)))
    }

    fn members(&mut self, depth: u32) -> Option<Box<Node>> {
        self.take(b'{')?;
        let mut members = BTreeMap::new();
        if self.take(b'}').is_none() {
            loop {
                self.skip_spaces();
                let name = self.string()?;
                self.take(b':')?;
                members.insert(name, self.node(depth + 1)?);
                if self.take(b',').is_none() {
                    break self.take(b'}')?;
                }
            }
        }
        Some(Box::new(Node::Members(members)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str) -> Option<String> {
        let mut written = String::new();
        write(&*parse(text)?, &mut written);
        Some(written)
    }

    #[test]
    fn what_was_written_is_read_as_it_was() {
        for text in [
            "null",
            "[]",
            "{}",
            "-12",
            r#"{"a":[1,true,false,null,{"b":"c"}],"d":"\"\\\n\u0001é"}"#,
            r#"["",[[]],[{}]]"#,
        ] {
            assert_eq!(again(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn spaces_go_and_members_are_put_in_order() {
        let text = " { \"b\" : [ 1 , 2 ] ,\n\"a\" : \"\\u0041\\t\\/\" } ";
        assert_eq!(again(text).as_deref(), Some("{\"a\":\"A\\u0009/\",\"b\":[1,2]}"));
    }

    #[test]
    fn what_is_no_document_gives_none() {
        for text in ["", "[1,]", "[1", "{\"a\"}", "{a:1}", "\"a", "\"\\x\"", "\"\\u12\"", "1 2", "nul", "1.5", "--1"] {
            assert_eq!(again(text), None, "{text}");
        }
        assert_eq!(again(&"[".repeat(100_000)), None);
    }
}
