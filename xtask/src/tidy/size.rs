use super::Complaint;
use super::files::File;

const MOST_LINES: usize = 600;

pub fn check(files: &[File]) -> Vec<Complaint> {
    let sizes = files.iter().filter(|f| f.rust.is_some()).map(|file| (file, file.text.lines().count()));
    let text = |lines| format!("{lines} lines, the most is {MOST_LINES}: split it");
    sizes.filter(|(_, n)| *n > MOST_LINES).map(|(file, n)| Complaint::new(&file.path, 0, text(n))).collect()
}

#[cfg(test)]
mod tests;
