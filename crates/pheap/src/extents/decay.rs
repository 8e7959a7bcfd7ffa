//! How free memory returns with time (NVAlloc §2.2): of the pages freed in a step, a share may stay
//! that falls from all to none in 200 steps by jemalloc's `smootherstep(x) = 6x⁵ − 15x⁴ + 10x³`.

pub(crate) const STEP_MS: u64 = 50;
/// 10 s.
const STEPS: usize = 200;
const POINT: u32 = 24;

const SHARES: [u64; STEPS] = shares();

const fn shares() -> [u64; STEPS] {
    let mut shares = [0; STEPS];
    let n = STEPS as u128;
    let mut age = 0;
    while age < STEPS {
        let x = (STEPS - age) as u128;
        let sum = 6 * x * x * x * x * x + 10 * x * x * x * n * n - 15 * x * x * x * x * n;
        shares[age] = ((sum << POINT) / (n * n * n * n * n)) as u64;
        age += 1;
    }
    shares
}

pub(crate) struct Decay {
    /// Freed pages, youngest last.
    steps: [u64; STEPS],
    before: u64,
    now: Option<u64>,
}

impl Decay {
    pub(crate) fn new() -> Self {
        Self { steps: [0; STEPS], before: 0, now: None }
    }

    /// How many of `pages` free ones to return now.
    pub(crate) fn excess(&mut self, now_ms: u64, pages: u64) -> u64 {
        let now = now_ms / STEP_MS;
        let passed = now.saturating_sub(self.now.unwrap_or(now)).min(STEPS as u64) as usize;
        if self.now.is_none() || passed > 0 {
            self.now = Some(now);
            let passed = passed.max(1);
            self.steps.copy_within(passed.., 0);
            self.steps[STEPS - passed..].fill(0);
            self.steps[STEPS - 1] = pages.saturating_sub(self.before);
            self.before = pages;
        }
        // Pages freed within the step stay.
        pages.min(self.before).saturating_sub(self.limit())
    }

    pub(crate) fn went(&mut self, pages: u64) {
        self.before = self.before.saturating_sub(pages);
    }

    fn limit(&self) -> u64 {
        let kept = self.steps.iter().rev().zip(SHARES).map(|(pages, share)| u128::from(*pages) * u128::from(share));
        (kept.sum::<u128>() >> POINT) as u64
    }
}
