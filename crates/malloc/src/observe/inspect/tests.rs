use super::*;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

fn name(entry: &Entry) -> String {
    let end = entry.name.iter().position(|b| *b == 0).unwrap();
    String::from_utf8(entry.name[..end].to_vec()).unwrap()
}

#[test]
fn every_entry_has_a_name_of_its_own() {
    let all: BTreeMap<String, usize> = INSPECT.all.iter().map(|e| (name(e), e.value as usize)).collect();
    assert_eq!(all.len(), ENTRIES, "{:?}", all.keys().collect::<Vec<_>>());
    assert!(!all.contains_key(""));
    assert_eq!(all["self"], &raw const INSPECT as usize);
    assert_eq!(all["heap"], &raw const HEAP as usize);
    assert_eq!((all["page.bytes"], all["record.bytes"]), (8192, size_of::<SlabRecord>()));
}

#[test]
fn the_table_leads_to_the_heap() {
    let all: BTreeMap<String, usize> = INSPECT.all.iter().map(|e| (name(e), e.value as usize)).collect();
    let word = |at: usize| {
        // SAFETY: words of this process that no thread changes now.
        unsafe { (at as *const usize).read_volatile() }
    };
    let base = word(all["heap"] + all["heap.layout"] + all["layout.base"]);
    assert_eq!(base, HEAP.view().base);
    let secrets = all["heap"] + all["heap.layout"] + all["layout.secrets"];
    let factor = word(all["heap"] + all["heap.layout"] + all["layout.factor"]);
    let at = 0x1230 as *mut u8;
    assert_eq!((0x1230 ^ word(secrets + 8 * 5)).wrapping_mul(factor), HEAP.seal(5).of(at));
    let map = word(all["heap"] + all["heap.layout"] + all["layout.map"]);
    let is_marked = |object: &*mut u8| {
        let page = (*object as usize - base) / all["page.bytes"];
        // SAFETY: a granted page has a mark.
        let entry = unsafe { (map as *const u32).add(page).read() } as usize;
        INSPECT.geometry.get(entry % (1 << all["map.bits"]) / all["map.unit"]).is_some_and(|of| of.object_bytes == 112)
    };
    let objects: Vec<*mut u8> = (0..1000).map(|_| crate::front::malloc(100)).collect();
    assert!(objects.iter().all(|object| !object.is_null()));
    // Some may lie in the gaps of other classes' slabs.
    assert!(objects.iter().any(is_marked));
    for object in objects {
        // SAFETY: ours.
        unsafe { crate::front::free(object) }.unwrap();
    }
}
