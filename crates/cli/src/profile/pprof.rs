//! The profile in the form of pprof: compressed protocol buffers (`profile.proto` of
//! github.com/google/pprof), with mappings, build ids, functions and lines.

use crate::failure::Failure;
use craton_inspect::{Frame, Lines, Map, Profile, Site};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::io::Write;

pub fn compressed(profile: &Profile, lines: &mut Lines<'_>) -> Result<Vec<u8>, Failure> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(&Encoder::default().encode(profile, lines)).and_then(|()| encoder.finish());
    Ok(written.map_err(|e| format!("the profile cannot be compressed: {e}"))?)
}

/// A message of protocol buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(&mut self, field: u64, number: u64) {
        if number != 0 {
            self.varint(field << 3);
            self.varint(number);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn numbers(&mut self, field: u64, numbers: &[u64]) {
        let mut packed = Self::default();
        numbers.iter().for_each(|number| packed.varint(*number));
        self.bytes(field, &packed.0);
    }

    fn fields(numbers: &[(u64, u64)]) -> Self {
        let mut message = Self::default();
        numbers.iter().for_each(|(field, number)| message.number(*field, *number));
        message
    }
}

/// Ids begin at 1.
#[derive(Default)]
struct Encoder {
    out: Message,
    strings: HashMap<String, u64>,
    texts: Vec<String>,
    functions: HashMap<(String, String), u64>,
    locations: HashMap<u64, u64>,
    mappings: Vec<Map>,
}

impl Encoder {
    fn encode(mut self, profile: &Profile, lines: &mut Lines<'_>) -> Vec<u8> {
        self.text("");
        for (name, unit) in
            [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
        {
            let kind = Message::fields(&[(1, self.text(name)), (2, self.text(unit))]);
            self.out.bytes(1, &kind.0);
        }
        self.mappings = profile.maps.iter().filter(|map| map.executable && map.is_file()).cloned().collect();
        for (i, map) in self.mappings.clone().iter().enumerate() {
            let build_id = lines.build_id(&map.path).unwrap_or_default();
            let (path, id) = (self.text(&map.path), self.text(&build_id));
            let mapping = [(1, i as u64 + 1), (2, map.start), (3, map.end), (4, map.offset), (5, path), (6, id)];
            let known = [(7, 1), (8, 1), (9, 1), (10, 1)];
            self.out.bytes(3, &Message::fields(&[&mapping[..], &known].concat()).0);
        }
        profile.sites.iter().for_each(|site| self.sample(site, lines));
        self.out.number(10, profile.last_ns.saturating_sub(profile.began_ns));
        let period = Message::fields(&[(1, self.text("space")), (2, self.text("bytes"))]);
        self.out.bytes(11, &period.0);
        self.out.number(12, profile.interval);
        let default = self.text("inuse_space");
        self.out.number(14, default);
        let texts = std::mem::take(&mut self.texts);
        texts.iter().for_each(|text| self.out.bytes(6, text.as_bytes()));
        self.out.0
    }

    fn sample(&mut self, site: &Site, lines: &mut Lines<'_>) {
        let locations: Vec<u64> = site.stack.iter().map(|pc| self.location(*pc, lines)).collect();
        let (total, live) = (site.total, site.live);
        let mut sample = Message::default();
        sample.numbers(1, &locations);
        sample.numbers(2, &[total.objects, total.bytes, live.objects, live.bytes]);
        self.out.bytes(2, &sample.0);
    }

    /// Of a return address: pprof takes the address within the call.
    fn location(&mut self, pc: u64, lines: &mut Lines<'_>) -> u64 {
        if let Some(id) = self.locations.get(&pc) {
            return *id;
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(pc, id);
        let at = pc.wrapping_sub(1);
        let mapping = self.mappings.iter().position(|map| map.contains(at)).map_or(0, |i| i as u64 + 1);
        let mut location = Message::fields(&[(1, id), (2, mapping), (3, at)]);
        for frame in lines.frames(pc).to_vec() {
            let line = Message::fields(&[(1, self.function(&frame)), (2, frame.line.unwrap_or(0).into())]);
            location.bytes(4, &line.0);
        }
        self.out.bytes(4, &location.0);
        id
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let key = (frame.function.clone(), frame.file.clone().unwrap_or_default());
        if let Some(id) = self.functions.get(&key) {
            return *id;
        }
        let id = self.functions.len() as u64 + 1;
        let (name, file) = (self.text(&key.0), self.text(&key.1));
        self.functions.insert(key, id);
        // pprof shortens a name that equals its name in the file as one of C++, and drops Rust's
        // `<T>`.
        let in_file = if frame.function.starts_with('<') { 0 } else { name };
        self.out.bytes(5, &Message::fields(&[(1, id), (2, name), (3, in_file), (4, file)]).0);
        id
    }

    fn text(&mut self, text: &str) -> u64 {
        if let Some(number) = self.strings.get(text) {
            return *number;
        }
        let number = self.texts.len() as u64;
        self.strings.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }
}

#[cfg(test)]
mod tests;
