use super::*;
use craton_inspect::Count;
use flate2::read::GzDecoder;
use std::io::Read;

/// Fields of a message: number, and value or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return number;
            }
            shift += 7;
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        let inner = if key & 7 == 2 { bytes[..value as usize].to_vec() } else { Vec::new() };
        bytes = &bytes[inner.len()..];
        found.push((key >> 3, value, inner));
    }
    found
}

fn numbers(packed: &[u8]) -> Vec<u64> {
    let (mut all, mut number, mut shift) = (Vec::new(), 0u64, 0);
    for byte in packed {
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if *byte < 0x80 {
            all.push(number);
            (number, shift) = (0, 0);
        }
    }
    all
}

#[test]
fn what_is_written_can_be_decoded_and_has_the_same_numbers() {
    let count = |n: u64| Count { bytes: n << 20, objects: n };
    let sites = vec![
        Site { stack: vec![0x1234, 0x5678], live: count(300), total: count(700), ..Site::default() },
        Site { stack: vec![0x5678], live: count(1), total: count(2), ..Site::default() },
    ];
    let profile = Profile { sites, interval: 512 << 10, ..Profile::default() };
    let compressed = compressed(&profile, &mut Lines::new(&[])).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(&*compressed).read_to_end(&mut bytes).unwrap();
    let all = fields(&bytes);
    let of = |field: u64| all.iter().filter(move |(number, ..)| *number == field);
    let texts: Vec<String> = of(6).map(|(.., text)| String::from_utf8(text.clone()).unwrap()).collect();
    assert_eq!(texts[0], "");
    let kinds: Vec<&str> = of(1).map(|(.., kind)| texts[fields(kind)[0].1 as usize].as_str()).collect();
    assert_eq!(kinds, ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]);
    let samples: Vec<[Vec<u64>; 2]> = of(2)
        .map(|(.., sample)| {
            let parts = fields(sample);
            [numbers(&parts[0].2), numbers(&parts[1].2)]
        })
        .collect();
    assert_eq!(samples[0], [vec![1, 2], vec![700, 700 << 20, 300, 300 << 20]]);
    assert_eq!(samples[1], [vec![2], vec![2, 2 << 20, 1, 1 << 20]]);
    assert_eq!((of(4).count(), of(5).count()), (2, 2), "locations and functions, each once");
    assert_eq!(texts[of(14).next().unwrap().1 as usize], "inuse_space");
}
