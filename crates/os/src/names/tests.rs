extern crate std;
use super::*;
use std::os::fd::AsRawFd;
use std::string::String;

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn craton_names_test_function(n: i32) -> i32 {
    core::hint::black_box(n) + 1
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_function_of_the_program_is_named_with_its_file_and_offset() {
    let address = craton_names_test_function as *const () as usize;
    let found = describe(address + 1).unwrap();
    let exe = std::env::current_exe().unwrap();
    assert_eq!(text(found.path()), exe.to_str().unwrap());
    assert_eq!(found.symbol().unwrap(), (&b"craton_names_test_function"[..], 1));
    assert_eq!((address + 1 - found.offset()) % 4096, 0);
}

#[test]
fn a_function_of_the_c_library_is_named() {
    let found = describe(libc::strtoul as *const () as usize).unwrap();
    assert!(text(found.path()).contains("libc"), "{}", text(found.path()));
    let (name, offset) = found.symbol().unwrap();
    assert!(text(name).contains("strtoul") && offset == 0, "{}", text(name));
}

#[test]
fn the_kernels_own_code_is_named() {
    // SAFETY: a query.
    let vdso = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) as usize };
    let time = crate::symbol::find(c"clock_gettime");
    assert!(vdso != 0 && time != 0);
    let found = describe(vdso + 16).unwrap();
    assert_eq!((text(found.path()).as_str(), found.offset()), ("[vdso]", 16));
    assert!(found.symbol().is_none());
}

#[test]
fn what_is_no_code_of_a_file_has_no_name() {
    let anonymous = crate::mapping::map(4096, 4096).unwrap();
    assert!(describe(anonymous).is_none());
    crate::mapping::unmap(anonymous, 4096);
    assert!(describe(0).is_none() && describe(usize::MAX).is_none());
}

#[test]
fn a_stack_is_printed_a_line_a_frame() {
    let tree = crate::tests::Tree::new();
    let file = std::fs::File::create(tree.path("out")).unwrap();
    let address = craton_names_test_function as *const () as usize;
    print_stack(&[address + 4, 8], |line| line.write_to(file.as_raw_fd()));
    let lines = std::fs::read_to_string(tree.path("out")).unwrap();
    let exe = std::env::current_exe().unwrap();
    let offset = describe(address).unwrap().offset() + 4;
    let expected = std::format!(
        "craton:     #0 {:#x} craton_names_test_function+0x4 ({}+{offset:#x})\ncraton:     #1 0x8\n",
        address + 4,
        exe.display()
    );
    assert_eq!(lines, expected);
}

#[test]
fn memory_without_a_name_is_not_described() {
    let at = crate::mapping::map(4096, 1).unwrap();
    assert!(describe(at).is_none());
    crate::mapping::unmap(at, 4096);
    assert!(describe(at).is_none());
}
