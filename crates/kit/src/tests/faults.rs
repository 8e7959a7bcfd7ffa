use super::*;
use crate::fault::Cause;
use craton_os::process;

fn fault(address: usize) -> Fault {
    Fault {
        address,
        write: Some(true),
        at: 0,
        stack: 0,
        frame: 0,
        base: 0,
        registers: Default::default(),
        target_at: None,
        is_watch: false,
    }
}

impl World {
    fn cause(&self, fault: &Fault) -> Option<Mistake> {
        match self.kit.cause_of(fault, |address| self.heap.page_of(address).is_some())? {
            Cause::Buffer(finding) => Some(finding.mistake),
            Cause::Pattern(value, freed) => Some(Mistake::Pattern { value, freed, buffers: 0 }),
        }
    }
}

fn word_of(pattern: u32) -> usize {
    pattern as usize | (pattern as usize) << 32
}

#[test]
fn an_access_beside_a_guarded_buffer_names_it_and_the_distance() {
    let (w, page) = (world(4), process::page_size());
    let buffer = w.alloc(64, 16, GUARD) as usize;
    for (address, offset) in [(buffer + 64, 64), (buffer + page - 1, page as isize - 1)] {
        let cause = w.cause(&fault(address));
        assert!(
            matches!(cause, Some(Mistake::Touched { offset: o, write: Some(true), .. }) if o == offset),
            "{cause:?}"
        );
    }
    let under = w.kit.table.get(buffer).unwrap().under;
    let before = w.cause(&fault(under - 1));
    assert!(matches!(before, Some(Mistake::Touched { offset, .. }) if offset < 0), "{before:?}");
    assert!(w.cause(&fault(0)).is_none());
}

#[test]
fn an_access_past_the_closed_pages_names_the_nearest_buffer() {
    let (w, page) = (world(4), process::page_size());
    let (small, large) = (w.alloc(100, 16, GUARD) as usize, w.alloc(100_000, 16, GUARD) as usize);
    let far = |address: usize, buffer: usize| {
        let cause = w.cause(&fault(address));
        let offset = address as isize - buffer as isize;
        assert!(matches!(cause, Some(Mistake::Touched { offset: o, .. }) if o == offset), "{offset}: {cause:?}");
    };
    far(small + 5100, small);
    far(small + 1000 * page, small);
    far(large + 100_000 + 10 * page, large);
    far(large - 10 * page, large);
    // Farther away, or at a stack's end.
    assert!(w.cause(&fault(large + (64 << 20))).is_none());
    assert!(w.cause(&Fault { stack: large + 150_000, ..fault(large + 150_000) }).is_none());
}

#[test]
fn an_access_to_a_closed_buffer_names_it_also_by_the_log() {
    let w = world(4);
    w.kit.setting.set(b"audit");
    let buffer = w.alloc(100_000, 16, GUARD | UNMAP | AUDIT);
    assert_eq!(w.free(buffer, Target::MALLOC), Ok(true));
    assert_eq!(w.kit.table.get(buffer as usize).map(|b| b.state), Some(State::Closed));
    let cause = w.cause(&fault(buffer as usize + 50_000));
    assert!(matches!(cause, Some(Mistake::Touched { offset: 50_000, .. })));
    w.kit.set_quarantine(0);
    let next = w.alloc(100_000, 16, GUARD);
    w.free(next, Target::MALLOC).unwrap();
    let other = w.alloc(300_000, 16, AUDIT);
    assert_eq!(w.free(other, Target::MALLOC), Ok(true));
    assert!(w.kit.table.get(other as usize).is_none());
    let cause = w.cause(&fault(other as usize + 7));
    assert!(matches!(cause, Some(Mistake::Touched { offset: 7, .. })), "{cause:?}");
}

#[test]
fn an_address_made_of_a_pattern_names_the_buffer_to_which_a_register_leads() {
    let w = world(4);
    let [fresh, other, freed] = core::array::from_fn(|_| w.alloc(64, 16, POISON) as usize);
    assert_eq!(w.free(freed as *mut u8, Target::MALLOC), Ok(true));
    for (pattern, buffer, is_freed) in [(pattern::FRESH, fresh, false), (pattern::FREED, freed, true)] {
        let mut fault = fault(0);
        fault.registers[0] = word_of(pattern);
        let alone = w.cause(&fault);
        assert!(matches!(alone, Some(Mistake::Pattern { freed, buffers: 0, .. }) if freed == is_freed), "{alone:?}");
        fault.registers[1] = buffer + 8;
        let found = w.cause(&fault);
        assert!(matches!(found, Some(Mistake::Pattern { freed, buffers: 1, .. }) if freed == is_freed), "{found:?}");
        fault.registers[2] = other;
        let buffers = if is_freed { 1 } else { 2 };
        assert!(matches!(w.cause(&fault), Some(Mistake::Pattern { buffers: n, .. }) if n == buffers));
    }
}

#[test]
fn of_two_buffers_the_one_that_a_later_register_leads_to_is_named() {
    let w = world(4);
    let [one, other] = core::array::from_fn(|_| w.alloc(64, 16, POISON) as usize);
    for (stale, read) in [(one, other), (other, one)] {
        let mut fault = fault(word_of(pattern::FRESH));
        (fault.registers[0], fault.registers[8]) = (stale, read);
        let Some(Cause::Buffer(found)) = w.kit.cause_of(&fault, |_| true) else { panic!("no buffer") };
        assert_eq!(found.buffer.address, read);
    }
}

#[test]
fn a_call_through_a_pattern_names_the_buffer_that_it_read() {
    let w = world(4);
    let buffer = w.alloc(64, 16, POISON) as usize;
    let mut fault = fault(0);
    fault.target_at = Some(buffer + 16);
    assert!(matches!(w.cause(&fault), Some(Mistake::Pattern { freed: false, buffers: 1, .. })));
    // SAFETY: ours.
    unsafe { ((buffer + 16) as *mut usize).write(0x1234) };
    assert!(w.cause(&fault).is_none(), "an address of the program's making");
}

#[test]
fn of_two_buffers_beside_an_address_the_nearer_is_named() {
    let (w, page) = (world(4), process::page_size());
    let slots: Vec<_> = (0..2).map(|_| w.alloc(64, 16, GUARD) as usize).collect();
    let under = |at| w.kit.table.get(at).unwrap().under;
    assert_eq!(under(slots[1]) - under(slots[0]), 4 * page, "closed pages lie between them");
    let between = under(slots[0]) + page;
    for (address, nearer) in [(between + 1, slots[0]), (between + 3 * page - 1, slots[1])] {
        let offset = address as isize - nearer as isize;
        assert!(matches!(w.cause(&fault(address)), Some(Mistake::Touched { offset: o, .. }) if o == offset));
    }
}
