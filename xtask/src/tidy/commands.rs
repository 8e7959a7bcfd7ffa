//! Commands in documents' code blocks exist.

use super::Complaint;
use super::documents::is_document;
use super::files::File;
use craton_tables::options::OPTIONS;

const ARGS: &str = "crates/cli/src/args.rs";

pub fn check(files: &[File]) -> Vec<Complaint> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str());
    let of_args = |file: &&File| file.path == ARGS || file.path.starts_with(ARGS.trim_end_matches(".rs"));
    let args: String = files.iter().filter(of_args).map(|file| file.text.as_str()).collect();
    let known = Known { args: &args, make: text("Makefile"), files };
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_document(&file.path)) {
        let mut is_shell = false;
        for (i, line) in file.text.lines().enumerate() {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                is_shell = language == "sh";
            } else if is_shell {
                let faults = line.split(" | ").filter_map(|command| known.fault(command.trim()));
                found.extend(faults.map(|text| Complaint::new(&file.path, i + 1, text)));
            }
        }
    }
    found
}

struct Known<'a> {
    args: &'a str,
    make: &'a str,
    files: &'a [File],
}

impl Known<'_> {
    fn fault(&self, command: &str) -> Option<String> {
        let command = command.split(" #").next().unwrap_or_default();
        let mut words = command.split_whitespace().skip_while(|word| word.contains('=') && !word.starts_with('-'));
        match words.next()? {
            "make" => {
                let target = words.find(|word| !word.contains('='))?;
                let is_there = self.make.lines().any(|line| line.starts_with(&format!("{target}:")));
                (!is_there).then(|| format!("`make {target}` is not in the Makefile"))
            }
            script if script.starts_with("scripts/") => {
                let is_there = self.files.iter().any(|file| file.path == script);
                (!is_there).then(|| format!("there is no {script}"))
            }
            "craton" | "target/release/craton" => self.fault_of_craton(words),
            _ => None,
        }
    }

    fn fault_of_craton<'w>(&self, words: impl Iterator<Item = &'w str>) -> Option<String> {
        let mut words = words.take_while(|word| *word != "--");
        let task = words.next()?;
        let mut name = task.to_owned();
        name.get_mut(..1)?.make_ascii_uppercase();
        if !task.starts_with('-') && !self.args.contains(&format!("    {name}({name}),")) {
            return Some(format!("`craton {task}` is not in {ARGS}"));
        }
        while let Some(word) = words.next() {
            if let Some(option) = word.strip_prefix("--") {
                let option = option.split('=').next().unwrap_or_default();
                let field = option.replace('-', "_");
                let is_there =
                    field == "help" || [" ", "pub "].iter().any(|b| self.args.contains(&format!("{b}{field}: ")));
                if !is_there {
                    return Some(format!("`--{option}` is not in {ARGS}"));
                }
            }
            if word == "-o" && task != "replay" {
                let key = words.next()?.split('=').next()?;
                if key.chars().any(char::is_lowercase) && !OPTIONS.iter().any(|option| option.key == key) {
                    return Some(format!("the library has no option `{key}`"));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_are_not_there_fail() {
        let args = "pub enum Task {\n    Run(Run),\n}\npub stats: bool,\npub all_of: bool,\n";
        let check = |line: &str| {
            let page = format!("{line}\n```sh\n{line}\n```\n");
            let files = [("Makefile", "run: build ## x\n"), ("scripts/a.sh", ""), (ARGS, args), ("docs/x.md", &page)];
            let files = files.map(|(path, text)| File::new(path, text));
            check(&files).into_iter().map(|c| c.to_string()).collect::<Vec<_>>()
        };
        for right in [
            "make run X=1",
            "A=b make run # words",
            "scripts/a.sh 1",
            "craton run --stats --all-of -o thp=never -- ls --odd",
            "target/release/craton run -o KEY=VALUE -- ls",
            "ls --odd | sort",
        ] {
            assert_eq!(check(right), [""; 0], "{right}");
        }
        for wrong in [
            "make no",
            "scripts/b.sh",
            "craton walk",
            "craton run --odd -- ls",
            "craton run -o odd=1 -- ls",
            "ls | craton go",
        ] {
            assert_eq!(check(wrong).len(), 1, "{wrong}");
        }
    }
}
