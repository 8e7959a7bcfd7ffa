use super::*;
extern crate std;

use std::vec;

#[test]
fn the_calling_threads_block_is_that_of_a_thread_that_lives() {
    let Some(blocks) = Blocks::find() else {
        let is_known = cfg!(all(target_arch = "x86_64", target_env = "gnu"));
        return assert!(!is_known, "glibc's blocks are known");
    };
    let own = crate::thread::pointer();
    // SAFETY: the block is longer.
    assert_eq!(unsafe { blocks.ended_in(own, own + BLOCK) }, None);
}

#[test]
fn a_block_without_a_number_is_that_of_a_thread_that_has_ended() {
    let Some(blocks) = Blocks::find() else { return };
    let mut memory = vec![0usize; 4096 / WORD];
    let start = memory.as_ptr() as usize;
    let at = (start + 512).next_multiple_of(ALIGN);
    let ended = |memory: &[usize]| {
        // SAFETY: the vector's words.
        unsafe { blocks.ended_in(memory.as_ptr() as usize, memory.as_ptr() as usize + size_of_val(memory)) }
    };
    assert_eq!(ended(&memory), None);
    memory[(at - start) / WORD] = at;
    assert_eq!(ended(&memory), None, "its address comes twice");
    memory[(at - start) / WORD + 2] = at;
    assert_eq!(ended(&memory), Some(at));
    let number = &raw mut memory[(at - start + blocks.number) / WORD];
    for (number_is, found) in [(-1, Some(at)), (4711, None)] {
        // SAFETY: in a word of the vector.
        unsafe { number.cast::<i32>().add(blocks.number % WORD / 4).write(number_is) };
        assert_eq!(ended(&memory), found, "{number_is}");
    }
}
