//! The documents tell what the programs do: the options and their words, and each field of the statistics.

use crate::common::{Place, craton, said};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

fn document(name: &str) -> String {
    fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Whether the library takes the option; what it says of one that it does not take.
fn taken(option: &str) -> Result<(), String> {
    let said = said(&mut craton(["run", "-o", option, "--", "true"]));
    assert_eq!(said.status, 0, "{option}: {}", said.err);
    match said.err.contains("ignored") {
        true => Err(said.err),
        false => Ok(()),
    }
}

/// The rows of the README's table of options: the key, and the cell with its values.
fn rows() -> Vec<(String, String)> {
    let readme = document("README.md");
    let table = readme.split("\n| option | values |").nth(1).expect("the table of options");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| `"));
    let cell = |line: &str, number| line.split(" | ").nth(number).unwrap().trim_matches(['|', ' ', '`']).to_owned();
    rows.map(|line| (cell(line, 0), line.split(" | ").nth(1).unwrap().to_owned())).collect()
}

/// What stands between backquotes.
fn words(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_option_is_in_the_readme_and_in_the_help_with_every_word_that_it_takes() {
    let rows = rows();
    let keys: Vec<&str> = rows.iter().map(|(key, _)| key.as_str()).collect();
    let complaint = taken("no_such_key=1").unwrap_err();
    let list = complaint.split_once("(there are ").and_then(|(_, rest)| rest.split_once(')')).unwrap().0;
    assert_eq!(list.split(", ").collect::<Vec<_>>(), keys, "the keys, by the alphabet");
    let help = said(&mut craton(["run", "--help"])).out.split_whitespace().collect::<Vec<_>>().join(" ");
    let all: BTreeSet<&str> =
        rows.iter().flat_map(|(_, values)| words(values)).filter(|word| word.parse::<u64>().is_err()).collect();
    assert!(all.len() > 6, "{all:?}");
    for (key, values) in &rows {
        let in_help = help.split(&format!(" {key}=")).nth(1).unwrap_or_else(|| panic!("{key}: not in the help"));
        let in_help: Vec<&str> = in_help.split([' ', ',']).next().unwrap().split('|').collect();
        if values.contains("path") {
            assert_eq!(in_help, ["PATH"], "{key}");
            continue;
        }
        for word in words(values) {
            assert_eq!(taken(&format!("{key}={word}")), Ok(()));
            assert!(in_help.contains(&word), "{key}: {word} is not in the help");
        }
        for word in &all {
            assert_eq!(taken(&format!("{key}={word}")).is_ok(), values.contains(&format!("`{word}`")), "{key}={word}");
        }
        for (word, value, told) in [("64M", "bytes", "BYTES"), ("80%", "percent", "PERCENT%")] {
            assert_eq!(taken(&format!("{key}={word}")).is_ok(), values.contains(value), "{key}={word}");
            assert_eq!(in_help.contains(&told), values.contains(value), "{key}: {told} in the help");
        }
        // What is said of a bad value names the good ones.
        let complaint = taken(&format!("{key}=no-such-word")).unwrap_err();
        for word in words(values) {
            assert!(complaint.contains(word), "{key}: {word} is not in {complaint}");
        }
    }
}

/// The names of all fields; those below `options` are keys that the README has.
fn fields(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| fields(value, into)),
        Value::Object(map) => {
            for (key, value) in map {
                into.insert(key.clone());
                if key != "options" {
                    fields(value, into);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_of_the_statistics_is_explained_and_codes_have_names() {
    let place = Place::new("statistics");
    let source = "#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
        int main(void) {\n\
            void *(*create)(const void *) = (void *(*)(const void *))dlsym(RTLD_DEFAULT, \"craton_heap_create\");\n\
            void *(*alloc)(void *, size_t) = (void *(*)(void *, size_t))dlsym(RTLD_DEFAULT, \"craton_heap_alloc\");\n\
            size_t (*json)(char *, size_t) = (size_t(*)(char *, size_t))dlsym(RTLD_DEFAULT, \"craton_stats_json\");\n\
            void *(*cache)(const void *) = (void *(*)(const void *))dlsym(RTLD_DEFAULT, \"craton_cache_create\");\n\
            static size_t options[12] = {sizeof options, 0, 100};\n\
            static char text[1 << 20];\n\
            void *volatile plain = malloc(100);\n\
            if (!plain || !cache(options) || !alloc(create(0), 100) || json(text, sizeof text) >= sizeof text) return 1;\n\
            return puts(text) < 0;\n\
        }\n";
    let (program, file) = (place.compile("stats", source, &["-D_GNU_SOURCE", "-ldl"]), place.path("file"));
    let said = said(&mut craton(["run", "-o", "stats=1", "-o", &format!("stats_file={file}"), "--", &program]));
    assert_eq!(said.status, 0, "{}", said.err);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    let line: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(
        !document["caches"][0].is_null()
            && !document["heaps"][0]["classes"][0].is_null()
            && !document["classes"][0].is_null(),
        "{document}"
    );

    let text = self::document("docs/statistics.md");
    let mut all = BTreeSet::new();
    fields(&document, &mut all);
    fields(&line, &mut all);
    assert!(all.len() > 35, "{all:?}");
    for field in &all {
        assert!(text.contains(&format!("\n| `{field}` |")), "{field} is not explained");
    }
    for code in ["cache_mode", "memory_limit_source"] {
        for value in [&document, &line] {
            let name = format!("{code}_name");
            let row = format!("\n| {} | `{}` |", value[code], value[&name].as_str().unwrap());
            assert!(text.split(&format!("\n| `{code}` | `{name}` |")).nth(1).unwrap().contains(&row), "{row}");
            assert!(said.err.contains(&format!("\n  {name} {}\n", value[&name].as_str().unwrap())), "{}", said.err);
        }
    }
    assert!(self::document("README.md").contains("(docs/statistics.md)"));
}
