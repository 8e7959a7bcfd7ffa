//! Draws a number with given weights in constant time (Walker 1977, filled as by Vose 1991).

use craton_lab::rng::Rng;

/// Numbers `0..n`.
pub(crate) struct Alias {
    /// In units of 2^-32, the part of column `i` that is `i`, and what has the rest.
    columns: Vec<(u64, u32)>,
}

impl Alias {
    /// One at least is above 0.
    pub fn new(weights: impl Iterator<Item = f64>) -> Self {
        let mut left: Vec<f64> = weights.collect();
        let mean = left.iter().sum::<f64>() / left.len() as f64;
        left.iter_mut().for_each(|weight| *weight /= mean);
        let (mut low, mut high): (Vec<usize>, Vec<usize>) = (0..left.len()).partition(|i| left[*i] < 1.0);
        let mut columns: Vec<(u64, u32)> = (0..left.len() as u32).map(|i| (1 << 32, i)).collect();
        while let (Some(poor), Some(rich)) = (low.pop(), high.last().copied()) {
            columns[poor] = ((left[poor] * (1u64 << 32) as f64) as u64, rich as u32);
            left[rich] -= 1.0 - left[poor];
            if left[rich] < 1.0 {
                high.pop();
                low.push(rich);
            }
        }
        Self { columns }
    }

    pub fn draw(&self, rng: &mut Rng) -> usize {
        let product = u128::from(rng.next()) * self.columns.len() as u128;
        let column = (product >> 64) as usize;
        let (own, other) = self.columns[column];
        if (product as u64 >> 32) < own { column } else { other as usize }
    }
}

#[cfg(test)]
mod tests;
