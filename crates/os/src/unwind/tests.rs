extern crate std;
use super::cfi::{Cfa, Row, Saved};
use super::reader::Reader;
use super::rules::{Rule, Step};
use super::stack::Stack;
use super::table::Table;
use super::*;
use crate::process;

// SAFETY: the C library's signature.
unsafe extern "C" {
    fn backtrace(into: *mut *mut core::ffi::c_void, room: i32) -> i32;
}

#[inline(never)]
fn theirs(into: &mut [usize]) -> usize {
    // SAFETY: the array has this length.
    unsafe { backtrace(into.as_mut_ptr().cast(), into.len() as i32) as usize }
}

#[inline(never)]
fn both(depth: usize, ours: &mut [usize], other: &mut [usize; 64]) -> (usize, usize) {
    let got = if depth == 0 { (capture(ours), theirs(other)) } else { both(depth - 1, ours, other) };
    core::hint::black_box(got)
}

#[test]
fn a_stack_is_what_the_c_library_says() {
    let (mut ours, mut other) = ([0; 64], [0; 64]);
    let (n, m) = both(10, &mut ours, &mut other);
    assert!(n > 12, "{n}");
    assert_eq!(ours[..n], other[2..m]);
}

#[test]
fn u3_a_stack_has_at_most_as_many_frames_as_there_is_room_for() {
    let (mut all, mut other) = ([0; 64], [0; 64]);
    let (n, _) = both(20, &mut all, &mut other);
    for room in 0..n {
        let mut some = [7; 64];
        // Only frames further out are the same.
        assert_eq!(both(20, &mut some[..room], &mut other).0, room);
        assert!(some[room..].iter().all(|a| *a == 7));
        assert!(room < 2 || some[1..room.min(20)] == all[1..room.min(20)]);
    }
}

#[test]
fn a_program_that_is_linked_with_the_library_keeps_all_its_frames() {
    let (mut all, mut outside) = ([0; 64], [0; 64]);
    let (n, m) = (capture(&mut all), capture_outside(&mut outside));
    assert_eq!(all[..n], outside[..m]);
}

#[test]
fn registers_begin_a_stack_with_their_own_instruction() {
    let from = arch::here();
    let (mut all, mut expected) = ([0; 64], [0; 64]);
    let (n, m) = (capture_from(from, &mut all), capture(&mut expected));
    assert_eq!((all[0], &all[1..n]), (from.pc + 1, &expected[..m]));
    assert_eq!(capture_from(from, &mut []), 0);
}

#[test]
fn u1_registers_that_hold_anything_are_no_harm() {
    let mut state = 0x1234_5678_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let good = arch::here();
    let mut into = [0; 64];
    for _ in 0..20_000 {
        let mut one = |good: usize| match random() % 8 {
            0 => random() as usize,
            1 => 0,
            2 => usize::MAX - (random() % 32) as usize,
            3 => good.wrapping_add((random() % (1 << 20)) as usize),
            4 => good.wrapping_sub((random() % (1 << 20)) as usize),
            5 => good & !7,
            _ => good,
        };
        let from = Registers { pc: one(good.pc), sp: one(good.sp), bp: one(good.bp), bx: one(good.sp) };
        assert!(capture_from(from, &mut into) >= 1);
    }
    forget();
}

#[test]
fn u1_words_are_read_where_there_are_any() {
    let page = process::page_size();
    let at = crate::mapping::map(3 * page, page).unwrap();
    // SAFETY: ours, three pages long.
    unsafe {
        *(at as *mut usize) = 5;
        libc::mprotect((at + page) as *mut _, page, libc::PROT_NONE);
    }
    process::set_errno(123);
    let mut stack = Stack::new();
    assert_eq!((stack.word(at), stack.word(at + 8), stack.word(at + 2 * page)), (Some(5), Some(0), Some(0)));
    assert_eq!((stack.word(at + 4), stack.word(at + page), stack.word(at + page)), (None, None, None));
    for wrong in [0, 8, usize::MAX - 7, 1 << 63, 1 << 47] {
        assert_eq!(stack.word(wrong), None, "{wrong:#x}");
    }
    crate::mapping::unmap(at, 3 * page);
    stack.distrust();
    assert_eq!(stack.word(at), None);
    assert_eq!(process::errno(), 123, "U2");
    forget();
}

#[test]
fn every_c_library_finds_the_same_modules() {
    let addresses = [
        arch::walk as *const () as usize,
        libc::strtoul as *const () as usize,
        crate::symbol::find(c"_Unwind_Backtrace"),
        &raw const state_of_test as usize,
        8,
        usize::MAX,
    ];
    for address in addresses {
        let found = module::find(address).map(|found| module::Module { record: 0, ..found });
        assert_eq!(found, module::find_by_list(address), "{address:#x}");
    }
    let own = module::find(addresses[0]).unwrap();
    assert!((own.start..own.end).contains(&addresses[0]) && (own.start..own.end).contains(&own.frames));
}

#[expect(non_upper_case_globals)]
static state_of_test: u8 = 0;

#[test]
fn rules_say_what_they_were_made_from() {
    let places = [Saved::Same, Saved::AtCfa(-16), Saved::AtCfa(-65536), Saved::AtBp(0), Saved::AtBp(65528)];
    let frames = [
        Cfa::Sp(8),
        Cfa::Sp(16_777_208),
        Cfa::Bp(16),
        Cfa::Bp(-8),
        Cfa::Bx(56),
        Cfa::AtSp { offset: 40, plus: 8 },
        Cfa::AtBp { offset: -8, plus: 0 },
        Cfa::Plt { from: 11 },
    ];
    for cfa in frames {
        for bp in places {
            for bx in places {
                let row = Row::Frame { cfa, bp, bx };
                assert_eq!(Rule::new(row).map(Rule::step), Some(Step::Known(row)));
            }
        }
    }
    for row in [Row::Signal, Row::Outermost] {
        let rule = Rule::new(row).unwrap();
        assert!(rule.step() == Step::Known(row) && rule.plain().is_none());
    }
    let same = Saved::Same;
    for (cfa, bp) in [
        (Cfa::Sp(16_777_216), same),
        (Cfa::Sp(12), same),
        (Cfa::AtSp { offset: 0, plus: 1024 }, same),
        (Cfa::AtSp { offset: 0, plus: -8 }, same),
        (Cfa::Sp(8), Saved::AtCfa(-65544)),
        (Cfa::Sp(8), Saved::AtCfa(-12)),
    ] {
        assert_eq!(Rule::new(Row::Frame { cfa, bp, bx: same }), None);
        assert_eq!(Rule::new(Row::Frame { cfa, bp: same, bx: bp }).is_none(), bp != same || cfa != Cfa::Sp(8));
    }
}

#[test]
fn a_table_gives_what_was_put_last_or_nothing() {
    static TABLE: Table<16> = Table::new();
    assert_eq!((TABLE.get(0), TABLE.get(5)), (0, 0));
    for key in 0..1000 {
        TABLE.put(key, key + 7);
        assert_eq!(TABLE.get(key), key + 7);
    }
    assert!((0..1000).filter(|k| TABLE.get(*k) != 0).all(|k| TABLE.get(k) == k + 7));
    TABLE.clear();
    assert!((0..1000).all(|k| TABLE.get(k) == 0));
    for key in 1..1000 {
        TABLE.put(0, 1);
        TABLE.put(key, 2);
        TABLE.put(key, 3);
        assert_eq!((TABLE.get(0), TABLE.get(key)), (1, 3), "{key}");
    }
}

#[test]
fn the_first_keys_of_a_table_lie_on_one_page() {
    static TABLE: Table<8192> = Table::new();
    for key in 0..255 {
        TABLE.put(0x40_0000 + 16 * key, key + 1);
    }
    assert!(TABLE.last() < 256, "entry {}", TABLE.last());
    for key in 0..1000 {
        TABLE.put(0x40_0000 + 16 * key, key + 1);
    }
    assert!(TABLE.last() > 256 && (0..1000).filter(|k| TABLE.get(0x40_0000 + 16 * k) == k + 1).count() > 800);
}

#[test]
fn threads_that_share_a_table_never_see_a_mixture() {
    static TABLE: Table<2> = Table::new();
    std::thread::scope(|s| {
        for t in 0..3u64 {
            s.spawn(move || {
                for i in 0..50_000u64 {
                    let key = i % 7 + t * 100;
                    TABLE.put(key, (key + 1) << 32);
                    let other = i % 7 + (t + 1) % 3 * 100;
                    let value = TABLE.get(other);
                    assert!(value == 0 || value == (other + 1) << 32, "{value:#x} of {other}");
                }
            });
        }
    });
}

#[test]
fn numbers_are_read_as_dwarf_writes_them_and_not_beyond_the_end() {
    let bytes = [0xe5, 0x8e, 0x26, 0x7f, 0x9b, 0xf1, 0x59, 0x2a, 0, b'z', b'R', 0, 0xfe, 0xff, 0xff, 0xff, 0x80];
    let start = bytes.as_ptr() as usize;
    // SAFETY: the bytes live until the test's end.
    let mut r = unsafe { Reader::new(start, start + bytes.len()) };
    assert_eq!((r.unsigned(), r.signed(), r.signed(), r.u16()), (Some(624_485), Some(-1), Some(-624_485), Some(42)));
    let mut text = r.text().unwrap();
    assert_eq!((text.u8(), text.u8(), text.u8()), (Some(b'z'), Some(b'R'), None));
    assert_eq!(r.pointer(0x1b, 0), Some(start + 12 - 2));
    assert_eq!((r.unsigned(), r.is_at_end(), r.u8()), (None, true, None));
    assert!(r.moved(start, start + 3).is_some() && r.moved(start, start + 17).is_none());
    assert!(r.moved(start + 1, start).is_none());
}

#[test]
fn tables_that_lie_are_no_harm() {
    let mut copy = std::vec![0u8; 4096];
    let module = module::find(arch::walk as *const () as usize).unwrap();
    // SAFETY: the module's frames and more are mapped: a page of them.
    copy.copy_from_slice(unsafe { core::slice::from_raw_parts(module.frames as *const u8, 4096) });
    let mut state = 77u32;
    for _ in 0..3000 {
        let mut bytes = copy.clone();
        for _ in 0..4 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = (state >> 16) as usize % if state & 1 == 0 { 32 } else { 4096 };
            bytes[at] = (state >> 8) as u8;
        }
        let start = bytes.as_ptr() as usize;
        let lying = module::Module { start, end: start + bytes.len(), frames: start, record: 0 };
        for address in (start..start + bytes.len()).step_by(509) {
            core::hint::black_box(cfi::row(lying, address));
        }
    }
}
