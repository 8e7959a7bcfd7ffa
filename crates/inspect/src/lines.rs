//! Functions and source lines by address, with inlined calls, from the files on disk.
//!
//! **What.** DWARF of the file, or of its separate file of debug information (by build id, or by
//! name as `.gnu_debuglink` has it); else its symbols, static or dynamic. Names of C++ and Rust are
//! shown as in their source. Other code has the names that its run time wrote
//! ([`crate::perf_map`]).
//!
//! **Failure.** Names and lines that no file has are absent.

use crate::demangle::demangled;
use crate::mapped;
use crate::memory::Map;
use crate::names::Image;
use crate::perf_map::{Named, PerfMap};
use addr2line::Context;
use gimli::{EndianArcSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Bytes = EndianArcSlice<LittleEndian>;

/// A call on a stack; inlined ones have the address of the code that they are part of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// Before the return address.
    pub address: u64,
    /// Demangled; of code without a name: the file and the offset.
    pub function: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// The program or library; empty for other code.
    pub module: String,
    pub is_inlined: bool,
}

struct Module {
    image: Option<Image>,
    context: Option<Context<Bytes>>,
    build_id: Option<String>,
}

pub struct Lines<'m> {
    maps: &'m [Map],
    run_time: PerfMap,
    root: Option<PathBuf>,
    modules: HashMap<String, Module>,
    frames: HashMap<u64, Vec<Frame>>,
}

impl<'m> Lines<'m> {
    pub fn new(maps: &'m [Map]) -> Self {
        Self { maps, run_time: PerfMap::default(), root: None, modules: HashMap::new(), frames: HashMap::new() }
    }

    /// With names of code that no file has.
    #[must_use]
    pub fn with_run_time(self, run_time: PerfMap) -> Self {
        Self { run_time, ..self }
    }

    /// Files as a running process sees them.
    #[must_use]
    pub fn with_root(self, root: Option<PathBuf>) -> Self {
        Self { root, ..self }
    }

    /// The calls of a return address, innermost first; at least one.
    pub fn frames(&mut self, pc: u64) -> &[Frame] {
        if !self.frames.contains_key(&pc) {
            let found = self.find(pc.wrapping_sub(1));
            self.frames.insert(pc, found);
        }
        &self.frames[&pc]
    }

    /// In hexadecimal, if the file has one.
    pub fn build_id(&mut self, path: &str) -> Option<String> {
        self.module(path).build_id.clone()
    }

    fn module(&mut self, path: &str) -> &Module {
        let root = self.root.as_deref();
        self.modules.entry(path.to_owned()).or_insert_with(|| Module::open(root, Path::new(path)))
    }

    fn find(&mut self, at: u64) -> Vec<Frame> {
        let plain =
            |function: String, module: String| vec![Frame { address: at, function, module, ..Frame::default() }];
        let map = self.maps.iter().find(|map| map.contains(at));
        if !map.is_some_and(Map::is_file)
            && let Some(Named { function, file, line }) = self.run_time.find(at)
        {
            return vec![Frame { address: at, function, file, line, ..Frame::default() }];
        }
        let Some(map) = map.filter(|map| !map.path.is_empty()) else { return plain(format!("{at:#x}"), String::new()) };
        let (in_file, path) = (at - map.start + map.offset, map.path.clone());
        if !map.is_file() {
            return plain(path.clone(), path);
        }
        let image = self.module(&path).image.as_ref();
        let address = image.and_then(|image| image.address(in_file)).unwrap_or(in_file);
        let mut found = self.frames_in(&path, address + 1);
        found.iter_mut().for_each(|frame| frame.address = at);
        found
    }

    /// As [`Self::frames`], for a return address in the numbering of a file, as reports have it.
    pub fn frames_in(&mut self, path: &str, pc: u64) -> Vec<Frame> {
        let address = pc.wrapping_sub(1);
        let module = self.module(path);
        let mut found = module.lines(address);
        if found.is_empty() {
            let symbol = module.image.as_ref().and_then(|image| image.function(address));
            let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let function = symbol.map_or_else(|| format!("{file}+{address:#x}"), |symbol| demangled(&symbol.name));
            found.push(Frame { function, ..Frame::default() });
        }
        for frame in &mut found {
            (frame.address, frame.module) = (address, path.to_owned());
        }
        found
    }
}

impl Module {
    fn open(root: Option<&Path>, path: &Path) -> Self {
        let file = mapped::read(root, path).unwrap_or_default();
        let build_id = object::File::parse(&*file).ok().and_then(|file| Some(hex(file.build_id().ok()??)));
        let context = context(&file).or_else(|| {
            let file = object::File::parse(&*file).ok()?;
            debug_files(path, &file).iter().find_map(|path| context(&mapped::read(root, path)?))
        });
        Self { image: Image::parse(&file), context, build_id }
    }

    /// Innermost first; empty without debug information.
    fn lines(&self, address: u64) -> Vec<Frame> {
        let mut found = Vec::new();
        let Some(context) = &self.context else { return found };
        let Ok(mut frames) = context.find_frames(address).skip_all_loads() else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let Some(name) = frame.function.as_ref().and_then(|name| name.raw_name().ok()) else { continue };
            let place = frame.location.as_ref();
            found.push(Frame {
                function: demangled(&name),
                file: place.and_then(|place| place.file).map(str::to_owned),
                line: place.and_then(|place| place.line),
                is_inlined: true,
                ..Frame::default()
            });
        }
        if let Some(outermost) = found.last_mut() {
            outermost.is_inlined = false;
            // The symbol's name has a template's or generic's arguments; DWARF may have none.
            if !outermost.function.contains(['<', ':', '('])
                && let Some(symbol) = self.image.as_ref().and_then(|image| image.function(address))
                && symbol.name.starts_with("_")
            {
                outermost.function = demangled(&symbol.name);
            }
        }
        found
    }
}

fn context(file: &[u8]) -> Option<Context<Bytes>> {
    let file = object::File::parse(file).ok()?;
    file.section_by_name(".debug_info")?;
    let load = |id: SectionId| {
        let data = file.section_by_name(id.name()).and_then(|section| section.uncompressed_data().ok());
        Ok::<_, gimli::Error>(Bytes::new(Arc::from(&*data.unwrap_or_default()), LittleEndian))
    };
    Context::from_dwarf(gimli::Dwarf::load(load).ok()?).ok()
}

/// Where Debian and others keep debug information apart.
fn debug_files(path: &Path, file: &object::File<'_>) -> Vec<PathBuf> {
    let root = Path::new("/usr/lib/debug");
    let mut found = Vec::new();
    if let Ok(Some(id)) = file.build_id()
        && let Some((first, rest)) = hex(id).split_at_checked(2)
    {
        found.push(root.join(".build-id").join(first).join(format!("{rest}.debug")));
    }
    if let Ok(Some((name, _))) = file.gnu_debuglink() {
        let name = String::from_utf8_lossy(name).into_owned();
        let folder = path.parent().unwrap_or(path);
        found.extend([folder.join(&name), folder.join(".debug").join(&name)]);
        found.push(root.join(folder.strip_prefix("/").unwrap_or(folder)).join(&name));
    }
    found
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
