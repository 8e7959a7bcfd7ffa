//! A call on a stack, by function and line.

use crate::lines::Frame;
use serde::Serialize;

const MOST_OWN: usize = 16;

fn is_own(frame: &Frame) -> bool {
    ["craton", "<craton"].iter().any(|start| frame.function.starts_with(start))
}

/// A function's place; the frame without its address, which differs from run to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Call {
    pub function: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub module: String,
}

impl Call {
    pub(crate) fn of(frame: &Frame) -> Self {
        let Frame { function, file, line, module, .. } = frame.clone();
        Self { function, file, line, module }
    }

    /// Without the allocator's own frames, which lead a stack where it is linked into the program.
    pub fn outside(frames: &[Frame]) -> Vec<Self> {
        let own = frames.iter().take(MOST_OWN).rposition(is_own).map_or(0, |last| last + 1);
        let own = if own < frames.len() { own } else { 0 };
        frames[own..].iter().map(Self::of).collect()
    }

    /// `grow.cpp:9`; the file from the current folder on.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        let folder = std::env::current_dir().unwrap_or_default();
        let shown = std::path::Path::new(file).strip_prefix(folder).map_or(file.clone(), |p| p.display().to_string());
        Some(self.line.map_or(shown.clone(), |line| format!("{shown}:{line}")))
    }

    /// Code of the language's library, which allocates for its caller.
    pub fn is_of_language(&self) -> bool {
        const FOLDERS: [&str; 4] = ["/include/c++/", "/rustc/", "/library/alloc/src/", "/library/std/src/"];
        const NAMES: [&str; 12] = [
            "std::",
            "__gnu_cxx::",
            "operator new",
            "alloc::",
            "<alloc::",
            "core::",
            "<core::",
            "<std::",
            "hashbrown::",
            "<hashbrown::",
            "__rust",
            "_R",
        ];
        let in_folder = |file: &String| FOLDERS.iter().any(|folder| file.contains(folder));
        self.file.as_ref().is_some_and(in_folder) || NAMES.iter().any(|name| self.function.starts_with(name))
    }
}
