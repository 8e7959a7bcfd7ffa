//! The arithmetic of samples; `core` has no `exp`.

/// Bytes that a sample of `size` bytes stands for: size / (1 − exp(−size / interval)).
pub(super) fn weight(size: u64, interval: u64) -> u64 {
    let chance = 1.0 - exp_of_minus(size as f64 / interval as f64);
    (size as f64 / chance.max(f64::MIN_POSITIVE)) as u64
}

/// For `x` ≥ 0, to 10⁻⁹: the 64th power of the series at x / 64.
fn exp_of_minus(x: f64) -> f64 {
    if x > 40.0 {
        return 0.0;
    }
    let x = -x / 64.0;
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..12 {
        term *= x / n as f64;
        sum += term;
    }
    (0..6).fold(sum, |power, _| power * power)
}

#[cfg(all(test, not(loom)))]
mod tests;
