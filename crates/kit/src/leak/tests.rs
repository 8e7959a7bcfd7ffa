extern crate std;
use super::*;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

/// Returns the lost by address, with what hangs on each.
fn search(buffers: &[(usize, &[usize])], roots: &[usize]) -> Vec<(usize, usize)> {
    let memory: BTreeMap<usize, &[usize]> = buffers.iter().copied().collect();
    let mut suspects: Vec<_> = (buffers.iter().enumerate())
        .map(|(i, (address, words))| Suspect {
            address: *address,
            size: 8 * words.len(),
            index: i as u32,
            ..Default::default()
        })
        .collect();
    let mut stack = vec![0; suspects.len()];
    let mut words = |at: usize, _: usize, see: &mut dyn FnMut(usize)| memory[&at].iter().for_each(|w| see(*w));
    let mut search = Search::new(&mut suspects, &mut stack);
    roots.iter().for_each(|word| search.root(*word, &mut words));
    let mut leaks = Vec::new();
    search.finish(&mut words, |s, buffers, _| leaks.push((s.address, buffers)));
    leaks
}

#[test]
fn what_a_root_leads_to_is_no_leak() {
    let buffers: [(usize, &[usize]); 3] = [(0x3000, &[0x1008, 0]), (0x1000, &[0, 0]), (0x2000, &[0])];
    assert_eq!(search(&buffers, &[0x3000, 0x2000]), []);
    assert_eq!(search(&buffers, &[0x3008]), [(0x2000, 0)], "a pointer inside leads there as well");
    assert_eq!(search(&buffers, &[0x3010, 0x2008]), [], "so does one at the end");
    assert_eq!(search(&buffers, &[0x3011, 0x2009, 0x1000]), [(0x2000, 0), (0x3000, 0)], "one behind it does not");
    let beside: [(usize, &[usize]); 2] = [(0x1000, &[0]), (0x1008, &[0])];
    assert_eq!(search(&beside, &[0x1008]), [(0x1000, 0)], "the buffer that begins there comes first");
}

#[test]
fn what_hangs_on_a_leak_is_told_of_with_it() {
    let chain: [(usize, &[usize]); 3] = [(0x1000, &[0x2000]), (0x2000, &[0x3000]), (0x3000, &[0])];
    assert_eq!(search(&chain, &[]), [(0x1000, 2)]);
    assert_eq!(search(&chain, &[0x2000]), [(0x1000, 0)]);
    let circle: [(usize, &[usize]); 3] = [(0x1000, &[0x2000]), (0x2000, &[0x1000]), (0x3000, &[0x3000])];
    assert_eq!(search(&circle, &[]), [(0x3000, 0), (0x1000, 1)], "a circle is told of once");
}

#[test]
fn a_buffer_of_no_bytes_is_pointed_at_by_its_address() {
    let buffers: [(usize, &[usize]); 1] = [(0x1000, &[])];
    assert_eq!(search(&buffers, &[0x1000]), []);
    assert_eq!(search(&buffers, &[0x1001]), [(0x1000, 0)]);
}
