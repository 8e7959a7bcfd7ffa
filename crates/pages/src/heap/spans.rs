use super::Temeraire;
use crate::fit::Fit;
use crate::placement::Placement;
use craton_base::{Clock, Density, Floor, Geometry, HugePageId, PageRange, Pages};

impl<F: Floor, C: Clock, P: Fit, K: Placement, G: Geometry> Temeraire<F, C, P, K, G> {
    /// In address order; linear.
    pub(super) fn walk_spans(&self, mut each: impl FnMut(PageRange, Density)) {
        let mut open: Option<(PageRange, Density)> = None;
        for i in 0..self.granted().0 {
            let t = &self.trackers[i as usize];
            if let Some((span, density)) = open.take() {
                let more = if t.continues() { t.end_of_span(0) } else { 0 };
                let span = PageRange::new(span.first, Pages(span.len.0 + more));
                if more == G::PAGES {
                    open = Some((span, density));
                    continue;
                }
                each(span, density);
            }
            let density = if t.dense { Density::Dense } else { Density::Sparse };
            let mut at = t.starts().next_set(0);
            while at < G::PAGES {
                let end = t.end_of_span(at);
                let span = G::part(HugePageId(i), at, end - at);
                if end == G::PAGES {
                    open = Some((span, density));
                } else {
                    each(span, density);
                }
                at = t.starts().next_set(at + 1);
            }
        }
        if let Some((span, density)) = open {
            each(span, density);
        }
    }
}
