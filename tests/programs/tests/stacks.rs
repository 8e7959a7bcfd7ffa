//! Stacks that are hard to unwind.

#![cfg(target_arch = "x86_64")]

use craton_os::unwind::{self, Registers};
use craton_os::{names, symbol};
use craton_programs::{cc, cxx};
use std::cell::RefCell;
use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};

const ROOM: usize = 400;

type Callback = extern "C" fn();

struct Library(*mut c_void);

impl Library {
    fn open(path: &Path, mode: i32) -> Self {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a C string; constructors do nothing.
        let handle = unsafe { libc::dlopen(path.as_ptr(), mode) };
        assert!(!handle.is_null(), "{path:?} cannot be loaded");
        Self(handle)
    }

    fn function(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: an open handle, a C string.
        let function = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!function.is_null(), "{name:?} is not there");
        function
    }

    fn call(&self, name: &str, callback: Callback) {
        // SAFETY: the type of all functions that tests name.
        let function: extern "C" fn(Callback) = unsafe { std::mem::transmute(self.function(name)) };
        function(callback);
    }

    fn close(self) {
        // SAFETY: nothing of the library is in use.
        assert_eq!(unsafe { libc::dlclose(self.0) }, 0);
    }
}

const FLAGS: [&str; 7] = [
    "-shared",
    "-fPIC",
    "-O2",
    "-fomit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-Wno-frame-address",
    "-Wl,-z,lazy",
];

fn in_c() -> PathBuf {
    cc("stacks.c", &FLAGS)
}

fn in_cxx() -> PathBuf {
    cxx("stacks.cpp", &FLAGS)
}

/// Its caller comes first.
fn theirs() -> Vec<usize> {
    // SAFETY: the function's type.
    let backtrace: extern "C" fn(*mut usize, i32) -> i32 = unsafe { std::mem::transmute(symbol::find(c"backtrace")) };
    let mut stack = vec![0; ROOM];
    let found = backtrace(stack.as_mut_ptr(), ROOM as i32);
    stack.truncate(found as usize);
    stack
}

fn named(stack: &[usize]) -> Vec<String> {
    let name = |address: &usize| {
        let found = names::describe(address.wrapping_sub(1))?;
        let (name, _) = found.symbol()?;
        Some(String::from_utf8_lossy(name).into_owned())
    };
    stack.iter().filter_map(name).collect()
}

thread_local! {
    static TAKEN: RefCell<Vec<(Vec<usize>, Vec<usize>)>> = const { RefCell::new(Vec::new()) };
}

static FROM_ELSEWHERE: std::sync::Mutex<Vec<(Vec<usize>, Vec<usize>)>> = std::sync::Mutex::new(Vec::new());

#[inline(never)]
fn take() -> (Vec<usize>, Vec<usize>) {
    let mut stack = vec![0; ROOM];
    let found = unwind::capture(&mut stack);
    stack.truncate(found);
    // Ours begins with this function's return; theirs with functions of ours before that.
    let mut theirs = theirs();
    if let Some(first) = stack.first() {
        let at = theirs.iter().position(|a| a == first).expect("both know where this function goes back to");
        theirs.drain(..at);
    }
    (stack, theirs)
}

#[inline(never)]
extern "C" fn takes_a_stack() {
    let taken = take();
    TAKEN.with_borrow_mut(|all| all.push(taken));
}

#[inline(never)]
extern "C" fn takes_a_stack_elsewhere() {
    let taken = take();
    FROM_ELSEWHERE.lock().unwrap().push(taken);
}

#[inline(never)]
fn stacks_of(library: &Library, function: &str) -> Vec<(Vec<usize>, Vec<usize>)> {
    library.call(function, takes_a_stack);
    let all = TAKEN.take();
    assert!(!all.is_empty());
    all
}

fn assert_named(stack: &[usize], names: &[&str]) {
    let found = named(stack);
    let mut rest = found.iter();
    for name in names.iter().chain(&["stacks_of"]) {
        assert!(rest.any(|n| n.contains(name)), "{name} is not in its place in {found:#?}");
    }
}

fn agrees(library: &Library, function: &str, names: &[&str]) {
    for (ours, theirs) in stacks_of(library, function) {
        assert_named(&ours, names);
        assert_eq!(ours, theirs, "{function}");
    }
}

#[test]
fn functions_without_frame_pointers_are_passed() {
    let library = Library::open(&in_c(), libc::RTLD_NOW);
    agrees(&library, "through_frames_of_any_size", &["frames_of_any_size", "through_frames_of_any_size"]);
    agrees(&library, "through_an_aligned_frame", &["through_an_aligned_frame"]);
    agrees(&library, "through_aligned_frames", &["aligned_frames", "through_aligned_frames"]);
    agrees(&library, "through_a_deep_stack", &["far_down", "far_down", "through_a_deep_stack"]);
}

#[test]
fn callbacks_of_the_c_library_are_passed() {
    let library = Library::open(&in_c(), libc::RTLD_NOW);
    agrees(&library, "through_qsort", &["compare", "qsort", "through_qsort"]);
    agrees(&library, "through_bsearch", &["compare", "bsearch", "through_bsearch"]);
}

#[test]
fn templates_lambdas_and_exceptions_of_cxx_are_passed() {
    let library = Library::open(&in_cxx(), libc::RTLD_NOW);
    agrees(&library, "through_a_lambda", &["through_a_lambda"]);
    agrees(&library, "through_an_exception", &["3BoxI", "through_an_exception"]);
}

#[test]
fn code_that_a_signal_interrupted_is_found_again() {
    let library = Library::open(&in_c(), libc::RTLD_NOW);
    for function in ["through_a_signal", "through_a_signal_stack"] {
        for (ours, theirs) in stacks_of(&library, function) {
            assert_named(&ours, &["handler", "raise_signal", function]);
            // The interrupted address is recorded as one past it, as a return address.
            let differ: Vec<_> = ours.iter().zip(&theirs).filter(|(a, b)| a != b).collect();
            assert!(ours.len() == theirs.len() && matches!(differ[..], [(a, b)] if *a == b + 1), "{differ:x?}");
        }
    }
    for (ours, _) in stacks_of(&library, "through_a_null_function") {
        assert_named(&ours, &["find_back", "through_a_null_function"]);
        assert!(ours.contains(&1), "the jump to nowhere itself is there");
    }
}

#[test]
fn stacks_of_a_programs_own_end_where_they_begin() {
    let library = Library::open(&in_c(), libc::RTLD_NOW);
    for (ours, theirs) in stacks_of(&library, "through_a_context") {
        assert!(named(&ours).iter().any(|n| n == "in_context"), "{:?}", named(&ours));
        assert_eq!(ours, theirs);
    }
    library.call("through_a_small_thread", takes_a_stack_elsewhere);
    for (ours, theirs) in FROM_ELSEWHERE.lock().unwrap().drain(..) {
        assert!(named(&ours).iter().any(|n| n == "in_thread"), "{:?}", named(&ours));
        assert_eq!(ours, theirs);
    }
}

#[test]
fn code_made_at_run_time_is_passed_by_its_frame_pointer_or_ends_the_stack() {
    let library = Library::open(&in_c(), libc::RTLD_NOW);
    for (ours, _) in stacks_of(&library, "through_made_code") {
        assert_named(&ours, &["through_made_code"]);
    }
    let all = stacks_of(&library, "through_bare_code");
    assert!(all.len() == 9 && all.iter().all(|(ours, _)| !ours.is_empty()));
}

#[test]
fn a_stack_can_be_taken_before_each_instruction() {
    thread_local! {
        static STEPS: RefCell<(usize, Vec<usize>, Vec<Vec<usize>>)> = const { RefCell::new((0, Vec::new(), Vec::new())) };
    }
    extern "C" fn step(pc: usize, sp: usize, bp: usize, bx: usize) {
        let mut stack = [0; 64];
        let found = unwind::capture_from(Registers { pc, sp, bp, bx }, &mut stack);
        STEPS.with_borrow_mut(|(steps, outer, wrong)| {
            *steps += 1;
            if !stack[..found].ends_with(outer) {
                wrong.push(stack[..found].to_vec());
            }
        });
    }
    type Function = extern "C" fn(extern "C" fn(usize, usize, usize, usize));
    #[inline(never)]
    fn run(function: Function) {
        let mut outer = [0; 64];
        let found = unwind::capture(&mut outer);
        STEPS.with_borrow_mut(|(_, known, _)| *known = outer[..found].to_vec());
        function(step);
        std::hint::black_box(());
    }
    let mut flags = FLAGS.to_vec();
    flags.push("-DSTEPPED");
    let library = Library::open(&cc("stacks.c", &flags), libc::RTLD_LAZY);
    // SAFETY: the function's type.
    let function =
        unsafe { std::mem::transmute::<*mut c_void, Function>(library.function("through_each_instruction")) };
    // The first binding of other modules' functions takes long.
    for at_least in [2000, 200] {
        run(function);
        let (steps, _, wrong) = STEPS.take();
        assert!(steps > at_least, "{steps} steps");
        let wrong: Vec<_> = wrong.iter().map(|stack| named(stack)).collect();
        assert!(wrong.is_empty(), "{} of {steps}: {wrong:#?}", wrong.len());
    }
}

#[test]
fn a_module_that_was_unloaded_and_another_in_its_place_do_no_harm() {
    for _ in 0..20 {
        let library = Library::open(&in_c(), libc::RTLD_NOW);
        agrees(&library, "through_qsort", &["compare", "qsort", "through_qsort"]);
        library.close();
        unwind::forget();
        let library = Library::open(&in_cxx(), libc::RTLD_NOW);
        agrees(&library, "through_a_lambda", &["through_a_lambda"]);
        library.close();
        // Frames may be wrong then, but that is all.
        let library = Library::open(&in_c(), libc::RTLD_NOW);
        library.call("through_qsort", takes_a_stack);
        library.close();
        assert!(TAKEN.take().iter().all(|(ours, _)| !ours.is_empty()));
    }
}
