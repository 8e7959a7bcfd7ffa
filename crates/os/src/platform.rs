//! Linux as one type: the region's floor, mappings and the machine.

use crate::{Region, guarded, label, mapping, probe, process, processor_ns, thp};
use craton_base::{HUGEPAGE_SIZE, Machine, Mappings, Platform};

#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

impl Mappings for Linux {
    fn map(&self, bytes: usize, align: usize) -> Option<usize> {
        mapping::map_as(label::HUGE, bytes, align).inspect(|at| probe::system_map(*at, bytes))
    }

    fn reserve(&self, bytes: usize) -> Option<usize> {
        if process::address_space_limit().is_some() {
            return None;
        }
        let at = mapping::map_as(label::HUGE, bytes, HUGEPAGE_SIZE)?;
        self.refuse_huge(at, bytes, true);
        Some(at)
    }

    fn discard(&self, at: usize, bytes: usize) {
        mapping::discard(at, bytes);
        probe::release(at, bytes);
        self.refuse_huge(at, bytes, true);
    }

    fn unmap(&self, at: usize, bytes: usize) {
        mapping::unmap(at, bytes);
        probe::system_unmap(at, bytes);
    }

    fn advise_huge(&self, at: usize, bytes: usize) {
        mapping::advise_huge(at, bytes);
    }

    fn refuse_huge(&self, at: usize, bytes: usize, refuse: bool) {
        match refuse {
            _ if !thp::is_always() => {}
            true => mapping::advise_small(at, bytes),
            false => mapping::advise_huge(at, bytes),
        }
    }

    fn grow(&self, at: usize, old_bytes: usize, new_bytes: usize, may_move: bool) -> Option<usize> {
        let to = match may_move {
            true => mapping::remap(at, old_bytes, new_bytes),
            false => mapping::lengthen(at, old_bytes, new_bytes).then_some(at),
        };
        to.inspect(|to| {
            probe::system_unmap(at, old_bytes);
            probe::system_map(*to, new_bytes);
        })
    }

    fn replace(&self, at: usize, old_bytes: usize, to: usize, new_bytes: usize) -> bool {
        mapping::replace(at, old_bytes, to, new_bytes)
    }

    fn move_memory(&self, at: usize, bytes: usize, to: usize) -> bool {
        mapping::move_memory(at, bytes, to)
    }
}

impl Machine for Linux {
    #[inline]
    fn cpu(&self) -> usize {
        process::cpu()
    }

    fn page_size(&self) -> usize {
        process::page_size()
    }

    fn touch(&self, at: usize) -> u64 {
        if !thp::may_query() {
            return 0;
        }
        let start = processor_ns();
        mapping::touch(at);
        processor_ns().saturating_sub(start)
    }

    fn resident(&self, at: usize, bytes: usize) -> usize {
        thp::resident_bytes(at, bytes)
    }

    fn huge(&self, at: usize, bytes: usize) -> Option<usize> {
        if thp::may_query() { thp::huge_bytes(at, bytes) } else { None }
    }

    fn shut(&self, at: usize, bytes: usize, shut: bool) -> bool {
        if shut { guarded::shut(at, bytes) } else { guarded::unshut(at, bytes) }
    }
}

impl Platform for Region {
    type System = Linux;
}
