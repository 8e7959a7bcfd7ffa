use super::*;
use crate::{PPtr, persist};

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
