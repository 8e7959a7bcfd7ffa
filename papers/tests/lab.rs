mod common;

use common::{Place, craton, into_said, programs, said, with_default_signals};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn json(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_list_has_one_experiment_a_line_its_name_first() {
    let said = said(&mut craton(["lab", "list"]));
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let names: Vec<&str> = said.out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    for name in ["speed", "micro", "temeraire-redis", "nvalloc-fig1b"] {
        assert!(names.contains(&name), "{name}: {}", said.out);
    }
}

/// The allocator's hooks append a line at exit.
#[test]
fn neither_the_program_nor_the_labs_workloads_have_the_allocator_built_in() {
    let place = Place::new("hooks");
    let file = place.path("stats.json");
    let options = format!("stats_file={file}");
    let listed = said(craton(["lab", "list"]).env("CRATON_OPTIONS", &options));
    assert_eq!((listed.status, listed.err.as_str()), (0, ""));
    for name in ["papers", "work", "micro", "drive", "real", "crash", "objects", "wild", "client", "heaps"]
        .map(|name| format!("craton-{name}"))
    {
        let helped = said(Command::new(programs().join(&name)).arg("--help").env("CRATON_OPTIONS", &options));
        assert_eq!((helped.status, helped.err.as_str()), (0, ""), "{name}");
    }
    assert!(!Path::new(&file).exists(), "{}", fs::read_to_string(&file).unwrap_or_default());
}

#[test]
fn speed_writes_rows_ratios_and_pictures() {
    let place = Place::new("speed");
    let (file, pictures) = (place.path("speed.json"), place.path("new/pictures"));
    let only = "cfrac,larson-small";
    let args =
        ["lab", "run", "speed", "--quick", "--peers", "none", "--only", only, "--json", &file, "--svg", &pictures];
    let said = said(&mut craton(args));
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{}", said.out);
    assert!(said.out.contains("geometric mean") && said.out.contains("larson-small"), "{}", said.out);
    let document = json(&file);
    assert_eq!(document["name"], "speed");
    for row in document["rows"].as_array().unwrap() {
        assert!(only.contains(row["workload"].as_str().unwrap()) && row["status"] == "ok", "{row}");
        for number in ["wall_s", "cpu_s", "peak_rss_bytes", "minor_faults"] {
            assert!(row[number].is_number(), "{number}: {row}");
        }
    }
    for figure in ["time", "rss"] {
        for against in ["glibc", "best_peer", "virtual_best"] {
            let name = format!("{figure}_vs_{against}");
            assert!(document["ratios"][&name].as_f64() > Some(0.0), "{name}");
        }
    }
    for picture in ["speed-time.svg", "speed-rss.svg", "speed-means.svg"] {
        let svg = fs::read_to_string(format!("{pictures}/{picture}")).unwrap();
        assert!(svg.contains("<svg") && svg.trim_end().ends_with("</svg>"), "{picture}");
    }
}

#[test]
fn the_peak_of_fragbench_is_told_as_a_ratio_to_live_data() {
    let args = ["lab", "run", "nvalloc-fig1b", "--quick", "--peers", "none", "--only", "fragbench-w4", "--json", "-"];
    let said = said(&mut craton(args));
    assert_eq!(said.status, 0, "{}", said.err);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    for row in document["rows"].as_array().unwrap() {
        let ratio = row["peak_per_live"].as_f64().unwrap();
        assert!(ratio > 1.0 && ratio < 10.0, "{row}");
    }
    assert!(said.err.contains("fragbench-w4"), "the table goes beside the document: {}", said.err);
}

#[test]
fn several_experiments_are_a_list_of_documents() {
    let only = ["--quick", "--peers", "none", "--only", "fragbench-w4", "--json", "-"];
    let said = said(&mut craton([&["lab", "run", "speed", "nvalloc-fig1b"][..], &only].concat()));
    assert_eq!(said.status, 0, "{}", said.err);
    let documents: Value = serde_json::from_str(&said.out).unwrap();
    let names: Vec<&str> = documents.as_array().unwrap().iter().map(|d| d["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["speed", "nvalloc-fig1b"]);
}

#[test]
fn names_that_do_not_exist_and_places_that_cannot_be_written_are_known_before_the_runs() {
    let run = |args: &[&str]| said(&mut craton([&["lab", "run", "--peers", "none"], args].concat()));
    for (args, status, part) in [
        (&["speed", "--quick", "--only", "no-such"] as &[&str], 2, "no such workload"),
        (&["speed", "--quick", "--only", "cfrac,cfrac"], 2, "twice"),
        (&["speed", "--json", "/nonexistent/x.json"], 1, "nothing was done"),
        (&["speed", "--svg", "/proc/x"], 1, "cannot make the folder"),
    ] {
        let said = run(args);
        assert!(said.status == status && said.err.contains(part), "{args:?}: {}", said.err);
        assert_eq!(said.out, "", "{args:?}");
    }
    for (args, part) in [(&["no-such"] as &[&str], "experiments: speed"), (&["speed", "speed"], "named twice")] {
        let said = run(args);
        assert!(said.status == 2 && said.err.contains(part) && said.out.is_empty(), "{args:?}: {}", said.err);
    }
    let said_of_simulation = run(&["temeraire-empirical", "--quick"]);
    assert!(said_of_simulation.status == 1 && said_of_simulation.err.contains("--peers"), "{}", said_of_simulation.err);
    assert_eq!(said(&mut craton(["lab", "run"])).status, 2);
    assert_eq!(said(&mut craton(["lab"])).status, 2);
}

fn wait_for_children(pid: u32, count: usize) {
    let faults = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').nth(8).unwrap().to_owned()
    };
    for _ in 0..count {
        let before = faults();
        while faults() == before {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

#[test]
fn stopped_early_it_writes_what_there_is() {
    let place = Place::new("stopped-lab");
    let file = place.path("speed.json");
    let only = "cfrac,server";
    let args = ["lab", "run", "speed", "--quick", "--peers", "none", "--only", only, "--runs", "9999", "--json", &file];
    let mut command = craton(args);
    let child = with_default_signals(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The proof on both, and some runs.
    wait_for_children(child.id(), 6);
    // SAFETY: touches no memory; an unreaped child.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let said = into_said(child.wait_with_output().unwrap());
    assert_eq!(said.status, 1);
    assert!(said.err.contains("stopped"), "{}", said.err);
    let rows = json(&file)["rows"].as_array().unwrap().len();
    assert!((2..9999).contains(&rows), "{rows}: {}", said.out);
    assert!(said.out.contains("cfrac"), "{}", said.out);
}

#[test]
fn objects_of_a_cache_are_measured_beside_those_of_malloc() {
    let place = Place::new("objects");
    for (name, only, ratio) in
        [("slab-objects", "mutex,pipe", "cached_pipe_vs_craton"), ("slab-speed", "328", "cache_vs_glibc")]
    {
        let file = place.path(name);
        let args = ["lab", "run", name, "--quick", "--peers", "none", "--only", only, "--json", &file];
        let said = said(&mut craton(args));
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{}", said.out);
        let document = json(&file);
        let rows = document["rows"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["status"] == "ok" && row["ns_median"].as_f64() > Some(0.0)), "{}", said.out);
        assert!(rows.iter().any(|row| row["allocator"] == "craton" && row["from"] == "cache"), "{}", said.out);
        assert!(document["ratios"][ratio].as_f64() > Some(0.0), "{}", document["ratios"]);
    }
}

#[test]
fn programs_in_the_wild_have_ratios_memory_over_time_and_their_longest_requests() {
    let place = Place::new("wild");
    let (file, pictures) = (place.path("wild.json"), place.path("pictures"));
    let only = "sparse-40m,sparse-20m@64,idle-sleeper,pauses,larson-2";
    let args =
        ["lab", "run", "wild", "--quick", "--peers", "none", "--only", only, "--json", &file, "--svg", &pictures];
    let said = said(&mut craton(args));
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{}", said.out);
    let document = json(&file);
    let rows = document["rows"].as_array().unwrap();
    let grouped = !said.out.contains("not measured in control groups");
    assert_eq!(rows.len(), if grouped { 10 } else { 8 }, "{}", said.out);
    for row in rows.iter().filter(|row| row["killed"] == 0) {
        let samples = row["samples"].as_array().unwrap();
        assert!(row["status"] == "ok" && row["rss_bytes"].as_f64() > Some(0.0) && samples.len() >= 2, "{row}");
    }
    for ratio in ["sparse-40m_rss_bytes_vs_glibc", "pauses_written_1024_longest_ns_vs_best_peer", "all_time_vs_glibc"] {
        assert!(document["ratios"][ratio].as_f64() > Some(0.0), "{ratio}: {}", document["ratios"]);
    }
    for picture in ["wild-memory.svg", "wild-time.svg", "wild-idle-sleeper.svg"] {
        let svg = fs::read_to_string(format!("{pictures}/{picture}")).unwrap();
        assert!(svg.contains("<svg") && !svg.contains("no data"), "{picture}");
    }
}

fn client_checks(seconds: &str) {
    let client = programs().join("craton-client");
    for storm in [&["--forks"][..], &["--signals"], &["--forks", "--signals", "--threads", "16"]] {
        let client = client.to_str().unwrap();
        let said = said(&mut craton([&["run", "--", client, "--seconds", seconds][..], storm].concat()));
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{storm:?}");
        let figures: Value = serde_json::from_str(&said.out).unwrap();
        assert!(figures["operations"].as_u64() > Some(0) && figures["refused"] == 0, "{figures}");
        assert!(!storm.contains(&"--forks") || figures["forks"].as_u64() > Some(0), "{figures}");
        assert!(!storm.contains(&"--signals") || figures["signals"].as_u64() > Some(0), "{figures}");
    }
}

#[test]
fn a_client_that_checks_its_objects_finds_none_changed() {
    client_checks("3");
}

#[test]
#[ignore = "nightly: ten minutes of each storm"]
fn a_client_that_checks_its_objects_for_long_finds_none_changed() {
    client_checks("600");
}

#[test]
fn a_client_that_checks_its_objects_finds_a_wrong_alignment() {
    let place = Place::new("wrong");
    let (source, library) = (place.path("wrong.c"), place.path("wrong.so"));
    fs::write(&source, "#include <stdlib.h>\nvoid *memalign(size_t a, size_t n) { return malloc(n + a); }\n").unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, &source]).status().unwrap();
    assert!(made.success());
    let client = programs().join("craton-client");
    let said = said(Command::new(client).args(["--operations", "20000"]).env("LD_PRELOAD", library));
    assert_eq!((said.status, said.out.as_str()), (70, ""), "{}", said.err);
    assert!(said.err.contains("has not the alignment"), "{}", said.err);
}

/// Refuses filters with a supervisor.
fn without_seccomp(command: &mut Command) -> &mut Command {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let jump = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter { code: jump, jt: 0, jf: 1, k: libc::SYS_seccomp as u32 },
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let install = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: allowed between fork and exec.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program);
        }
        Ok(())
    };
    // SAFETY: as above.
    unsafe { command.pre_exec(install) }
}

#[test]
fn a_system_that_refuses_seccomp_has_rows_that_say_so() {
    let place = Place::new("refused");
    let file = place.path("trust.json");
    let args = ["lab", "run", "trust", "--quick", "--only", "faults", "--json", &file];
    let found = said(without_seccomp(&mut craton(args)));
    assert_eq!((found.status, found.err.as_str()), (0, ""), "{}", found.out);
    let document = json(&file);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{}", found.out);
    for row in rows {
        let note = row["note"].as_str().unwrap();
        assert!(
            row["status"] == "ok" && note.starts_with("seccomp refused: the kernel supervises no system calls of ")
        );
        assert!(found.out.lines().any(|line| line.ends_with(note)), "on one line: {}", found.out);
    }
}

#[test]
fn what_to_trust_has_a_row_for_each_program_and_suite() {
    let place = Place::new("trust");
    let file = place.path("trust.json");
    let args = ["lab", "run", "trust", "--quick", "--only", "faults,attacks,mimalloc", "--json", &file];
    let found = said(&mut craton(args));
    assert_eq!((found.status, found.err.as_str()), (0, ""), "{}", found.out);
    let document = json(&file);
    let rows = document["rows"].as_array().unwrap();
    let of = |part: &str| rows.iter().filter(|row| row["part"] == part).count();
    assert_eq!((of("suites"), of("attacks"), of("faults"), of("storms")), (1, 9, 2, 0), "{}", found.out);
    assert!(rows.iter().all(|row| row["status"] == "ok"), "{}", found.out);
    let absent = said(craton(["lab", "run", "trust", "--only", "redis"]).env_remove("CRATON_SUITES"));
    let lines: Vec<&str> = absent.out.lines().filter(|line| line.contains("not here")).collect();
    assert!(absent.status == 0 && lines.len() == 1 && lines[0].starts_with("redis "), "{}", absent.out);
    assert!(lines[0].ends_with("not here: git clone redis into the folder that CRATON_SUITES names, and make"));
    let unknown = said(&mut craton(["lab", "run", "trust", "--only", "no-such"]));
    assert!(unknown.status == 2 && unknown.err.contains("no such part or suite") && unknown.err.lines().count() == 1);
}
