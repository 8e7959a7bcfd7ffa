use super::*;
use crate::{Error, HeapOptions, PPtr, PersistentHeap, persist};

persist! {
    struct Mixed { flag: bool, at: PPtr<Mixed>, short: u16, inner: Inner, last: u8 }
}

persist! {
    #[derive(PartialEq, Debug)]
    struct Inner { numbers: [u32; 3], float: f64 }
}

#[test]
fn a_struct_lies_as_c_lays_it_out() {
    #[repr(C)]
    struct InnerC {
        numbers: [u32; 3],
        float: f64,
    }
    #[repr(C)]
    struct MixedC {
        flag: u8,
        at: u64,
        short: u16,
        inner: InnerC,
        last: u8,
    }
    assert_eq!(Inner::float.offset(), std::mem::offset_of!(InnerC, float) as u64);
    assert_eq!((Inner::BYTES, Mixed::BYTES), (size_of::<InnerC>() as u64, size_of::<MixedC>() as u64));
    let offsets =
        [Mixed::flag.offset(), Mixed::at.offset(), Mixed::short.offset(), Mixed::inner.offset(), Mixed::last.offset()];
    let in_c = [
        std::mem::offset_of!(MixedC, flag),
        std::mem::offset_of!(MixedC, at),
        std::mem::offset_of!(MixedC, short),
        std::mem::offset_of!(MixedC, inner),
        std::mem::offset_of!(MixedC, last),
    ];
    assert_eq!(offsets, in_c.map(|offset| offset as u64));
}

#[test]
fn values_come_back_and_any_bytes_are_a_value() {
    let value = Mixed {
        flag: true,
        at: PPtr::at_offset(0x1234_5678),
        short: 7,
        inner: Inner { numbers: [1, 2, 3], float: -0.5 },
        last: 9,
    };
    let mut bytes = vec![0; Mixed::BYTES as usize];
    value.encode(&mut bytes);
    let back = Mixed::decode(&bytes);
    assert_eq!((back.flag, back.at, back.short, back.inner, back.last), (true, value.at, 7, value.inner, 9));
    assert!(Mixed::decode(&[0xff; 64][..Mixed::BYTES as usize]).flag);
}

#[test]
fn tags_tell_types_apart() {
    mod other {
        crate::persist! {
            pub struct Inner { pub numbers: [u32; 3], pub float: f32 }
        }
    }
    let tags = [
        <u64 as Object>::TAG,
        <i64 as Object>::TAG,
        <[u64] as Object>::TAG,
        <[u64; 2] as Object>::TAG,
        <[u64; 3] as Object>::TAG,
        <Inner as Object>::TAG,
        <other::Inner as Object>::TAG,
        <PPtr<u64> as Object>::TAG,
    ];
    for (i, tag) in tags.iter().enumerate() {
        assert!(!tags[..i].contains(tag), "{i}: {tag:#x}");
    }
    const { assert!(Mixed::HAS_POINTERS && !Inner::HAS_POINTERS) };
}

mod before {
    crate::persist! {
        pub struct Inner { pub x: u32, pub y: f32 }
    }
    crate::persist! {
        pub struct Outer { pub inner: Inner }
    }
    crate::persist! {
        pub struct Node { pub next: crate::PPtr<Node>, pub value: u64 }
    }
}

mod after {
    crate::persist! {
        pub struct Inner { pub y: f32, pub x: u32 }
    }
    crate::persist! {
        pub struct Outer { pub inner: Inner }
    }
    crate::persist! {
        pub struct Node { pub next: crate::PPtr<Node>, pub value: i64 }
    }
}

persist! {
    struct Left { right: PPtr<Right>, all: PPtr<[PPtr<Left>]> }
}

persist! {
    struct Right { left: PPtr<Left>, value: u64 }
}

fn tag<T: Object + ?Sized>() -> u64 {
    T::TAG
}

#[test]
fn tags_see_nested_values_and_what_pointers_lead_to() {
    use {after as b, before as a};
    let pairs = [
        (tag::<a::Outer>(), tag::<b::Outer>()),
        (tag::<[a::Outer; 3]>(), tag::<[b::Outer; 3]>()),
        (tag::<PPtr<a::Outer>>(), tag::<PPtr<b::Outer>>()),
        (tag::<[PPtr<a::Outer>]>(), tag::<[PPtr<b::Outer>]>()),
        (tag::<[PPtr<a::Node>]>(), tag::<[PPtr<b::Node>]>()),
        (tag::<[PPtr<a::Node>]>(), tag::<[PPtr<a::Inner>]>()),
        // By their names.
        (tag::<PPtr<PPtr<a::Node>>>(), tag::<PPtr<PPtr<a::Inner>>>()),
        (tag::<PPtr<[PPtr<u8>]>>(), tag::<PPtr<[PPtr<i8>]>>()),
        (tag::<PPtr<Left>>(), tag::<PPtr<Right>>()),
    ];
    for (i, (one, other)) in pairs.into_iter().enumerate() {
        assert_ne!(one, other, "pair {i}");
    }
}

/// A root with a number for a tag, opened as a type.
fn open<T: Object + ?Sized>(made_with: u64) -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let heap = HeapOptions::new().limit(64 << 20).create(folder.path().join("a.heap"))?;
    heap.raw().add_root(b"root", made_with)?;
    heap.root::<T>("root").map(drop)
}

#[test]
fn roots_are_opened_by_their_tag_or_by_one_of_an_earlier_version() {
    assert_eq!(open::<before::Outer>(tag::<before::Outer>()), Ok(()));
    let (found, expected) = (tag::<before::Outer>(), tag::<after::Outer>());
    assert_eq!(open::<after::Outer>(found), Err(Error::RootType { found, expected }));
    let (found, expected) = (tag::<[PPtr<Left>]>(), tag::<[PPtr<Right>]>());
    assert_eq!(open::<[PPtr<Right>]>(found), Err(Error::RootType { found, expected }));
    // As the first version of the tags made them.
    assert_eq!(open::<Inner>(0xb3a8_c018_eaa7_ea33), Ok(()));
    assert_eq!(open::<[PPtr<Inner>]>(0x5f5e_3b5c_1cfa_8ef7), Ok(()));
    assert!(open::<before::Inner>(0xb3a8_c018_eaa7_ea33).is_err());
}

#[test]
fn values_without_bytes_are_as_many_as_the_array_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let heap = HeapOptions::new().limit(64 << 20).create(folder.path().join("a.heap")).expect("a new heap");
    let slot: crate::Slot<[[u8; 0]]> = heap.add_root("slot").expect("a root");
    let array = heap.alloc_array_to(slot, &[[]; 5]).expect("room");
    assert_eq!((heap.len_of(array), heap.values(array)), (Ok(5), Ok(vec![[]; 5])));
    let slot: crate::Slot<[[u8; 0]; 3]> = heap.add_root("nested").expect("a root");
    let nested = heap.alloc_to(slot, &[[]; 3]).expect("room");
    assert_eq!(heap.get(nested), Ok([[]; 3]));
}

#[test]
fn arrays_of_all_lengths_come_back() {
    fn check<T: Persist + PartialEq + std::fmt::Debug>(heap: &PersistentHeap, value: impl Fn(usize) -> T) {
        let slot: crate::Slot<[T]> = heap.root_or_add(&format!("{:x}", <T as Persist>::TAG)).expect("a root");
        let lengths = (0..40).chain([255, 256, 257, 1000, 4095, 4096, 4097, 9001]);
        for len in lengths {
            let values: Vec<T> = (0..len).map(&value).collect();
            let array = heap.alloc_array_to(slot, &values).expect("room");
            assert_eq!((heap.len_of(array), heap.values(array)), (Ok(len as u64), Ok(values)));
            heap.free_from(slot).expect("an array");
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let heap = HeapOptions::new().limit(256 << 20).create(folder.path().join("a.heap")).expect("a new heap");
    check(&heap, |i| i as u8);
    check(&heap, |i| i as u64 * 3);
    check(&heap, |i| [i as u8, 1, 2]);
    check(&heap, |i| Small { flag: i % 3 == 0, number: i as u32 });
    check(&heap, |i| [i as u16; 301]);
}

persist! {
    #[derive(PartialEq, Debug)]
    struct Small { flag: bool, number: u32 }
}
