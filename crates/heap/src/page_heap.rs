//! The page heap below: TEMERAIRE's, or one in which LLFree's frames place short spans.

use craton_frames::Seat;

/// Frames that are the heap's pages.
pub type Frames = Seat<'static, 'static, craton_frames::Pages>;
/// Either page heap.
pub type PageHeap<F, C> = craton_pages::FrameHeap<F, C, Frames>;
