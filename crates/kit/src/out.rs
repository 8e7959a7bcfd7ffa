//! Where a report goes: standard error, and the process's file of reports.
//!
//! **Failure.** A file that cannot be opened or written gets less; standard error has all.

use craton_os::{Line, OutFile};

pub(crate) struct Out(Option<OutFile>);

impl Out {
    pub(crate) fn to(file: Option<OutFile>) -> Self {
        Self(file)
    }

    pub(crate) fn line(&self, mut line: Line) {
        if let Some(file) = &self.0 {
            let _ = file.write_line(&mut line);
        }
        line.print();
    }
}
