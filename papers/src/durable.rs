//! Stores of pages on a disk that make changes durable at once, all or none: Craton's sync, SQLite,
//! LMDB, and two flushes of the same bytes, the least that a log and data need. After
//! [`Durable::commit`] a power failure loses no change.

mod lmdb;
mod sqlite;

use craton_base::Medium;
use craton_os::DiskFile;
use craton_os::disk_file::DiskOptions;
use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PAGE_BYTES: u64 = 4096;
/// 64 MiB.
pub const RECORDS: u32 = 16_384;
/// With their heads, records of SQLite and LMDB fill a page.
pub const BYTES: usize = 4000;

pub type Record = [u8; BYTES];

pub trait Durable {
    /// Each record once.
    fn change(&mut self, records: &[u32], value: &Record) -> Result<(), String>;

    fn commit(&mut self) -> Result<(), String>;

    /// May wait; a server runs it beside the next commit.
    fn tidy(&mut self) -> Result<(), String> {
        Ok(())
    }
}

pub const CRATON: &str = "craton-sync";
pub const FLUSHES: &str = "two-fsyncs";
pub const LMDB: &str = "lmdb";
pub const SQLITE: &str = "sqlite";

pub const NAMES: [&str; 4] = [CRATON, FLUSHES, LMDB, SQLITE];

/// All records are zero.
pub fn make(name: &str, folder: &Path) -> Result<Box<dyn Durable>, String> {
    let mut made: Box<dyn Durable> = match name {
        CRATON => Box::new(Craton::new(&folder.join("heap"))?),
        LMDB => Box::new(lmdb::Lmdb::new(&folder.join("lmdb"))?),
        SQLITE => Box::new(sqlite::Sqlite::new(&folder.join("sqlite"))?),
        _ => Box::new(Flushes::new(folder)?),
    };
    let all: Vec<u32> = (0..RECORDS).collect();
    for some in all.chunks(1024) {
        made.change(some, &[0; BYTES])?;
        made.commit()?;
        made.tidy()?;
    }
    Ok(made)
}

fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())
}

struct Craton(DiskFile);

impl Craton {
    fn new(path: &Path) -> Result<Self, String> {
        let bytes = u64::from(RECORDS) * PAGE_BYTES;
        let made = DiskFile::create(&c_path(path)?, bytes, DiskOptions::new(2 * bytes));
        made.map(Self).map_err(|why| format!("{}: {why}", path.display()))
    }
}

impl Durable for Craton {
    fn change(&mut self, records: &[u32], value: &Record) -> Result<(), String> {
        for record in records {
            let at = u64::from(*record) * PAGE_BYTES;
            for (word, bytes) in value.as_chunks::<8>().0.iter().enumerate() {
                self.0.store(at + 8 * word as u64, u64::from_le_bytes(*bytes));
            }
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), String> {
        self.0.sync(|| ()).map(drop).map_err(|why| why.to_string())
    }

    fn tidy(&mut self) -> Result<(), String> {
        self.0.checkpoint_if_due(|| ()).map_err(|why| why.to_string())
    }
}

/// Each gets the bytes, and is flushed.
struct Flushes {
    files: [File; 2],
    bytes: Vec<u8>,
}

impl Flushes {
    fn new(folder: &Path) -> Result<Self, String> {
        let file = |name| {
            let path = folder.join(name);
            File::create(&path).map_err(|why| format!("{}: {why}", path.display()))
        };
        Ok(Self { files: [file("first")?, file("second")?], bytes: Vec::new() })
    }
}

impl Durable for Flushes {
    fn change(&mut self, records: &[u32], value: &Record) -> Result<(), String> {
        self.bytes.clear();
        for _ in records {
            self.bytes.extend_from_slice(value);
            self.bytes.resize(self.bytes.len().next_multiple_of(PAGE_BYTES as usize), 0);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), String> {
        let flush = |file: &File| file.write_all_at(&self.bytes, 0).and_then(|()| file.sync_data());
        self.files.iter().try_for_each(flush).map_err(|why| format!("two files of {} bytes: {why}", self.bytes.len()))
    }
}

#[cfg(test)]
mod tests;
