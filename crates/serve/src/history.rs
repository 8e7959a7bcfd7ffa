//! Values over time in bounded memory: when the room is used up, every second one of the older half
//! goes. So a day and the last minute both fit.

pub const MOST: usize = 1440;

/// Milliseconds since 1970, and what was then.
#[derive(Clone, Debug)]
pub struct History<T> {
    most: usize,
    points: Vec<(u64, T)>,
}

impl<T> History<T> {
    pub const fn new(most: usize) -> Self {
        Self { most, points: Vec::new() }
    }

    /// A time before the last one is that of the last.
    pub fn push(&mut self, at_ms: u64, value: T) {
        let at_ms = self.points.last().map_or(at_ms, |(last, _)| at_ms.max(*last));
        if self.points.len() >= self.most {
            let (half, mut i) = (self.points.len() / 2, 0);
            self.points.retain(|_| {
                i += 1;
                // The first one stays.
                i > half || i % 2 == 1
            });
        }
        self.points.push((at_ms, value));
    }

    pub fn since(&self, at_ms: u64) -> &[(u64, T)] {
        &self.points[self.points.partition_point(|(at, _)| *at <= at_ms)..]
    }

    pub fn all(&self) -> &[(u64, T)] {
        &self.points
    }

    /// The last one at that time or before; else the first.
    pub fn at(&self, at_ms: u64) -> Option<&(u64, T)> {
        let after = self.points.partition_point(|(at, _)| *at <= at_ms);
        self.points.get(after.saturating_sub(1))
    }

    pub fn last(&self) -> Option<&(u64, T)> {
        self.points.last()
    }
}

#[cfg(test)]
mod tests;
