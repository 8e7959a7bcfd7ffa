//! The page heap below: TEMERAIRE's, or one whose short spans LLFree places.

use craton_frames::Seat;

/// Frames that are the heap's pages.
pub type Frames = Seat<'static, 'static, craton_frames::Pages>;
/// Either page heap.
pub type PageHeap<F, C> = craton_pages::FrameHeap<F, C, Frames>;
