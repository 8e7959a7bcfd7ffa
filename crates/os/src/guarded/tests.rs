use super::*;
use crate::process;

fn can_be_read(at: usize) -> bool {
    let mut pipe = [0; 2];
    // SAFETY: a place for two descriptors; the kernel checks the byte.
    unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let can = libc::write(pipe[1], at as *const _, 1) == 1;
        libc::close(pipe[0]);
        libc::close(pipe[1]);
        can
    }
}

#[test]
fn what_is_shut_is_closed_and_empty_and_what_is_beside_it_is_not() {
    let page = process::page_size();
    let at = reserve(3 * page).unwrap();
    assert!(open(at, 3 * page));
    for i in 0..3 {
        // SAFETY: ours, and open.
        unsafe { ((at + i * page) as *mut u8).write(7) };
    }
    let shuts = shut(at + page, page);
    assert_eq!([0, 1, 2].map(|i| can_be_read(at + i * page)), [true, !shuts, true]);
    assert_eq!(renew_shut(at + page, page), shuts);
    if shuts {
        assert!(unshut(at + page, page));
        // SAFETY: as above.
        unsafe { assert_eq!([0, 1, 2].map(|i| ((at + i * page) as *const u8).read()), [7, 0, 7]) };
    }
    crate::mapping::unmap(at, 3 * page);
}

#[test]
fn what_is_closed_keeps_what_it_holds_until_it_is_forgotten() {
    let page = process::page_size();
    let at = reserve(3 * page).unwrap();
    assert!(open(at + page, page));
    let byte = (at + page) as *mut u8;
    // SAFETY: ours, and open.
    unsafe {
        byte.write(7);
        assert!(close(at + page, page) && open(at + page, page));
        assert_eq!(byte.read(), 7);
        discard(at + page, page);
        assert_eq!(byte.read(), 0);
    }
    crate::mapping::unmap(at, 3 * page);
    assert!(!open(at, page), "what is not mapped cannot be opened");
    assert!(most_mappings() >= 1000);
}
