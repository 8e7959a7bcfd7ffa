//! Values of many sizes under random keys. A value follows from key and number of writes, so no
//! values are kept.

use super::{Dialogue, REDIS_FAREWELL, put, redis_command, redis_integer, redis_string};
use craton_lab::rng::Rng;

const KEYS: u32 = 40_000;
const MOST_BYTES: usize = 8 << 10;
/// Values are cut from it.
const NOISE_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Redis,
    Memcached,
}

pub(super) struct Values {
    protocol: Protocol,
    seed: u64,
    written: Vec<u32>,
    there: Vec<bool>,
    noise: Vec<u8>,
}

impl Values {
    pub(super) fn new(protocol: Protocol, seed: u64) -> Self {
        let mut rng = Rng::new(seed, u64::MAX);
        let noise = (0..NOISE_BYTES / 8).flat_map(|_| rng.next().to_le_bytes()).collect();
        let keys = KEYS as usize;
        Self { protocol, seed, written: vec![0; keys], there: vec![false; keys], noise }
    }

    fn value(&self, key: usize) -> &[u8] {
        let mut rng = Rng::new(!self.seed, (key as u64) << 32 | u64::from(self.written[key]));
        let length = rng.size().min(MOST_BYTES);
        let start = rng.below((NOISE_BYTES - length) as u32) as usize;
        &self.noise[start..start + length]
    }

    fn set(&self, key: usize, name: &str, request: &mut Vec<u8>, answer: &mut Vec<u8>) {
        let value = self.value(key);
        match self.protocol {
            Protocol::Redis => {
                redis_command(request, &[b"SET", name.as_bytes(), value]);
                answer.extend_from_slice(b"+OK\r\n");
            }
            Protocol::Memcached => {
                put(request, format_args!("set {name} 0 0 {}\r\n", value.len()));
                request.extend_from_slice(value);
                request.extend_from_slice(b"\r\n");
                answer.extend_from_slice(b"STORED\r\n");
            }
        }
    }

    fn get(&self, key: usize, name: &str, request: &mut Vec<u8>, answer: &mut Vec<u8>) {
        let value = self.there[key].then(|| self.value(key));
        match (self.protocol, value) {
            (Protocol::Redis, Some(value)) => redis_string(answer, value),
            (Protocol::Redis, None) => answer.extend_from_slice(b"$-1\r\n"),
            (Protocol::Memcached, Some(value)) => {
                put(answer, format_args!("VALUE {name} 0 {}\r\n", value.len()));
                answer.extend_from_slice(value);
                answer.extend_from_slice(b"\r\nEND\r\n");
            }
            (Protocol::Memcached, None) => answer.extend_from_slice(b"END\r\n"),
        }
        match self.protocol {
            Protocol::Redis => redis_command(request, &[b"GET", name.as_bytes()]),
            Protocol::Memcached => put(request, format_args!("get {name}\r\n")),
        }
    }

    fn delete(&self, key: usize, name: &str, request: &mut Vec<u8>, answer: &mut Vec<u8>) {
        match self.protocol {
            Protocol::Redis => {
                redis_command(request, &[b"DEL", name.as_bytes()]);
                redis_integer(answer, usize::from(self.there[key]));
            }
            Protocol::Memcached => {
                put(request, format_args!("delete {name}\r\n"));
                let said: &[u8] = if self.there[key] { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" };
                answer.extend_from_slice(said);
            }
        }
    }
}

impl Dialogue for Values {
    fn next(&mut self, number: u64, request: &mut Vec<u8>, answer: &mut Vec<u8>) {
        let mut rng = Rng::new(self.seed, number);
        let key = rng.below(KEYS) as usize;
        let name = format!("key:{key}");
        match rng.below(10) {
            0..5 => {
                self.written[key] += 1;
                self.there[key] = true;
                self.set(key, &name, request, answer);
            }
            5..8 => self.get(key, &name, request, answer),
            _ => {
                self.delete(key, &name, request, answer);
                self.there[key] = false;
            }
        }
    }

    /// memcached also counts keys that it has not dropped yet.
    fn last(&mut self, request: &mut Vec<u8>, answer: &mut Vec<u8>) {
        if self.protocol == Protocol::Redis {
            redis_command(request, &[b"DBSIZE"]);
            redis_integer(answer, self.there.iter().filter(|there| **there).count());
        }
    }

    fn farewell(&self) -> &'static [u8] {
        match self.protocol {
            Protocol::Redis => REDIS_FAREWELL,
            Protocol::Memcached => b"shutdown\r\n",
        }
    }
}
