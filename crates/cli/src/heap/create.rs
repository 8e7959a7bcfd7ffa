//! `craton heap create`. The file is made beside its name and linked to it when whole and durable.

use super::file;
use super::print::show;
use crate::args::HeapCreate;
use crate::failure::Failure;
use crate::output::Output;
use craton_base::{Medium, Space};
use craton_lab::format;
use craton_os::PersistentFile;
use craton_os::disk_file::sync_folder_of;
use craton_os::persistent_file::{FileError, UseMedium, WriteBackChoice};
use craton_pheap::{Config, Error, FRAMES_MOST, FrameConfig, Heap, Model, Options, PAGE_BYTES};
use serde::Serialize;
use std::fs::{self, File};
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

const FIRST: u64 = 1 << 20;
/// Headers and rings of all lanes, and the first unit.
const ROOM: u64 = 64 << 20;

#[derive(Serialize)]
struct Row {
    file: String,
    model: &'static str,
    uuid: String,
    lanes: u32,
    stripes: u32,
    most_bytes: Option<u64>,
    bytes: u64,
}

pub fn create(args: &HeapCreate, json: Option<&mut Output>) -> Result<ExitCode, Failure> {
    let path = &args.file;
    if path.symlink_metadata().is_ok() {
        return Err(file::failed(path, "exists; give the name of a new file, or remove it first"));
    }
    if let Some(journal) = file::journal(path) {
        let journal = journal.display();
        let why = format!("no such file, but {journal} is there: restore the heap, or remove the journal first");
        return Err(file::failed(path, why));
    }
    let unfinished = path.with_added_extension(format!("{}.new", std::process::id()));
    let made = make(args, &unfinished).and_then(|row| {
        fs::hard_link(&unfinished, path).map_err(|e| file::failed(path, e))?;
        sync_folder_of(&file::c_path(path)?).map_err(|why| file::refused(path, why))?;
        Ok(row)
    });
    let _ = fs::remove_file(&unfinished);
    let row = made?;
    let name = crate::terminal::plain(&row.file);
    let text = format!("{name}: a {} heap of {}, {}\n", row.model, format::bytes(row.bytes), row.uuid);
    show(&text, "heap create", row, json)?;
    Ok(ExitCode::SUCCESS)
}

/// Whole and durable, under another name.
fn make(args: &HeapCreate, unfinished: &Path) -> Result<Row, Failure> {
    let path = &args.file;
    let model = Model::parse(&args.model).unwrap_or(Model::Log);
    let most = match args.most {
        Some(0) => return Err(Failure::Usage("--most 0: give the most bytes of the heap, such as 1G".to_owned())),
        Some(most) => most,
        None if model == Model::Frames => FRAMES_MOST,
        None => 0,
    };
    let records = if model == Model::Frames { FrameConfig::bytes_for(most / PAGE_BYTES) } else { 0 };
    let limit = records.saturating_add(ROOM);
    let made = PersistentFile::create(&file::c_path(unfinished)?, FIRST, file::new_options(limit));
    let made = made.map_err(|why| match why {
        FileError::Missing => file::failed(path, "there is no such folder"),
        FileError::ReadOnly => file::failed(path, "the file system is read-only"),
        why => file::refused(path, why),
    })?;
    let made =
        made.with_medium(WriteBackChoice::Auto, Make { args, model, most }).map_err(|why| file::refused(path, why))?;
    let row = made.map_err(|why| match why {
        Error::Config { what, value } => {
            let other = if value > 1 << 40 { "less" } else { "more" };
            Failure::Usage(format!("{value} is not possible as {what} of a heap of {} lanes; give {other}", args.lanes))
        }
        why => file::broken(path, why),
    })?;
    File::open(unfinished).and_then(|made| made.sync_all()).map_err(|e| file::failed(path, e))?;
    Ok(row)
}

struct Make<'a> {
    args: &'a HeapCreate,
    model: Model,
    most: u64,
}

impl UseMedium for Make<'_> {
    type Output = Result<Row, Error>;

    fn call<M: Medium + Space + 'static>(self, medium: M) -> Self::Output {
        let Self { model, most, .. } = self;
        let HeapCreate { file, lanes, stripes, .. } = self.args;
        let created = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
        let stripes = stripes.unwrap_or_else(|| Config::stripes_for(model, M::FLUSHES));
        // Without a bound a program gives one when it opens the heap.
        let half = Config::half_for(*lanes, if most == 0 { u64::MAX } else { most });
        let config = Config { model, lanes: *lanes, half, stripes, created, most, ..Config::default() };
        let heap = Heap::create(medium, config, Options::default())?;
        let medium = heap.close();
        Ok(Row {
            file: file.to_string_lossy().into_owned(),
            model: model.name(),
            uuid: super::info::uuid(config.uuid),
            lanes: *lanes,
            stripes,
            most_bytes: (most != 0).then_some(most),
            bytes: medium.len(),
        })
    }
}
