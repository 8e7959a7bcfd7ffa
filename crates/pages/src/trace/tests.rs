use super::*;
extern crate std;
use std::string::ToString;
use std::vec::Vec;

const HEADER: Header = Header { bound: 10_000, region: Pages(1 << 20) };

fn event(i: u64) -> Event {
    let kind = [Kind::Alloc, Kind::Free, Kind::Resize][i as usize % 3];
    Event {
        time_us: 7 * i,
        kind,
        span: PageRange::new(PageId(i as u32 * 3), Pages(1 + i as u32 % 300)),
        align: Pages(if kind == Kind::Alloc { 1 << (i % 9) } else { 1 }),
        density: if i.is_multiple_of(2) { Density::Dense } else { Density::Sparse },
    }
}

fn events(n: u64) -> Vec<Event> {
    (0..n).map(event).collect()
}

fn put(file: &mut [u8], at: usize, words: &[u64]) {
    for (i, word) in words.iter().enumerate() {
        file[at + 8 * i..at + 8 * i + 8].copy_from_slice(&word.to_le_bytes());
    }
}

/// `spare` empty blocks follow.
fn file(events: &[Event], ended: Option<u64>, spare: usize) -> Vec<u8> {
    let full = events.len() / BLOCK_EVENTS;
    let blocks = events.len().div_ceil(BLOCK_EVENTS).max(1);
    let mut file = std::vec![0; BLOCK_BYTES * (1 + blocks + spare)];
    put(&mut file, 0, &HEADER.encode());
    for i in 0..blocks {
        let part = &events[i * BLOCK_EVENTS..events.len().min((i + 1) * BLOCK_EVENTS)];
        let at = BLOCK_BYTES * (i + 1);
        let mut sum = Sum::of_block(i as u64 + 1);
        for (slot, event) in part.iter().enumerate() {
            put(&mut file, at + SLOT_BYTES * slot, &event.encode());
            sum.add(event.encode());
        }
        let last = i + 1 == blocks;
        let seal = Seal { events: part.len() as u8, last, dropped: if last { ended.unwrap_or(0) } else { 0 } };
        if ended.is_some() || (i < full && !last) {
            put(&mut file, at + SLOT_BYTES * BLOCK_EVENTS, &seal.encode(sum));
        }
    }
    file
}

fn wrong(file: &[u8]) -> TraceError {
    Trace::read(file).expect_err("a broken file was taken for a good one")
}

#[test]
fn events_come_back_as_they_were_written() {
    for n in [0, 1, 2, 254, 255, 256, 510, 511, 1000] {
        let events = events(n);
        let file = file(&events, Some(5), 0);
        let trace = Trace::read(&file).unwrap();
        assert_eq!(trace.events().collect::<Vec<_>>(), events, "{n} events");
        assert_eq!((trace.len(), trace.unchecked(), trace.is_complete()), (n, 0, true));
        assert_eq!((trace.dropped(), trace.header()), (Some(5), HEADER));
        assert_eq!(trace.duration_us(), 7 * n.saturating_sub(1));
        let end = events.iter().map(|e| e.span.end().0).max().unwrap_or(0);
        assert_eq!(trace.pages(), Pages(end));
    }
}

#[test]
fn the_ends_of_every_field_are_kept() {
    let largest = Event {
        time_us: (1 << 48) - 1,
        kind: Kind::Resize,
        span: PageRange::new(PageId(u32::MAX), Pages(u32::MAX)),
        align: Pages(1 << 31),
        density: Density::Dense,
    };
    assert_eq!(Event::decode(largest.encode()), Some(largest));
    let late = Event { time_us: u64::MAX, ..largest };
    assert_eq!(Event::decode(late.encode()), Some(largest), "time stands still at its end");
    let seal = Seal { events: 255, last: true, dropped: u64::MAX };
    assert_eq!(Seal::decode(seal.encode(Sum::of_block(1))).unwrap().dropped, (1 << 48) - 1);
    assert_eq!(Event::decode(seal.encode(Sum::of_block(1))), None);
    assert_eq!(Event::decode([0, 0]), None);
}

#[test]
fn a_recording_that_was_not_ended_is_read_up_to_its_end() {
    for (n, spare) in [(0, 3), (0, 0), (1, 0), (254, 2), (255, 1), (256, 0), (300, 7), (510, 2)] {
        let events = events(n);
        let file = file(&events, None, spare);
        let trace = Trace::read(&file).unwrap();
        assert_eq!(trace.events().collect::<Vec<_>>(), events, "{n} events");
        let unchecked = if n == 0 { 0 } else { (n - 1) % 255 + 1 };
        assert_eq!((trace.len(), trace.unchecked(), trace.is_complete()), (n, unchecked, false), "{n} events");
        assert_eq!(trace.dropped(), Some(0));
    }
}

#[test]
fn an_event_of_which_only_the_second_word_was_written_is_none() {
    let mut file = file(&events(3), None, 1);
    put(&mut file, BLOCK_BYTES + SLOT_BYTES * 3 + 8, &[77]);
    assert_eq!(Trace::read(&file).unwrap().len(), 3);
    put(&mut file, BLOCK_BYTES + SLOT_BYTES * 255 + 8, &[77]);
    assert_eq!(Trace::read(&file).unwrap().len(), 3, "the seal's second word comes first, too");
    put(&mut file, BLOCK_BYTES + SLOT_BYTES * 4 + 8, &[77]);
    let at = (BLOCK_BYTES + SLOT_BYTES * 4) as u64;
    assert_eq!(wrong(&file), TraceError { at, wrong: Wrong::NoEvent });
    let mut full = self::file(&events(255), None, 1);
    put(&mut full, BLOCK_BYTES + SLOT_BYTES * 255 + 8, &[77]);
    assert_eq!(Trace::read(&full).unwrap().len(), 255);
}

#[test]
fn how_many_were_dropped_is_unknown_after_a_kill_at_the_bound() {
    let mut file = file(&events(255), None, 0);
    put(&mut file, 0, &Header { bound: 255, ..HEADER }.encode());
    assert_eq!(Trace::read(&file).unwrap().dropped(), None);
}

#[test]
fn every_cut_of_a_file_is_seen() {
    let whole = file(&events(600), Some(0), 0);
    for len in (0..whole.len()).step_by(61).chain([1, 4096, 8192, 12288, 16383]) {
        let error = wrong(&whole[..len]);
        let expected = match len {
            0 => Wrong::NoTrace,
            _ if len % BLOCK_BYTES == 0 => Wrong::CutBehind,
            _ => Wrong::CutInside,
        };
        assert_eq!(error, TraceError { at: len as u64, wrong: expected }, "cut at {len}");
    }
    let text = wrong(&whole[..5000]).to_string();
    assert!(text.contains("at byte 5000 (block 1)") && text.contains("cut off"), "{text}");
}

#[test]
fn every_changed_byte_is_seen() {
    let whole = file(&events(300), Some(0), 0);
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x40;
        assert!(Trace::read(&changed).is_err(), "a change at byte {at} goes unnoticed");
    }
}

#[test]
fn blocks_that_changed_places_are_seen() {
    let mut file = file(&events(700), Some(0), 0);
    let (one, two) = file[BLOCK_BYTES..].split_at_mut(BLOCK_BYTES);
    one.swap_with_slice(&mut two[..BLOCK_BYTES]);
    assert_eq!(wrong(&file), TraceError { at: (2 * BLOCK_BYTES - SLOT_BYTES) as u64, wrong: Wrong::Checksum });
}

#[test]
fn other_files_are_named_as_what_they_are() {
    let good = file(&events(3), Some(0), 0);
    let with = |words: &[(usize, u64)]| {
        let mut header = HEADER.encode();
        words.iter().for_each(|(i, word)| header[*i] = *word);
        let mut sum = Sum::of_block(0);
        header[..5].iter().for_each(|word| sum.mix(*word));
        header[5] = sum.0;
        let mut file = good.clone();
        put(&mut file, 0, &header);
        wrong(&file)
    };
    assert_eq!(wrong(b"#!/bin/sh\n"), TraceError { at: 0, wrong: Wrong::NoTrace });
    assert_eq!(with(&[(0, 1)]), TraceError { at: 0, wrong: Wrong::NoTrace });
    assert_eq!(with(&[(1, 16 << 32 | 2)]), TraceError { at: 8, wrong: Wrong::Version(2) });
    assert_eq!(with(&[(1, 24 << 32 | 1)]), TraceError { at: 12, wrong: Wrong::SlotBytes(24) });
    assert_eq!(with(&[(2, 512 << 32 | 4096)]), TraceError { at: 16, wrong: Wrong::PageSize(4096, 512) });
    assert!(with(&[(1, 16 << 32 | 2)]).to_string().contains("version 2 of the format; this program reads version 1"));
    let mut changed = good.clone();
    changed[24] = 1;
    assert_eq!(wrong(&changed), TraceError { at: 40, wrong: Wrong::HeaderChecksum });
}

#[test]
fn events_that_cannot_be_are_errors() {
    let with = |slot: Slot| {
        let mut file = file(&events(3), None, 1);
        put(&mut file, BLOCK_BYTES + SLOT_BYTES * 3, &slot);
        wrong(&file)
    };
    let at = (BLOCK_BYTES + SLOT_BYTES * 3) as u64;
    let error = |wrong| TraceError { at, wrong };
    let good = Event { time_us: 1000, ..event(0) };
    assert_eq!(with([9 << 48, 1 << 32]), error(Wrong::NoEvent));
    assert_eq!(with([1 << 60 | 1 << 48, 1 << 32]), error(Wrong::NoEvent));
    let empty = Event { span: PageRange::new(PageId(1), Pages(0)), ..good };
    assert_eq!(with(empty.encode()), error(Wrong::NoEvent));
    let early = Event { time_us: 1, ..good };
    assert_eq!(with(early.encode()), error(Wrong::BackInTime));
    let beyond = Event { span: PageRange::new(PageId(1 << 20), Pages(1)), ..good };
    assert_eq!(with(beyond.encode()), error(Wrong::BeyondRegion(HEADER.region)));
}

#[test]
fn only_zeros_may_be_behind_the_end() {
    let mut file = file(&events(3), Some(0), 0);
    let end = file.len();
    file.resize(end + 2 * BLOCK_BYTES, 0);
    assert_eq!(Trace::read(&file).unwrap().len(), 3, "room for more events that was not cut off");
    file[end + 77] = 1;
    assert_eq!(wrong(&file), TraceError { at: end as u64 + 77, wrong: Wrong::BehindTheEnd });
    let mut killed = self::file(&events(3), None, 2);
    let at = killed.len() - 5;
    killed[at] = 1;
    assert_eq!(wrong(&killed), TraceError { at: at as u64, wrong: Wrong::BehindTheEnd });
}
