//! The built-in profile, and every `*.csv` in the folder of the variable [`FOLDER`].

use crate::empirical::profile::Profile;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub const FOLDER: &str = "CRATON_PROFILES";
pub const BUILT_IN: &str = "built-in";

pub fn here() -> Result<Vec<(String, Profile)>, String> {
    let mut profiles = vec![(BUILT_IN.to_owned(), Profile::built_in())];
    if let Some(folder) = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
        profiles.extend(read(Path::new(&folder))?);
    }
    Ok(profiles)
}

pub fn note(profiles: &[(String, Profile)]) -> String {
    match profiles.len() {
        1 => format!("the built-in profile alone: set {FOLDER} to a folder of .csv files for others\n"),
        n => format!("the built-in profile and {} from {FOLDER}\n", n - 1),
    }
}

fn read(folder: &Path) -> Result<Vec<(String, Profile)>, String> {
    let name = folder.display();
    let cannot = |e| format!("{FOLDER}={name}: cannot read the folder of profiles: {e}");
    let entries = std::fs::read_dir(folder).map_err(cannot)?.collect::<Result<Vec<_>, _>>().map_err(cannot)?;
    let mut files: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    files.retain(|path| path.extension() == Some(OsStr::new("csv")));
    files.sort();
    if files.is_empty() {
        return Err(format!("{FOLDER}={name}: no file there ends in .csv; name a folder with profiles, or unset it"));
    }
    let of = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Profile::read(path).map(|profile| (stem, profile))
    };
    files.iter().map(of).collect()
}

#[cfg(test)]
mod tests;
