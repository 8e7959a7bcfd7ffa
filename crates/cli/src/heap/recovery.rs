//! What recovery found.

use craton_lab::format::plural;
use craton_pheap::{Identity, Report};
use serde::Serialize;

#[derive(Clone, Copy, Serialize)]
pub struct Recovery {
    pub was_closed: bool,
    pub redone_lines: u64,
    pub changed_slots: u64,
    pub slots_left: u64,
    pub void_stores: u64,
    pub torn_lines: u64,
    pub undone_transactions: u64,
    /// Of a frames heap's unfinished operations.
    pub freed_pages: u64,
    pub collected: u64,
    pub torn_state_at: Option<u64>,
}

impl Recovery {
    pub fn new(identity: &Identity, report: &Report) -> Self {
        Self {
            was_closed: report.clean,
            redone_lines: report.lines,
            changed_slots: report.slots,
            slots_left: report.slots_left,
            void_stores: report.void,
            torn_lines: report.torn,
            undone_transactions: report.undone,
            freed_pages: report.pages,
            collected: report.collected,
            torn_state_at: identity.torn_state,
        }
    }

    pub fn is_needed(&self) -> bool {
        !self.was_closed || self.torn_state_at.is_some()
    }

    /// Verbs in the base form, such as `redo 3 lines`.
    pub fn steps(&self) -> Vec<String> {
        let some = |n: u64, text: String| (n > 0).then_some(text);
        let steps = [
            some(self.redone_lines, {
                let slots = plural(self.changed_slots, "slot");
                format!("redo {}, which changes {slots}", plural(self.redone_lines, "line"))
            }),
            some(self.torn_lines, {
                let lines = plural(self.torn_lines, "line");
                format!("drop {lines} of operations that were not committed")
            }),
            some(self.undone_transactions, format!("undo {}", plural(self.undone_transactions, "transaction"))),
            some(self.freed_pages, format!("free {} of operations under way", plural(self.freed_pages, "page"))),
            some(self.collected, format!("collect {} that no root reaches", plural(self.collected, "object"))),
            self.torn_state_at.map(|at| format!("write the state line at {at:#x} again, which is not whole")),
        ];
        steps.into_iter().flatten().collect()
    }

    /// Empty for a heap that was closed.
    pub fn note(&self) -> String {
        match (self.is_needed(), self.steps()) {
            (false, _) => String::new(),
            (true, steps) if steps.is_empty() => "not closed; recovery has nothing to repair\n".to_owned(),
            (true, steps) if self.was_closed => format!("recovery would {}\n", steps.join(", ")),
            (true, steps) => format!("not closed; recovery would {}\n", steps.join(", ")),
        }
    }
}
