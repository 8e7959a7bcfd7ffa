//! Structs in Thrift's compact protocol, the form of Parquet's headers and footer.
//!
//! **From.** The protocol's description (apache/thrift, doc/specs/thrift-compact-protocol.md).

/// An encoded struct without its end. Fields are added in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Struct {
    pub fn i32(mut self, field: u8, value: i32) -> Self {
        self.head(field, I32);
        zigzag(&mut self.bytes, value.into());
        self
    }

    pub fn i64(mut self, field: u8, value: i64) -> Self {
        self.head(field, I64);
        zigzag(&mut self.bytes, value);
        self
    }

    pub fn binary(mut self, field: u8, value: &[u8]) -> Self {
        self.head(field, BINARY);
        binary(&mut self.bytes, value);
        self
    }

    pub fn child(mut self, field: u8, value: Self) -> Self {
        self.head(field, STRUCT);
        self.bytes.extend(value.end());
        self
    }

    pub fn i32s(mut self, field: u8, values: &[i32]) -> Self {
        self.list(field, I32, values.len());
        values.iter().for_each(|value| zigzag(&mut self.bytes, (*value).into()));
        self
    }

    pub fn texts(mut self, field: u8, values: &[&str]) -> Self {
        self.list(field, BINARY, values.len());
        values.iter().for_each(|value| binary(&mut self.bytes, value.as_bytes()));
        self
    }

    pub fn children(mut self, field: u8, values: Vec<Self>) -> Self {
        self.list(field, STRUCT, values.len());
        values.into_iter().for_each(|value| self.bytes.extend(value.end()));
        self
    }

    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    /// The distance from the field before, of at most 15.
    fn head(&mut self, field: u8, kind: u8) {
        self.bytes.push((field - self.last) << 4 | kind);
        self.last = field;
    }

    fn list(&mut self, field: u8, kind: u8, len: usize) {
        self.head(field, LIST);
        match len {
            0..15 => self.bytes.push((len as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, len as u64);
            }
        }
    }
}

pub fn varint(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn zigzag(into: &mut Vec<u8>, number: i64) {
    varint(into, (number << 1 ^ number >> 63) as u64);
}

fn binary(into: &mut Vec<u8>, value: &[u8]) {
    varint(into, value.len() as u64);
    into.extend(value);
}
