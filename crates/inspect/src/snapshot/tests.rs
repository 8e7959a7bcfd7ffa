use super::*;

fn laid(ranges: &[Range<u64>], blocks: &[usize]) -> Vec<(u64, u64, usize, usize)> {
    let blocks: Vec<Vec<u8>> = blocks.iter().map(|bytes| vec![0; *bytes]).collect();
    parts(ranges, &blocks).iter().map(|part| (part.start, part.end, part.block, part.at)).collect()
}

#[test]
fn ranges_lie_one_behind_the_other_and_go_on_in_the_next_block() {
    assert_eq!(laid(&[10..20, 30..35], &[100]), [(10, 20, 0, 0), (30, 35, 0, 10)]);
    let cut = [(10, 20, 0, 0), (30, 33, 0, 10), (33, 40, 1, 0)];
    assert_eq!(laid(&[10..20, 30..40], &[13, 7]), cut);
    assert_eq!(laid(&[10..20, 30..40], &[10, 10]), [(10, 20, 0, 0), (30, 40, 1, 0)]);
}

#[test]
fn pages_that_cannot_be_read_stay_zero_and_those_behind_them_come() {
    let page = PAGE as usize;
    let memory: Vec<u8> = (0..4 * page).map(|i| (i / page) as u8 + 1).collect();
    let start = (memory.as_ptr() as u64).next_multiple_of(PAGE);
    // Nothing is mapped so low.
    let from = vec![start..start + PAGE, PAGE..3 * PAGE, start + PAGE..start + 2 * PAGE, PAGE..2 * PAGE];
    let mut copy = vec![0; 5 * page];
    fill(std::process::id(), Piece { into: &mut copy, from }).unwrap();
    let offset = (start - memory.as_ptr() as u64) as usize;
    assert_eq!(copy[..page], memory[offset..offset + page]);
    assert_eq!(copy[page..3 * page], vec![0; 2 * page]);
    assert_eq!(copy[3 * page..4 * page], memory[offset + page..offset + 2 * page]);
    assert_eq!(copy[4 * page..], vec![0; page]);
}

#[test]
fn threads_share_the_work_and_forget_no_byte() {
    let memory: Vec<u8> = (0..9 << 20).map(|i: u32| (i ^ i >> 8 ^ i >> 16) as u8).collect();
    let (start, end) = (memory.as_ptr() as u64, memory.as_ptr() as u64 + memory.len() as u64);
    // Many small ranges, a long one, and a second block.
    let mut ranges: Vec<Range<u64>> = (0..3000).map(|i| start + i * 1000..start + i * 1000 + 900).collect();
    ranges.push(start + 3_000_000..end);
    let bytes: usize = ranges.iter().map(|range| (range.end - range.start) as usize).sum();
    let mut blocks = vec![vec![0; bytes - 5000], vec![0; 5000]];
    let parts = parts(&ranges, &blocks);
    copy(std::process::id(), &parts, &mut blocks).unwrap();
    for part in parts {
        let len = (part.end - part.start) as usize;
        let from = (part.start - start) as usize;
        assert!(blocks[part.block][part.at..part.at + len] == memory[from..from + len], "{part:?}");
    }
}

#[test]
fn a_process_that_has_gone_is_an_error() {
    let mut copy = vec![0; 10];
    assert!(fill(u32::MAX >> 1, Piece { into: &mut copy, from: std::iter::once(0..10).collect() }).is_err());
}
