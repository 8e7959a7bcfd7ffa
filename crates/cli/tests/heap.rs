use crate::common::{Place, Said, craton, said};
use craton_base::{Medium, Space};
use craton_os::disk_file::DiskOptions;
use craton_os::persistent_file::{FileOptions, UseMedium, WriteBackChoice};
use craton_os::{DiskFile, PersistentFile};
use craton_pheap::{Config, Heap, Offset, Options, Slot};
use serde_json::Value;
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;

const LIMIT: u64 = 256 << 20;
const COMMANDS: [&str; 6] = ["info", "check", "stats", "dump", "repair", "compact"];

fn heap(args: &[&str]) -> Said {
    said(&mut craton([&["heap"], args].concat()))
}

fn shown(args: &[&str]) -> String {
    let said = heap(args);
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{args:?}: {}", said.out);
    said.out
}

fn row(args: &[&str]) -> Value {
    let said = heap(&[args, &["--json", "-"]].concat());
    let document: Value = serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", said.err));
    document["rows"][0].clone()
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("no {key} in {row}"))
}

fn c_path(file: &str) -> CString {
    CString::new(file).unwrap()
}

/// A list of small objects, two large ones, an undo buffer; closed, or dropped as in a crash.
struct Fill {
    objects: u64,
    closes: bool,
}

impl Fill {
    fn run<M: Medium + Space>(self, medium: M, is_new: bool) -> Option<M> {
        let heap = match is_new {
            true => Heap::create(medium, Config::default(), Options::default()).unwrap(),
            false => Heap::open(medium, Options::default()).unwrap().0,
        };
        let mut slot = heap.add_root(b"list", 7).unwrap();
        for i in 0..self.objects {
            let at = heap.alloc_with(slot, 32 + i % 7 * 100, |heap, at| heap.write(at, 0, 0)).unwrap();
            slot = Slot(at.0);
        }
        for name in [&b"first"[..], b"second"] {
            heap.alloc_to(heap.add_root(name, 0).unwrap(), 150_000).unwrap();
        }
        heap.add_root(b"empty", 0).unwrap();
        let list = heap.root(b"list").unwrap().slot;
        let mut tx = heap.begin().unwrap();
        tx.snapshot(heap.read(list.0) + 8, 16).unwrap();
        heap.write(Offset(heap.read(list.0)), 8, 1);
        tx.commit().unwrap();
        self.closes.then(|| heap.close())
    }
}

impl UseMedium for Fill {
    type Output = ();

    fn call<M: Medium + Space + 'static>(self, medium: M) {
        self.run(medium, false);
    }
}

fn filled(place: &Place, name: &str, fill: Fill) -> String {
    let file = place.path(name);
    shown(&["create", &file]);
    let opened = PersistentFile::open(&c_path(&file), FileOptions::new(LIMIT)).unwrap();
    opened.with_medium(WriteBackChoice::Flush, fill).unwrap();
    file
}

fn closed(place: &Place) -> String {
    filled(place, "closed.heap", Fill { objects: 2000, closes: true })
}

fn fails(args: &[&str], file: &str, text: &str) {
    let said = heap(args);
    assert_eq!((said.status, said.out.as_str()), (1, ""), "{args:?}: {}", said.err);
    assert!(said.err.starts_with(&format!("craton: {file}: {text}")), "{args:?} {text}: {}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
}

#[test]
fn create_makes_a_whole_heap_and_leaves_nothing_else() {
    let place = Place::new("heap-create");
    let file = place.path("a.heap");
    let text = shown(&["create", &file, "--model", "gc", "--most", "8M", "--lanes", "4", "--stripes", "3"]);
    assert!(text.starts_with(&format!("{file}: a gc heap of ")), "{text}");
    let names: Vec<_> = fs::read_dir(&place.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a.heap"]);
    let info = row(&["info", &file]);
    assert_eq!((&info["model"], &info["state"]), (&Value::from("gc"), &Value::from("closed")));
    assert_eq!((number(&info, "lanes"), number(&info, "stripes"), number(&info, "most_bytes")), (4, 3, 8 << 20));
    assert_eq!(number(&info, "bytes"), fs::metadata(&file).unwrap().len());
    assert!(shown(&["check", &file]).contains("whole: 0 objects"));
    let before = fs::read(&file).unwrap();
    fails(&["create", &file], &file, "exists;");
    assert_eq!(fs::read(&file).unwrap(), before);
    let nowhere = place.path("none/a.heap");
    fails(&["create", &nowhere], &nowhere, "there is no such folder");
    // Of a heap that was moved: it would be applied to the new one.
    let moved = place.path("moved.heap");
    fs::write(format!("{moved}.journal"), b"").unwrap();
    fails(&["create", &moved], &moved, &format!("no such file, but {moved}.journal is there"));
    fs::remove_file(format!("{moved}.journal")).unwrap();
}

#[test]
fn a_frames_heap_is_shown_checked_and_compacted() {
    let place = Place::new("heap-frames");
    let file = place.path("a.heap");
    let text = shown(&["create", &file, "--model", "frames"]);
    assert!(text.starts_with(&format!("{file}: a frames heap of ")), "{text}");
    let info = row(&["info", &file]);
    assert_eq!((&info["model"], number(&info, "most_bytes")), (&Value::from("frames"), 16 << 30));
    assert!(number(&info, "disk_bytes") < 6 << 20, "most of the table has no place: {info}");
    let opened = PersistentFile::open(&c_path(&file), FileOptions::new(LIMIT)).unwrap();
    opened.with_medium(WriteBackChoice::Flush, Fill { objects: 2000, closes: false }).unwrap();
    assert!(shown(&["check", &file]).contains("whole: "));
    let stats = row(&["stats", &file]);
    assert_eq!((number(&stats, "log_bytes"), number(&stats, "log_chunks")), (0, 0));
    let parts = ["slab_bytes", "large_bytes", "undo_extent_bytes", "free_bytes"].map(|name| number(&stats, name));
    assert_eq!(number(&stats, "data_bytes"), parts.iter().sum::<u64>());
    assert!(shown(&["dump", &file]).contains("slab"));
    let compacted = row(&["compact", &file]);
    assert!(number(&compacted, "bytes_after") < number(&compacted, "bytes_before"), "{compacted}");
    assert_eq!(number(&row(&["stats", &file]), "objects"), number(&stats, "objects"));
    let bytes = fs::read(&file).unwrap();
    let last = bytes[..number(&info, "data_at") as usize].iter().rposition(|byte| *byte != 0).unwrap();
    let written = fs::File::options().write(true).open(&file).unwrap();
    written.write_all_at(&[bytes[last] ^ 1], last as u64).unwrap();
    let refused = heap(&["check", &file]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.out.contains("damaged: entry of an extent") && refused.out.contains("records of frames"),
        "{}",
        refused.out
    );
}

#[test]
fn a_heap_does_not_grow_beyond_its_most_bytes() {
    let place = Place::new("heap-most");
    let file = place.path("a.heap");
    shown(&["create", &file, "--most", "4M"]);
    struct Grow;
    impl UseMedium for Grow {
        type Output = ();
        fn call<M: Medium + Space + 'static>(self, medium: M) {
            let heap = Heap::open(medium, Options::default()).unwrap().0;
            let slot = heap.add_root(b"large", 0).unwrap();
            assert!(heap.alloc_to(slot, 1 << 20).is_ok());
            assert!(heap.realloc(slot, 3 << 20).is_err());
            assert!(heap.check().is_ok() && heap.medium().len() <= 4 << 20);
        }
    }
    let opened = PersistentFile::open(&c_path(&file), FileOptions::new(LIMIT)).unwrap();
    opened.with_medium(WriteBackChoice::Auto, Grow).unwrap();
}

#[test]
fn wrong_usage_has_status_2() {
    let place = Place::new("heap-usage");
    let file = place.path("a.heap");
    for (args, text) in [
        (&["create", &file, "--lanes", "0"][..], "--lanes"),
        (&["create", &file, "--stripes", "9"], "--stripes"),
        (&["create", &file, "--model", "trees"], "log, gc, frames"),
        (&["create", &file, "--most", "5"], "5 is not possible as the most bytes of a heap of 64 lanes; give more"),
        (&["create", &file, "--most", "1000000T"], "; give less"),
        (&["create", &file, "--most", "0"], "--most 0: give the most bytes"),
        (&["create", &file, "--most", "big"], "such as 64M"),
        (&["check"], "<HEAP>"),
        (&["chekc", &file], "did you mean `craton heap check`?"),
        (&["dump", &file, "--svg", "-", "--json", "-"], "name the same file"),
    ] {
        let said = heap(args);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(text), "{args:?} {text}: {}", said.err);
    }
    assert!(!fs::exists(&file).unwrap());
}

#[test]
fn bad_files_are_one_line_that_names_them() {
    let place = Place::new("heap-bad");
    let good = closed(&place);
    let bytes = fs::read(&good).unwrap();
    let file = place.path("bad.heap");
    let write = |bytes: &[u8]| fs::write(&file, bytes).unwrap();
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        bytes
    };
    for command in COMMANDS {
        let fails = |text: &str| fails(&[command, &file], &file, text);
        let _ = fs::remove_file(&file);
        fails("no such file");
        write(b"");
        fails("too small for a heap: 0 bytes");
        write(b"a text");
        fails("too small for a heap: 6 bytes");
        write(&bytes[..8192]);
        fails("too small: 8192 bytes; the heap needs at least 65536");
        write(&bytes[..65536]);
        fails("too small: 65536 bytes; the heap needs at least ");
        write(&bytes[..bytes.len() - 100]);
        fails(&format!("{} bytes are not whole pages", bytes.len() - 100));
        write(&changed(0, b'X'));
        fails("not a heap file: it begins with \"XRATONPH\"");
        write(&changed(8, 9));
        fails(&format!("a heap of version 9 of the format; this program knows version {}", bytes[8]));
        write(&bytes);
        let open = PersistentFile::open(&c_path(&file), FileOptions::new(LIMIT)).unwrap();
        fails("in use by another process");
        drop(open);
        let folder = place.0.to_str().unwrap();
        self::fails(&[command, folder], folder, "is a folder");
        self::fails(&[command, "/dev/null"], "/dev/null", "not a file");
    }
}

#[test]
fn a_shortened_file_is_damaged() {
    let place = Place::new("heap-short");
    let file = closed(&place);
    let bytes = fs::read(&file).unwrap();
    let last = row(&["dump", &file, "--extents"])["extents"].as_array().unwrap().clone();
    let used = last.iter().rfind(|range| range["kind"] != "free").unwrap();
    fs::write(&file, &bytes[..number(used, "at") as usize]).unwrap();
    let checked = heap(&["check", &file]);
    assert_eq!(checked.status, 1);
    assert!(checked.out.contains("damaged: log entry of an extent"), "{}", checked.out);
    for args in [vec!["stats", &file], vec!["dump", &file], vec!["compact", &file], vec!["repair", &file, "--yes"]] {
        fails(&args, &file, "damaged: log entry");
        let said = heap(&args).err;
        assert!(said.contains(" (unit ") && said.ends_with("restore a copy of the file\n"), "{said}");
    }
}

#[test]
fn check_finds_a_flipped_bit_in_all_that_has_a_check() {
    let place = Place::new("heap-flip");
    let file = closed(&place);
    let dump = row(&["dump", &file]);
    let slab = number(&dump["slabs"][0], "at") as usize;
    let chunk = number(&dump["log"][0], "at") as usize;
    let bytes = fs::read(&file).unwrap();
    let mut places: Vec<(usize, &str)> = (8..64).map(|at| (at, "superblock")).collect();
    places.extend((4096 + 8..4096 + 64).map(|at| (at, "root")));
    places.extend((1024..1056).filter(|at| !(1032..1048).contains(at)).map(|at| (at, "log")));
    places.extend((slab..slab + 64).map(|at| (at, "header of a slab")));
    places.extend((chunk..chunk + 16).map(|at| (at, "log")));
    for (i, (at, text)) in places.into_iter().enumerate().step_by(3) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (i % 8);
        fs::write(&file, &bytes).unwrap();
        let checked = heap(&["check", &file]);
        let said = format!("{}{}", checked.out, checked.err);
        assert!(checked.status == 1 && said.contains(text) || at < 16 && said.contains("version"), "{at:#x}: {said}");
        assert_eq!(fs::read(&file).unwrap(), bytes, "check changes nothing");
    }
    // A bitmap has no check, but a root's object is found free.
    let object =
        number(dump["roots"].as_array().unwrap().iter().find(|root| root["name"] == "list").unwrap(), "object_at");
    let mut changed = bytes.clone();
    let bitmap = (object & !0xffff) as usize + 64;
    // And the index table, if the slab has changed its class.
    changed[bitmap..bitmap + 896].fill(0);
    fs::write(&file, &changed).unwrap();
    let checked = heap(&["check", &file]);
    assert!(checked.out.contains("pointer of a root, which names no object"), "{}", checked.out);
    let found = row(&["check", &file]);
    assert_eq!((&found["is_whole"], &found["damage_at"]), (&Value::from(false), &Value::from(4096)));
}

#[test]
fn a_torn_state_line_is_told_and_the_other_one_counts() {
    let place = Place::new("heap-torn");
    let file = closed(&place);
    let mut bytes = fs::read(&file).unwrap();
    bytes[128] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let text = shown(&["check", &file]);
    assert!(text.contains("write the state line at 0x80 again"), "{text}");
    bytes[256] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let checked = heap(&["check", &file]);
    assert_eq!((checked.status, checked.out), (1, format!("{file}: damaged: state at 0x80\n")));
}

#[test]
fn the_sums_of_dump_are_those_of_stats() {
    let place = Place::new("heap-sums");
    for file in [closed(&place), filled(&place, "open.heap", Fill { objects: 3000, closes: false })] {
        let (stats, dump) = (row(&["stats", &file]), row(&["dump", &file]));
        let list = |name: &str| dump[name].as_array().unwrap().clone();
        let sum = |rows: &[Value], key: &str| rows.iter().map(|row| number(row, key)).sum::<u64>();
        let slabs = list("slabs");
        assert_eq!(slabs.len() as u64, number(&stats, "slabs"));
        let live = sum(&slabs, "objects") + sum(&slabs, "old_objects");
        assert_eq!(live, number(&stats, "small_objects"));
        let classes = stats["classes"].as_array().unwrap().clone();
        assert_eq!(sum(&classes, "objects"), live);
        assert_eq!(sum(&classes, "live_bytes"), number(&stats, "small_bytes"));
        assert_eq!(sum(&classes, "slabs"), slabs.len() as u64);
        let undo_in_slabs = number(&stats, "undo_bytes") - number(&stats, "undo_extent_bytes");
        assert_eq!(sum(&slabs, "live_bytes"), number(&stats, "small_bytes") + undo_in_slabs);
        for (kind, key) in [
            ("slab", "slab_bytes"),
            ("object", "large_bytes"),
            ("undo", "undo_extent_bytes"),
            ("log", "log_bytes"),
            ("free", "free_bytes"),
        ] {
            let of_kind: Vec<Value> = list("extents").into_iter().filter(|range| range["kind"] == kind).collect();
            assert_eq!(sum(&of_kind, "bytes"), number(&stats, key), "{kind}");
        }
        assert_eq!(sum(&list("extents"), "bytes"), number(&stats, "data_bytes"));
        assert_eq!(number(&stats, "head_bytes") + number(&stats, "data_bytes"), number(&stats, "bytes"));
        assert_eq!(list("log").len() as u64, number(&stats, "log_chunks"));
        let ends = sum(&list("log"), "entries");
        assert_eq!(ends, number(&stats, "log_entries"));
        assert_eq!((list("roots").len(), number(&stats, "roots")), (4, 4));
        assert_eq!((number(&stats, "large_objects"), number(&stats, "undo_buffers")), (2, 1));
        assert!(number(&stats, "small_objects") >= 2000);
    }
}

#[test]
fn the_picture_has_a_cell_for_each_unit() {
    let place = Place::new("heap-svg");
    let (file, svg) = (closed(&place), place.path("heap.svg"));
    shown(&["dump", &file, "--svg", &svg]);
    let picture = fs::read_to_string(&svg).unwrap();
    let units = fs::metadata(&file).unwrap().len() / 65536;
    let legend = 10;
    assert_eq!(picture.matches("width=\"11\"").count() as u64, units + legend, "{picture}");
    assert!(picture.contains("2 large objects") && picture.contains(" free range") && picture.ends_with("</svg>\n"));
    let printed = shown(&["dump", &file, "--svg", "-"]);
    assert_eq!(printed, picture);
}

#[test]
fn a_heap_that_was_not_closed_is_shown_recovered_and_repaired_on_request() {
    let place = Place::new("heap-repair");
    let file = filled(&place, "open.heap", Fill { objects: 300, closes: false });
    let before = fs::read(&file).unwrap();
    for command in ["info", "check", "stats", "dump", "repair"] {
        let text = shown(&[command, &file]);
        assert!(command == "info" || text.contains("redo "), "{command}: {text}");
        assert_eq!(fs::read(&file).unwrap(), before, "{command} changes nothing");
    }
    assert!(shown(&["repair", &file]).contains(&format!("`craton heap repair {file} --yes` does it")));
    assert!(shown(&["repair", &file, "--yes"]).contains("repaired:"));
    assert_eq!(row(&["info", &file])["state"], "closed");
    assert!(!shown(&["check", &file]).contains("not closed"));
    assert!(shown(&["repair", &file]).contains("there is nothing to repair"));
    assert_eq!(number(&row(&["stats", &file]), "objects"), 302);
}

#[test]
fn an_empty_heap_can_be_opened_after_compact() {
    let place = Place::new("heap-compact-empty");
    let file = place.path("a.heap");
    shown(&["create", &file]);
    for _ in 0..2 {
        shown(&["compact", &file]);
        assert!(shown(&["check", &file]).contains("whole: 0 objects"));
    }
}

#[test]
fn compact_gives_free_memory_back_and_keeps_objects() {
    struct Free;
    impl UseMedium for Free {
        type Output = ();
        fn call<M: Medium + Space + 'static>(self, medium: M) {
            let heap = Heap::open(medium, Options::default()).unwrap().0;
            let big = heap.add_root(b"big", 0).unwrap();
            heap.alloc_to(big, 20 << 20).unwrap();
            heap.free_from(big).unwrap();
            // From its end: each slot must be an object's.
            let list = heap.root(b"list").unwrap().slot;
            let mut slots = vec![list];
            while heap.read(slots[slots.len() - 1].0) != 0 {
                slots.push(Slot(heap.read(slots[slots.len() - 1].0)));
            }
            slots.pop();
            slots[10..].iter().rev().for_each(|slot| heap.free_from(*slot).unwrap());
            heap.close();
        }
    }
    let place = Place::new("heap-compact");
    let file = filled(&place, "a.heap", Fill { objects: 4000, closes: true });
    let opened = PersistentFile::open(&c_path(&file), FileOptions::new(LIMIT)).unwrap();
    opened.with_medium(WriteBackChoice::Auto, Free).unwrap();
    let before = row(&["stats", &file]);
    let done = row(&["compact", &file]);
    let after = row(&["stats", &file]);
    assert!(number(&done, "bytes_after") + (16 << 20) < number(&done, "bytes_before"), "{done}");
    assert!(number(&done, "disk_bytes_after") < number(&done, "disk_bytes_before"), "{done}");
    assert_eq!(number(&done, "bytes_after"), fs::metadata(&file).unwrap().len());
    assert_eq!((number(&before, "objects"), number(&after, "objects")), (12, 12));
    assert!(number(&after, "slabs") < number(&before, "slabs"), "{after}");
    assert!(shown(&["check", &file]).contains("whole: 12 objects"));
}

#[test]
fn a_gc_heap_tells_what_would_be_collected() {
    struct Leak;
    impl UseMedium for Leak {
        type Output = ();
        fn call<M: Medium + Space + 'static>(self, medium: M) {
            let heap = Heap::open(medium, Options::default()).unwrap().0;
            let slot = heap.add_root(b"one", 0).unwrap();
            heap.alloc_to(slot, 100_000).unwrap();
            // Leaks it.
            heap.set(slot, 0).unwrap();
        }
    }
    let place = Place::new("heap-gc");
    let file = place.path("a.heap");
    shown(&["create", &file, "--model", "gc"]);
    let opened = PersistentFile::open(&c_path(&file), FileOptions::new(LIMIT)).unwrap();
    opened.with_medium(WriteBackChoice::Auto, Leak).unwrap();
    assert!(shown(&["check", &file]).contains("collect 1 object"), "{}", shown(&["check", &file]));
    shown(&["repair", &file, "--yes"]);
    assert_eq!(number(&row(&["stats", &file]), "objects"), 0);
}

#[test]
fn a_heap_with_a_journal_is_refused_until_the_journal_is_applied() {
    let place = Place::new("heap-journal");
    let file = place.path("disk.heap");
    let medium = DiskFile::create(&c_path(&file), 4 << 20, DiskOptions::new(LIMIT)).unwrap();
    let medium = Fill { objects: 100, closes: true }.run(medium, true).unwrap();
    medium.sync(|| ()).unwrap();
    drop(medium);
    for command in ["info", "check", "stats", "dump", "compact"] {
        fails(&[command, &file], &file, "not closed; its last sync point is in ");
    }
    assert!(shown(&["repair", &file]).contains("apply the journal"));
    assert!(shown(&["repair", &file, "--yes"]).contains("repaired:"));
    assert!(!fs::exists(place.path("disk.heap.journal")).unwrap());
    assert!(shown(&["check", &file]).contains("whole: 102 objects"));
}

/// Sync points of heaps that were not closed.
#[test]
fn a_journal_that_is_missing_or_of_another_heap_is_named_by_each_command() {
    let place = Place::new("heap-journals");
    let made = |name: &str, objects: u64| {
        let file = place.path(name);
        let medium = DiskFile::create(&c_path(&file), 4 << 20, DiskOptions::new(LIMIT)).unwrap();
        let medium = Fill { objects, closes: true }.run(medium, true).unwrap();
        medium.sync(|| ()).unwrap();
        medium.checkpoint().unwrap();
        file
    };
    let (file, other) = (made("one.heap", 100), made("other.heap", 50));
    let (journal, kept) = (format!("{file}.journal"), format!("{file}.kept"));
    let check_all = |text: &str| {
        for command in COMMANDS {
            fails(&[command, &file], &file, text);
        }
    };
    fs::copy(&journal, &kept).unwrap();
    fs::remove_file(&journal).unwrap();
    check_all("not closed; its last sync point was in ");
    fs::write(&journal, b"").unwrap();
    check_all("not closed; its last sync point was in ");
    fs::copy(format!("{other}.journal"), &journal).unwrap();
    let foreign = format!("craton: {file}.journal: the journal is of another heap");
    for args in COMMANDS.map(|command| vec![command, &file]).into_iter().chain([vec!["repair", "--yes", &file]]) {
        let said = heap(&args);
        assert!(said.status == 1 && said.err.contains("the journal is of another heap"), "{foreign}: {}", said.err);
    }
    fs::remove_file(&journal).unwrap();
    assert!(shown(&["repair", "--lose-journal", &file]).contains("go on without"));
    check_all("not closed; its last sync point was in ");
    assert!(shown(&["repair", "--lose-journal", "--yes", &file]).contains("repaired:"));
    assert!(shown(&["check", &file]).contains("whole: 102 objects"));
    fails(&["repair", "--lose-journal", &file], &file, "no journal is missing");
    // It may have been made for older contents.
    fs::rename(&kept, &journal).unwrap();
    shown(&["repair", "--yes", &file]);
    assert!(shown(&["check", &file]).contains("whole: 102 objects"));
    fs::remove_file(&file).unwrap();
    fs::write(&journal, b"").unwrap();
    fails(&["info", &file], &file, "no such file, but ");
}

#[test]
fn a_read_only_file_system_can_be_inspected() {
    let place = Place::new("heap-read-only");
    let file = closed(&place);
    let folder = place.0.to_str().unwrap();
    let mount = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" || exit 77; shift; exec \"$@\"";
    let run = |args: &[&str]| {
        let craton = env!("CARGO_BIN_EXE_craton");
        let words = [&["-rm", "sh", "-c", mount, "sh", folder, craton, "heap"], args].concat();
        Command::new("unshare").args(words).output().ok().map(crate::common::into_said)
    };
    let Some(info) = run(&["info", &file]).filter(|said| said.status != 77 && !said.err.starts_with("unshare")) else {
        println!("skipped: no user namespaces or mounts here");
        return;
    };
    assert_eq!((info.status, info.err.as_str()), (0, ""));
    for command in ["check", "stats", "dump", "repair"] {
        assert_eq!(run(&[command, &file]).unwrap().status, 0, "{command}");
    }
    let new = place.path("new.heap");
    for (args, name) in [(["compact", &file], &file), (["create", &new], &new)] {
        let said = run(&args).unwrap();
        assert_eq!(said.status, 1);
        assert!(said.err.starts_with(&format!("craton: {name}: the file system is read-only")), "{}", said.err);
    }
}

#[test]
fn no_output_replaces_the_heap_file() {
    let place = Place::new("heap-output");
    let file = closed(&place);
    let before = fs::read(&file).unwrap();
    for args in [vec!["dump", &file, "--svg", &file], vec!["check", &file, "--json", &file]] {
        let said = said(&mut craton(std::iter::once("heap").chain(args)));
        assert_eq!(said.status, 2, "{}", said.err);
        assert!(said.err.contains("is the heap file"), "{}", said.err);
    }
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_log_of_craton_kv_is_not_made_void_by_a_repair() {
    let place = Place::new("heap-log");
    let file = closed(&place);
    fs::write(format!("{file}.journal"), b"").unwrap();
    fs::write(format!("{file}.log0"), b"records").unwrap();
    let said = said(&mut craton(["heap", "repair", &file, "--yes"]));
    assert!(said.status == 1 && said.err.contains("may hold acknowledged writes"), "{} {}", said.status, said.err);
}
