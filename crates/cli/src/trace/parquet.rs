//! A table as a Parquet file.
//!
//! **What.** Required columns of four kinds, in groups of rows, each column of a group one page
//! compressed by gzip. Numbers, times and flags are plain; words are numbers of a dictionary.
//!
//! **From.** The format's description (apache/parquet-format, README.md and parquet.thrift).

use super::thrift::{Struct, varint};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// A page of times is one MiB, the size that the format's description advises.
pub const GROUP_ROWS: usize = 1 << 17;

const MAGIC: &[u8; 4] = b"PAR1";
const REQUIRED: i32 = 0;
const UTF8: i32 = 0;
const UINT_32: i32 = 13;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
const GZIP: i32 = 2;
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

pub struct Column {
    pub name: &'static str,
    pub values: Values,
}

pub enum Values {
    /// In ascending order: a reader may skip groups by the least and the greatest.
    Sorted(Vec<i64>),
    Numbers(Vec<u32>),
    Flags(Vec<bool>),
    /// Each by its number in the dictionary, which has at most four.
    Words(Vec<u8>, &'static [&'static str]),
}

/// Bits of a word's number.
const WORD_BITS: usize = 2;

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Sorted(values) => values.len(),
            Self::Numbers(values) => values.len(),
            Self::Flags(values) => values.len(),
            Self::Words(values, _) => values.len(),
        }
    }

    fn kind(&self) -> i32 {
        match self {
            Self::Flags(_) => 0,
            Self::Numbers(_) => 1,
            Self::Sorted(_) => 2,
            Self::Words(..) => 6,
        }
    }

    fn data(&self) -> Vec<u8> {
        match self {
            Self::Sorted(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::Numbers(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::Flags(values) => packed(values.iter().map(|value| u8::from(*value)), 1),
            Self::Words(values, _) => {
                let mut bytes = vec![WORD_BITS as u8];
                // One run of packed numbers, in groups of eight.
                varint(&mut bytes, (values.len().div_ceil(8) as u64) << 1 | 1);
                bytes.extend(packed(values.iter().copied(), WORD_BITS));
                bytes
            }
        }
    }
}

/// The lowest bits first; whole groups of eight values.
fn packed(values: impl ExactSizeIterator<Item = u8>, bits: usize) -> Vec<u8> {
    let mut bytes = vec![0; values.len().div_ceil(8) * bits];
    for (i, value) in values.enumerate() {
        bytes[i * bits / 8] |= value << (i * bits % 8);
    }
    bytes
}

pub struct Writer {
    out: Vec<u8>,
    schema: Vec<Struct>,
    groups: Vec<Struct>,
    rows: i64,
}

impl Writer {
    /// For groups of columns with these names and kinds.
    pub fn new(columns: &[Column]) -> Self {
        let root = Struct::default().binary(4, b"trace").i32(5, columns.len() as i32);
        let schema = std::iter::once(root).chain(columns.iter().map(|column| {
            let one = Struct::default().i32(1, column.values.kind()).i32(3, REQUIRED).binary(4, column.name.as_bytes());
            match column.values {
                Values::Words(..) => one.i32(6, UTF8),
                Values::Numbers(_) => one.i32(6, UINT_32),
                Values::Sorted(_) | Values::Flags(_) => one,
            }
        }));
        Self { out: MAGIC.to_vec(), schema: schema.collect(), groups: Vec::new(), rows: 0 }
    }

    /// # Errors
    /// The compressor's.
    pub fn group(&mut self, columns: &[Column]) -> io::Result<()> {
        let rows = columns.first().map_or(0, |column| column.values.len());
        let (start, mut plain_bytes, mut chunks) = (self.out.len(), 0, Vec::new());
        for column in columns {
            let (chunk, bytes) = self.chunk(column)?;
            plain_bytes += bytes;
            chunks.push(chunk);
        }
        let group = Struct::default().children(1, chunks).i64(2, plain_bytes).i64(3, rows as i64);
        self.groups.push(group.i64(5, start as i64).i64(6, (self.out.len() - start) as i64));
        self.rows += rows as i64;
        Ok(())
    }

    /// Also returns its bytes without compression.
    fn chunk(&mut self, column: &Column) -> io::Result<(Struct, i64)> {
        let (values, start) = (&column.values, self.out.len());
        let rows = values.len() as i32;
        let mut plain_bytes = 0;
        if let Values::Words(_, words) = values {
            let plain: Vec<u8> =
                words.iter().flat_map(|word| [&(word.len() as u32).to_le_bytes(), word.as_bytes()].concat()).collect();
            let head = Struct::default().i32(1, words.len() as i32).i32(2, PLAIN);
            plain_bytes += self.page(DICTIONARY_PAGE, 7, head, &plain)?;
        }
        let (has_dictionary, data_start) = (matches!(values, Values::Words(..)), self.out.len());
        let encoding = if has_dictionary { RLE_DICTIONARY } else { PLAIN };
        let head = Struct::default().i32(1, rows).i32(2, encoding).i32(3, RLE).i32(4, RLE);
        plain_bytes += self.page(DATA_PAGE, 5, head, &values.data())?;

        let encodings = if has_dictionary { &[PLAIN, RLE, RLE_DICTIONARY] as &[i32] } else { &[PLAIN, RLE] };
        let about = Struct::default().i32(1, values.kind()).i32s(2, encodings).texts(3, &[column.name]).i32(4, GZIP);
        let about = about.i64(5, rows.into()).i64(6, plain_bytes).i64(7, (self.out.len() - start) as i64);
        let about = about.i64(9, data_start as i64);
        let about = if has_dictionary { about.i64(11, start as i64) } else { about };
        let about = match values {
            Values::Sorted(times) => match (times.first(), times.last()) {
                (Some(least), Some(most)) => {
                    let ends =
                        Struct::default().i64(3, 0).binary(5, &most.to_le_bytes()).binary(6, &least.to_le_bytes());
                    about.child(12, ends)
                }
                _ => about,
            },
            _ => about,
        };
        Ok((Struct::default().i64(2, start as i64).child(3, about), plain_bytes))
    }

    /// Returns its bytes without compression.
    fn page(&mut self, kind: i32, field: u8, head: Struct, plain: &[u8]) -> io::Result<i64> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain)?;
        let compressed = encoder.finish()?;
        let page = Struct::default().i32(1, kind).i32(2, plain.len() as i32).i32(3, compressed.len() as i32);
        let head = page.child(field, head).end();
        self.out.extend(&head);
        self.out.extend(compressed);
        Ok((head.len() + plain.len()) as i64)
    }

    /// The file, with these keys and values.
    pub fn finish(mut self, about: &[(&str, &str)]) -> Vec<u8> {
        let columns = self.schema.len() - 1;
        let pair =
            |(key, value): &(&str, &str)| Struct::default().binary(1, key.as_bytes()).binary(2, value.as_bytes());
        // The order of a column's values, which statistics refer to, is that of its type.
        let orders = vec![Struct::default().child(1, Struct::default()); columns];
        let footer = Struct::default().i32(1, 1).children(2, self.schema).i64(3, self.rows).children(4, self.groups);
        let footer = footer.children(5, about.iter().map(pair).collect());
        let maker = concat!("craton version ", env!("CARGO_PKG_VERSION"));
        let footer = footer.binary(6, maker.as_bytes()).children(7, orders).end();
        self.out.extend(&footer);
        self.out.extend((footer.len() as u32).to_le_bytes());
        self.out.extend(MAGIC);
        self.out
    }
}
