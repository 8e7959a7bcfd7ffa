//! The bytes of an allocator's state that a run touches (LLFree §5.5): a run fills a zone's arrays
//! with a byte, then allocates and frees every frame. A second run uses the byte's complement.

use super::{Frames, HUGE_ORDER, Job, request};
use craton_frames::{Config, Init, Local, Sizes, Standard, Zone};
use craton_lab::arrays::{Array, Arrays, LINE, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    pub name: &'static str,
    pub bytes: usize,
    pub lines: usize,
    /// `None`: not run.
    pub touched: Option<usize>,
}

pub fn computed(frames: usize, processors: usize) -> [Level; 5] {
    let sizes = Sizes::of::<Standard>(frames, processors);
    let level = |name, bytes: usize| Level { name, bytes, lines: bytes.div_ceil(LINE), touched: None };
    [
        level("bit fields", sizes.rows * 8),
        level("huge frames", sizes.children * 4),
        level("trees", sizes.trees * 2),
        level("sets of trees", sizes.index * 8),
        level("processors", sizes.locals * size_of::<Local>()),
    ]
}

pub fn counted(frames: usize, processors: usize) -> Result<[Level; 5], String> {
    let sizes = Sizes::of::<Standard>(frames, processors);
    let runs = [0x5a, !0x5a].map(|fill| run(frames, processors, Arrays::new(&sizes, fill)));
    let [(first, one), (second, two)] = match runs {
        [Ok(one), Ok(two)] => [(0x5a, one), (!0x5a, two)],
        [Err(wrong), _] | [_, Err(wrong)] => return Err(wrong),
    };
    let fills = [first, second];
    let mut levels = computed(frames, processors);
    let touched = [
        lines([&one.rows, &two.rows], fills)?,
        lines([&one.children, &two.children], fills)?,
        lines([&one.trees, &two.trees], fills)?,
        lines([&one.index, &two.index], fills)?,
        locals(&one.locals),
    ];
    levels.iter_mut().zip(touched).for_each(|(level, touched)| level.touched = Some(touched));
    Ok(levels)
}

fn run(frames: usize, processors: usize, arrays: Arrays) -> Result<Arrays, String> {
    let zone: Zone<'_> = Zone::new(frames, arrays.metadata(), Init::Free, Config::new(processors))
        .map_err(|wrong| format!("a zone of {frames} frames: {wrong}"))?;
    FillAll { frames, processors }.run(&zone)?;
    Ok(arrays)
}

struct FillAll {
    frames: usize,
    processors: usize,
}

impl Job for FillAll {
    type Out = Result<(), String>;

    fn run<F: Frames>(self, frames: &F) -> Self::Out {
        for order in [HUGE_ORDER, 0] {
            let by = |block: usize| request(order, block / 512 % self.processors);
            let get = |block| frames.get(by(block)).ok_or_else(|| format!("block {block} of order {order} is missing"));
            let blocks = (0..self.frames >> order).map(get).collect::<Result<Vec<usize>, String>>()?;
            let wrong = blocks.iter().enumerate().find(|(block, frame)| !frames.put(**frame, by(*block)));
            if let Some((_, frame)) = wrong {
                return Err(format!("frame {frame} of order {order} could not be freed"));
            }
        }
        Ok(())
    }
}

fn lines<T: Value>(runs: [&Array<T>; 2], fills: [u8; 2]) -> Result<usize, String> {
    let width = size_of::<T>();
    let changed = |element: &T, fill: u8| element.value() != u64::from_ne_bytes([fill; 8]) >> (64 - 8 * width);
    for (array, fill) in runs.into_iter().zip(fills) {
        // Also elements of the last line that were not asked for.
        if let Some(at) = array.behind().iter().position(|element| changed(element, fill)) {
            return Err(format!("element {} behind an array's end was written", at));
        }
    }
    let [one, two] = runs.map(|array| array.needed().chunks(LINE / width));
    let is_touched = |(one, two): &(&[T], &[T])| {
        one.iter().any(|e| changed(e, fills[0])) || two.iter().any(|e| changed(e, fills[1]))
    };
    Ok(one.zip(two).filter(is_touched).count())
}

/// Their words are private: compares what they print.
fn locals(locals: &[Local]) -> usize {
    let new = format!("{:?}", Local::default());
    locals.iter().filter(|local| format!("{local:?}") != new).count()
}

#[cfg(test)]
mod tests;
