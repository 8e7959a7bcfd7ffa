use super::*;
use std::vec;
use std::vec::Vec;

struct Memory(Vec<usize>);

impl Memory {
    fn at(&self, word: usize) -> usize {
        &raw const self.0[word] as usize
    }

    /// Suspects that words `from..to` do not reach.
    fn lost(&self, suspects: &[(usize, usize)], skips: &Skips, from: usize, to: usize) -> Vec<usize> {
        let mut all: Vec<_> = suspects
            .iter()
            .enumerate()
            .map(|(i, (word, size))| Suspect {
                address: self.at(*word),
                size: *size,
                index: i as u32,
                ..Default::default()
            })
            .collect();
        let (mut stack, mut lost) = (vec![0; suspects.len()], Vec::new());
        let mut search = Search::new(&mut all, &mut stack);
        let mut words = |at: usize, bytes: usize, see: &mut dyn FnMut(usize)| read(at, at + bytes, see);
        let end = self.at(0) + to * size_of::<usize>();
        roots(&mut search, self.at(0) + from * size_of::<usize>(), end, skips, &mut words);
        search.finish(&mut words, |s, hanging, _| {
            lost.push(s.size);
            assert!(hanging < suspects.len());
        });
        lost.sort_unstable();
        lost
    }
}

fn none() -> Skips {
    Skips { ranges: [(0, 0); Skips::MOST], len: 0 }
}

#[test]
fn a_buffer_to_which_a_word_leads_is_no_leak() {
    let mut memory = Memory(vec![0; 100]);
    memory.0[3] = memory.at(10);
    memory.0[11] = memory.at(21);
    let suspects = [(10, 16), (20, 24), (30, 32)];
    assert_eq!(memory.lost(&suspects, &none(), 0, 100), [32]);
    memory.0[3] = 0;
    assert_eq!(memory.lost(&suspects, &none(), 0, 100), [16, 32], "the second hangs on the first");
}

#[test]
fn words_of_buffers_are_no_roots() {
    let mut memory = Memory(vec![0; 100]);
    memory.0[10] = memory.at(20);
    memory.0[20] = memory.at(10);
    memory.0[30] = memory.at(30);
    let lost = memory.lost(&[(10, 16), (20, 24), (30, 32)], &none(), 0, 100);
    assert!(lost.contains(&32) && !lost.is_empty(), "{lost:?}");
    memory.0[50] = memory.at(20);
    assert_eq!(memory.lost(&[(10, 16), (20, 24), (30, 32)], &none(), 0, 100), [32]);
}

#[test]
fn the_librarys_records_and_words_before_the_range_are_no_roots() {
    let mut memory = Memory(vec![0; 100]);
    memory.0[5] = memory.at(60);
    let suspects = [(60, 40)];
    assert_eq!(memory.lost(&suspects, &none(), 0, 100), []);
    assert_eq!(memory.lost(&suspects, &none(), 6, 100), [40], "what lay on the stack before");
    let mut skips = none();
    skips.add(0, 100);
    skips.add(memory.at(4), 0);
    assert_eq!(skips.each().count(), 0, "nothing, and nowhere");
    skips.add(memory.at(4), 2 * size_of::<usize>());
    assert_eq!(memory.lost(&suspects, &skips, 0, 100), [40]);
    memory.0[6] = memory.at(62);
    assert_eq!(memory.lost(&suspects, &skips, 0, 100), [], "behind the records it goes on");
}

#[test]
fn suspects_are_buffers_with_the_check_that_are_live_or_can_be_read() {
    let buffer = |checks, state| Buffer { checks, state, ..Default::default() };
    assert!(is_suspect(&buffer(LEAK | 1, State::Live)));
    assert!(is_suspect(&buffer(LEAK, State::Freed)) && !is_suspect(&buffer(LEAK, State::Closed)));
    assert!(!is_suspect(&buffer(!LEAK, State::Live)));
    assert!(is_device(b"/dev/nvidia0") && is_device(b"[vvar]") && !is_device(b"[heap]"));
}
