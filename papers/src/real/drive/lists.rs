//! Lists of redis (TEMERAIRE §5.1): five elements are pushed, and those five read back. Lists grow
//! to the end, as in redis-benchmark.

use super::{Dialogue, REDIS_FAREWELL, put, redis_array, redis_command, redis_integer, redis_string};
use craton_lab::rng::Rng;

const LISTS: u32 = 1000;
const ELEMENTS: usize = 5;

/// Lengths, from which answers follow.
pub(super) struct Lists {
    seed: u64,
    lengths: Vec<usize>,
}

impl Lists {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, lengths: vec![0; LISTS as usize] }
    }
}

fn element(rng: &mut Rng, number: u64, i: usize) -> Vec<u8> {
    let length = 8 + rng.below(64) as usize;
    let mut text = Vec::with_capacity(80);
    put(&mut text, format_args!("{number}-{i}-"));
    text.resize(text.len().max(length), b'a' + (number % 26) as u8);
    text
}

impl Dialogue for Lists {
    fn next(&mut self, number: u64, request: &mut Vec<u8>, answer: &mut Vec<u8>) {
        let mut rng = Rng::new(self.seed, number);
        let list = rng.below(LISTS) as usize;
        let key = format!("list:{list}").into_bytes();
        let elements: [Vec<u8>; ELEMENTS] = std::array::from_fn(|i| element(&mut rng, number, i));
        self.lengths[list] += ELEMENTS;

        let mut push: Vec<&[u8]> = vec![b"LPUSH", &key];
        push.extend(elements.iter().map(Vec::as_slice));
        redis_command(request, &push);
        redis_integer(answer, self.lengths[list]);

        redis_command(request, &[b"LRANGE", &key, b"0", b"4"]);
        redis_array(answer, ELEMENTS);
        for element in elements.iter().rev() {
            redis_string(answer, element);
        }
    }

    fn last(&mut self, request: &mut Vec<u8>, answer: &mut Vec<u8>) {
        redis_command(request, &[b"DBSIZE"]);
        redis_integer(answer, self.lengths.iter().filter(|length| **length > 0).count());
    }

    fn farewell(&self) -> &'static [u8] {
        REDIS_FAREWELL
    }
}
