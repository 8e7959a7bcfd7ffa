extern crate std;
use super::*;

#[inline(never)]
fn deep(depth: usize, into: &mut [usize]) -> usize {
    let got = if depth == 0 { capture(into) } else { deep(depth - 1, into) };
    core::hint::black_box(got)
}

unsafe extern "C" {
    fn backtrace(into: *mut *mut core::ffi::c_void, room: i32) -> i32;
}

/// What the C library's own unwinder says.
#[inline(never)]
fn theirs(into: &mut [usize]) -> usize {
    // SAFETY: the array is as long as said.
    unsafe { backtrace(into.as_mut_ptr().cast(), into.len() as i32) as usize }
}

#[inline(never)]
fn both(depth: usize, ours: &mut [usize; 64], other: &mut [usize; 64]) -> (usize, usize) {
    let got = if depth == 0 { (capture(ours), theirs(other)) } else { both(depth - 1, ours, other) };
    core::hint::black_box(got)
}

#[test]
fn a_stack_is_what_the_c_library_says() {
    let (mut ours, mut other) = ([0; 64], [0; 64]);
    let (n, m) = both(10, &mut ours, &mut other);
    // theirs() and both() itself come first there.
    assert_eq!(ours[..n], other[2..m], "{n} {m}");
    assert!(n > 12);
    let mut few = [0; 5];
    assert_eq!(deep(20, &mut few), 5);
}

#[test]
#[ignore]
fn dump_rows() {
    use std::io::Write;
    let lib = std::ffi::CString::new(std::env::var("LIB").unwrap()).unwrap();
    let h = unsafe { libc::dlopen(lib.as_ptr(), libc::RTLD_NOW) };
    assert!(!h.is_null());
    let base = unsafe { *(h as *const usize) };
    let mut out = std::io::BufWriter::new(std::fs::File::create("/tmp/w/rows.txt").unwrap());
    for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
        let want = std::fs::canonicalize(lib.to_str().unwrap()).unwrap();
        if !line.ends_with(want.to_str().unwrap()) || !line.contains("r-xp") {
            continue;
        }
        let (a, r) = line.split_once('-').unwrap();
        let a = usize::from_str_radix(a, 16).unwrap();
        let b = usize::from_str_radix(r.split_once(' ').unwrap().0, 16).unwrap();
        let m = module::find(a + 0x100).unwrap();
        assert_eq!(Some(m), module::find_by_list(a + 0x100));
        let mut last = None;
        for pc in a..b {
            let row = cfi::row(m, pc);
            let via = row.and_then(rules::Rule::new).map(|r| r.step());
            if let (Some(row), Some(via)) = (row, via) {
                assert_eq!(rules::Step::Known(row), via);
            }
            let text = std::format!("{row:?} {}", via.is_some());
            if last.as_ref() != Some(&text) {
                writeln!(out, "{:x} {}", pc - base, text).unwrap();
                last = Some(text);
            }
        }
    }
}

#[test]
#[ignore]
fn speed() {
    fn run(depth: usize, into: &mut [usize]) -> f64 {
        if depth > 0 {
            return core::hint::black_box(run(depth - 1, into));
        }
        let n = 2_000_00;
        capture(into);
        let t = std::time::Instant::now();
        let mut f = 0;
        for _ in 0..n {
            f += capture(core::hint::black_box(into));
        }
        let ns = t.elapsed().as_nanos() as f64;
        std::println!("frames {} ns/capture {} ns/frame {}", f / n, ns / n as f64, ns / f as f64);
        ns
    }
    for _ in 0..3 {
        run(0, &mut [0; 1]);
        run(0, &mut [0; 64]);
        run(30, &mut [0; 16]);
        run(30, &mut [0; 64]);
    }
}
