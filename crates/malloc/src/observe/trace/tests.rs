use super::*;
use crate::tests::virtual_process::{MIB, Process, process};
use core::sync::atomic::AtomicU32;
use craton_os::file_map;
use craton_pages::trace::Trace;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::PathBuf;
use std::string::String;
use std::vec::Vec;
use std::{env, format, fs};

struct File(PathBuf);

impl File {
    fn new() -> Self {
        static FILES: AtomicU32 = AtomicU32::new(0);
        let n = FILES.fetch_add(1, Relaxed);
        Self(env::temp_dir().join(format!("craton-trace-{}-{n}", std::process::id())))
    }

    fn path(&self) -> Vec<u8> {
        CString::new(self.0.to_str().unwrap()).unwrap().into_bytes_with_nul()
    }

    fn read(&self) -> Vec<u8> {
        fs::read(&self.0).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn begin(p: &Process, file: &File) -> Result<(), i32> {
    p.trace.begin(&file.path(), &p.heap.pages())
}

fn spans(p: &Process) -> BTreeMap<u32, u32> {
    let mut out = BTreeMap::new();
    p.heap.pages().for_each_span(|span, _| _ = out.insert(span.first.0, span.len.0));
    out
}

fn replayed(trace: &Trace<'_>) -> BTreeMap<u32, u32> {
    let mut out = BTreeMap::new();
    for Event { kind, span, .. } in trace.events() {
        match kind {
            Kind::Alloc => assert_eq!(out.insert(span.first.0, span.len.0), None, "allocated twice"),
            Kind::Free => assert_eq!(out.remove(&span.first.0), Some(span.len.0), "freed as it was"),
            Kind::Resize => assert!(out.insert(span.first.0, span.len.0).is_some(), "resized while out"),
        }
    }
    out
}

#[test]
fn a_recording_has_what_was_out_and_every_span_that_came_and_went() {
    let (p, file) = (process(64), File::new());
    let before = p.fill(5 * MIB);
    begin(p, &file).unwrap();
    let mut kept = Vec::new();
    for round in 0..40 {
        let objects: Vec<_> = (0..20).map(|i| p.alloc(300 << (10 + (round + i) % 4))).collect();
        let mut objects = objects.into_iter();
        kept.extend(objects.by_ref().take(1));
        objects.for_each(|object| p.free(object));
    }
    before.into_iter().for_each(|object| p.free(object));
    let (_pages, expected) = (p.heap.tick(), spans(p));
    p.trace.end();
    let bytes = file.read();
    let trace = Trace::read(&bytes).unwrap();
    assert!(trace.is_complete() && trace.dropped() == Some(0) && trace.len() > 40);
    assert_eq!(replayed(&trace), expected);
    let len = bytes.len();
    kept.into_iter().for_each(|object| p.free(object));
    assert_eq!(file.read().len(), len, "the recording has ended");
}

#[test]
fn beyond_the_bound_events_are_dropped_and_counted() {
    let (p, file) = (process(64), File::new());
    p.trace.bound.store(300, Relaxed);
    begin(p, &file).unwrap();
    for _ in 0..400 {
        p.trace.span(SpanEvent::Resize { range: PageRange::new(craton_base::PageId(0), Pages(1)) });
    }
    p.trace.end();
    let bytes = file.read();
    let trace = Trace::read(&bytes).unwrap();
    assert_eq!((trace.len(), trace.dropped(), trace.header().bound), (300, Some(100), 300));
}

#[test]
fn a_recording_goes_on_in_the_next_window_of_its_file() {
    let (p, file) = (process(64), File::new());
    begin(p, &file).unwrap();
    let events = (WINDOW / SLOT_BYTES * 2 + 5) as u64;
    for _ in 0..events {
        p.trace.span(SpanEvent::Resize { range: PageRange::new(craton_base::PageId(7), Pages(2)) });
    }
    p.trace.end();
    let bytes = file.read();
    let trace = Trace::read(&bytes).unwrap();
    assert!(trace.is_complete() && bytes.len() > 2 * WINDOW);
    assert_eq!((trace.len(), trace.dropped()), (events, Some(0)));
}

#[test]
fn a_file_that_is_being_written_is_left_to_its_writer() {
    let (p, file) = (process(16), File::new());
    begin(p, &file).unwrap();
    assert_eq!(process(16).trace.begin(&file.path(), &p.heap.pages()), Err(file_map::IN_USE));
    p.trace.end();
    assert!(Trace::read(&file.read()).unwrap().is_complete());
    let nowhere = CString::new("/no/such/directory/trace").unwrap().into_bytes_with_nul();
    assert!(p.trace.begin(&nowhere, &p.heap.pages()).is_err_and(|problem| problem != file_map::IN_USE));
    assert!(!p.trace.on.load(Relaxed));
}

#[test]
fn a_forked_child_leaves_the_file_to_its_parent() {
    let (p, file) = (process(16), File::new());
    begin(p, &file).unwrap();
    // SAFETY: this thread holds the lock.
    unsafe {
        p.trace.recorder.lock_for_fork(false);
        assert!(!p.trace.forked(false), "one name is one file");
        p.trace.recorder.release_after_fork();
    }
    let before = file.read();
    p.trace.span(SpanEvent::Resize { range: PageRange::new(craton_base::PageId(0), Pages(1)) });
    assert!(!p.trace.on.load(Relaxed) && file.read() == before);
}

#[test]
fn a_forked_child_begins_a_file_of_its_own_name() {
    let (p, file) = (process(16), File::new());
    assert!(p.trace.request(b"/tmp/each.%p") && p.trace.requested.lock().take().is_some());
    begin(p, &file).unwrap();
    // SAFETY: this thread holds the lock.
    unsafe {
        p.trace.recorder.lock_for_fork(false);
        assert!(p.trace.forked(false));
        p.trace.recorder.release_after_fork();
    }
    let (path, len) = p.trace.requested.lock().take().unwrap();
    assert_eq!(String::from_utf8_lossy(&path[..len]), format!("/tmp/each.{}", std::process::id()));
    assert!(p.trace.inherited.load(Relaxed) && !p.trace.on.load(Relaxed));
}

#[test]
fn the_path_names_the_process_and_is_kept_as_it_was_set() {
    let p = process(4);
    assert!(p.trace.request(b"/tmp/a-%p-%p.x%"));
    let id = std::process::id();
    let (path, len) = p.trace.requested.lock().take().unwrap();
    assert_eq!(String::from_utf8_lossy(&path[..len]), format!("/tmp/a-{id}-{id}.x%"));
    let shown = p.trace.path.lock();
    assert_eq!(&shown.0[..shown.1], b"/tmp/a-%p-%p.x%");
}

#[test]
fn a_path_that_is_too_long_or_has_a_zero_is_refused() {
    let p = process(4);
    let most = [b'x'; PATH_MAX];
    assert!(p.trace.request(&most[..PATH_MAX - 1]) && !p.trace.request(&most));
    let mut with_id = most;
    with_id[..2].copy_from_slice(b"%p");
    assert!(!p.trace.request(&with_id[..PATH_MAX - 5]), "a process's number has up to ten digits");
    assert!(!p.trace.request(b"a\0b"));
}
