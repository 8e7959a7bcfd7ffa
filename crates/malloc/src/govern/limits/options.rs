//! The limit options. A limit below the bytes in use, or a hard one below the soft one, is only
//! reported: a program may set it at any time.

use super::{Kept, Limited, Limits, Setting, System, Whose};
use crate::observe::text::Text;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::Clock;
use craton_os::{Line, process};
use craton_tables::amount::size;
use craton_tables::options::LIMIT_LEAST;

impl<C: Clock, S: System> Limits<C, S> {
    /// `false`, unchanged, when refused.
    pub(crate) fn set_option(&self, key: &[u8], value: &[u8], heap: &impl Limited) -> bool {
        if key == b"pressure" {
            let Some(percent) = size(value).filter(|p| *p <= 100) else { return false };
            self.pressure.store(percent as u32, Relaxed);
            return true;
        }
        let Some((kept, setting)) = self.parse(key, value) else { return false };
        let saved = process::errno();
        if matches!(setting, Setting::Percent(_)) && !self.read.load(Relaxed) {
            self.read_group();
        }
        let taken = self.why_refused(key, setting, heap).is_none();
        if taken {
            kept.set(setting);
            self.changes.record();
            let before = (heap.gate().soft(), heap.gate().hard());
            self.apply(heap);
            self.enforce(key, before, heap);
        }
        process::set_errno(saved);
        taken
    }

    fn parse(&self, key: &[u8], value: &[u8]) -> Option<(&Kept, Setting)> {
        let value = if key == b"memory_limit" && value == b"cgroup" { b"auto" } else { value };
        let setting = Setting::parse(value)?;
        match key {
            b"soft_limit" => Some((&self.soft, setting)),
            b"hard_limit" => Some((&self.hard, setting)),
            b"memory_limit" if !matches!(setting, Setting::Percent(_)) => Some((&self.memory, setting)),
            _ => None,
        }
    }

    pub(crate) fn why_not(&self, key: &[u8], value: &[u8], heap: &impl Limited) -> Option<&'static str> {
        self.parse(key, value).and_then(|(_, setting)| self.why_refused(key, setting, heap))
    }

    fn why_refused(&self, key: &[u8], setting: Setting, heap: &impl Limited) -> Option<&'static str> {
        let bytes = self.amount(setting)?;
        let hard = heap.gate().hard().filter(|_| key == b"soft_limit");
        if bytes < LIMIT_LEAST {
            Some("too little for any program to run (1M is the least); ignored")
        } else if hard.is_some_and(|hard| bytes > hard) {
            Some("more than the hard limit, so that it would never be reached (set it below that); ignored")
        } else {
            None
        }
    }

    pub(crate) fn show_option(&self, key: &[u8], into: &mut Text<'_>) -> bool {
        match key {
            b"pressure" => into.number(self.pressure.load(Relaxed).into()),
            b"soft_limit" => self.soft.get().show(into),
            // `auto` means none here.
            b"hard_limit" if self.hard.get() == Setting::Auto => into.text("none"),
            b"hard_limit" => self.hard.get().show(into),
            b"memory_limit" if self.memory.get() == Setting::Auto => into.text("cgroup"),
            b"memory_limit" => self.memory.get().show(into),
            _ => return false,
        };
        true
    }

    fn enforce(&self, key: &[u8], before: (Option<u64>, Option<u64>), heap: &impl Limited) {
        if heap.gate().hard().is_some_and(|hard| hard < heap.used()) {
            heap.shrink(Whose::Own);
        }
        // A limit set again is reported again.
        self.report_hard(before.1.filter(|_| key != b"hard_limit"), heap);
        let soft = heap.gate().soft();
        let used = heap.used();
        if let Some(limit) = soft.filter(|limit| *limit < used) {
            if key == b"soft_limit" || key == b"memory_limit" && soft != before.0 {
                below("soft_limit", limit, used, "free memory is given back now");
            }
            self.act(heap);
        }
    }

    /// Releases memory for a new hard limit below the use.
    pub(super) fn report_hard(&self, before: Option<u64>, heap: &impl Limited) {
        let Some(hard) = heap.gate().hard().filter(|hard| Some(*hard) != before) else { return };
        let used = heap.used();
        if hard < used {
            below("hard_limit", hard, used, "free memory is given back, and more is refused until enough is freed");
            heap.relieve(hard);
        }
        // The control group's soft limit is not the program's mistake.
        if let Some(soft) = heap.gate().soft().filter(|soft| hard < *soft && self.soft.get() != Setting::Auto) {
            let line =
                Line::new().text("craton: hard_limit of ").number(hard).text(" bytes is below the soft_limit of ");
            line.number(soft).text(" bytes, which is never reached now; set that below it, too").print();
        }
    }
}

fn below(what: &str, limit: u64, used: u64, so: &str) {
    let line = Line::new().text("craton: ").text(what).text(" of ").number(limit).text(" bytes is below the ");
    line.number(used).text(" bytes in use; ").text(so).print();
}
