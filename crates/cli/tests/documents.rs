//! Documents agree with the programs.

use crate::common::{Place, craton, library, said};
use craton_tables::options::{Choice, Form, NO_SUCH_KEY, OPTIONS};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

fn document(name: &str) -> String {
    fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// By the library and by `craton run -o`, which must agree.
fn taken(option: &str) -> Result<(), String> {
    let typed = said(&mut craton(["run", "-o", option, "--", "true"]));
    if typed.status == 0 {
        assert!(!typed.err.contains("ignored"), "-o {option}: {}", typed.err);
        return Ok(());
    }
    let by_library = said(Command::new("true").env("LD_PRELOAD", library()).env("CRATON_OPTIONS", option));
    assert_eq!((typed.status, by_library.status), (2, 0), "-o {option}: {}{}", typed.err, by_library.err);
    assert!(by_library.err.contains("ignored"), "-o {option}: {}{}", typed.err, by_library.err);
    Err(by_library.err)
}

#[test]
fn the_library_takes_what_the_table_says_and_the_help_shows_it() {
    let help = said(&mut craton(["run", "--help"])).out.split_whitespace().collect::<Vec<_>>().join(" ");
    let all: BTreeSet<&str> = OPTIONS.iter().flat_map(|option| option.form.words()).copied().collect();
    let all = all.into_iter().filter(|word| word.parse::<u64>().is_err());
    let all: Vec<&str> = all.chain(["64M", "80%"]).collect();
    for Choice { key, form, refusal, .. } in OPTIONS {
        assert!(help.contains(&format!(" {key}={form}")), "{key}={form} is not in the help");
        if form == Form::Path {
            continue;
        }
        for word in form.words() {
            assert_eq!(taken(&format!("{key}={word}")), Ok(()));
        }
        for word in &all {
            let other = if *word == "64M" { "BYTES" } else { "PERCENT%" };
            let takes = form.words().contains(word) || ["64M", "80%"].contains(word) && form.others().contains(&other);
            assert_eq!(taken(&format!("{key}={word}")).is_ok(), takes, "{key}={word}");
        }
        for odd in [
            "",
            "0",
            "1",
            "+1",
            "-1",
            "101",
            "101%",
            "0%",
            "4096",
            "1m",
            "2KiB",
            "3 K",
            "1E",
            "2T",
            "18446744073709551616",
        ] {
            let _ = taken(&format!("{key}={odd}"));
        }
        let complaint = taken(&format!("{key}=no-such-word")).unwrap_err();
        assert!(form.words().iter().all(|word| complaint.contains(word)), "{key}: {complaint}");
        assert!(complaint.contains(refusal) || key == "debug", "{key}: {complaint}");
        let compared = ["compare", "--peers", "none", "-o", &format!("{key}=no-such-word"), "--", "true"];
        assert_eq!(said(&mut craton(compared)).status, 2, "{key}");
    }
    assert!(taken("no_such_key=1").unwrap_err().contains(NO_SUCH_KEY));
    let long = "leak".to_owned() + &",leak".repeat(51);
    for checks in [
        "audit,redzone:64+large+things",
        "all:malloc",
        "0:64",
        &long,
        "all,none",
        "audits",
        "all:",
        "all:64+",
        "all:64k",
    ] {
        let _ = taken(&format!("debug={checks}"));
    }
}

/// Those below `options` are keys of the table.
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
    for option in OPTIONS.iter().filter(|option| !option.key.starts_with("stats")) {
        assert_eq!(document["options"][option.key], option.default, "{}", option.key);
    }
    assert!(self::document("README.md").contains("(docs/options.md)"));
}
