//! TEMERAIRE's page heap, or one whose short spans LLFree places.

use craton_frames::Seat;

pub type Frames = Seat<'static, 'static, craton_frames::Pages>;
pub type PageHeap<F, C> = craton_pages::FrameHeap<F, C, Frames>;
