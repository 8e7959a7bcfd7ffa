//! The continued-fraction method.
//!
//! Each step of the expansion of √N yields an A whose square leaves a small ±Q modulo N. A Q that
//! splits into small primes is a relation. Relations whose product is a square give X² = Y² modulo
//! N; often X − Y shares a factor with N. They are in echelon form over the field of two elements:
//! a row's pivot is its highest prime of odd exponent.
//!
//! **From.** Morrison and Brillhart (1975), with one large prime a relation, and the early abort of
//! Pomerance and Wagstaff (1983).

use num_bigint::BigUint as Num;
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};
use std::collections::{BTreeMap, BTreeSet};

/// Primes, with −1 as the first.
const BASE: usize = 220;
/// After this many primes, a Q with more bits is dropped.
const ABORT_AFTER: usize = 40;
const ABORT_BITS: u64 = 14;
/// The rest of Q, by the base's largest.
const LARGE: u64 = 200;

/// The root's square is the product of the primes, modulo N.
#[derive(Clone)]
struct Relation {
    root: Num,
    primes: Vec<u16>,
    /// Their squares divide the product.
    squares: Vec<u64>,
}

struct Row {
    odd: BTreeSet<u16>,
    members: BTreeSet<u32>,
}

pub struct Search<'a> {
    n: &'a Num,
    base: Vec<u32>,
    relations: Vec<Relation>,
    /// By pivot.
    rows: BTreeMap<u16, Row>,
    partial: BTreeMap<u64, Relation>,
    steps: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Factor(Num),
    Period,
    Steps,
}

impl<'a> Search<'a> {
    /// Of an odd number, neither a prime nor a square.
    pub fn new(n: &'a Num) -> Self {
        Self { n, base: base(n), relations: Vec::new(), rows: BTreeMap::new(), partial: BTreeMap::new(), steps: 0 }
    }

    pub fn run(&mut self, allowed: &mut u64) -> End {
        let root = self.n.sqrt();
        let bound = root.bits() + 1;
        let (mut p, mut q, mut q_last) = (Num::ZERO, Num::one(), self.n.clone());
        let (mut a, mut a_last) = (root.clone(), Num::one());
        let mut digit = root.clone();
        while *allowed > 0 {
            *allowed -= 1;
            self.steps += 1;
            let p_next = &digit * &q - &p;
            let q_next =
                if self.steps == 1 { self.n - &p_next * &p_next } else { q_last + &digit * &p - &digit * &p_next };
            (p, q_last, q) = (p_next, q, q_next);
            if q.is_one() {
                return End::Period;
            }
            if let Some((primes, rest)) = self.split(&q, self.steps % 2 == 1, bound) {
                let relation = Relation { root: a.clone(), primes, squares: Vec::new() };
                if let Some(factor) = self.found(relation, rest) {
                    return End::Factor(factor);
                }
            }
            digit = (&root + &p) / &q;
            let a_next = (&digit * &a + &a_last) % self.n;
            (a_last, a) = (a, a_next);
        }
        End::Steps
    }

    /// With the remaining large prime or 1.
    fn split(&self, q: &Num, negative: bool, bound: u64) -> Option<(Vec<u16>, u64)> {
        let mut primes = Vec::new();
        if negative {
            primes.push(0);
        }
        let mut left = q.clone();
        for (i, prime) in self.base.iter().enumerate().skip(1) {
            if i == ABORT_AFTER && left.bits() + ABORT_BITS > bound {
                return None;
            }
            while (&left % *prime).is_zero() {
                primes.push(i as u16);
                left = &left / *prime;
            }
        }
        let largest = u64::from(*self.base.last()?);
        left.to_u64().filter(|rest| *rest <= largest * LARGE).map(|rest| (primes, rest))
    }

    fn found(&mut self, relation: Relation, rest: u64) -> Option<Num> {
        if rest == 1 {
            return self.reduce(relation);
        }
        let Some(other) = self.partial.get(&rest) else {
            self.partial.insert(rest, relation);
            return None;
        };
        let both = Relation {
            root: &other.root * &relation.root % self.n,
            primes: other.primes.iter().chain(&relation.primes).copied().collect(),
            squares: vec![rest],
        };
        self.reduce(both)
    }

    fn reduce(&mut self, relation: Relation) -> Option<Num> {
        let mut row = Row { odd: BTreeSet::new(), members: BTreeSet::from([self.relations.len() as u32]) };
        for prime in &relation.primes {
            if !row.odd.remove(prime) {
                row.odd.insert(*prime);
            }
        }
        self.relations.push(relation);
        while let Some(pivot) = row.odd.last().copied() {
            let Some(other) = self.rows.get(&pivot) else {
                self.rows.insert(pivot, row);
                return None;
            };
            row.odd = &row.odd ^ &other.odd;
            row.members = &row.members ^ &other.members;
        }
        self.square(&row.members)
    }

    fn square(&self, members: &BTreeSet<u32>) -> Option<Num> {
        let (mut x, mut y) = (Num::one(), Num::one());
        let mut counts = vec![0u32; self.base.len()];
        for relation in members.iter().map(|member| &self.relations[*member as usize]) {
            x = x * &relation.root % self.n;
            relation.primes.iter().for_each(|prime| counts[usize::from(*prime)] += 1);
            for large in &relation.squares {
                y = y * *large % self.n;
            }
        }
        for (prime, count) in self.base.iter().zip(counts).skip(1) {
            y = y * Num::from(*prime).pow(count / 2) % self.n;
        }
        let difference = if x < y { y - x } else { x - y };
        let factor = self.n.gcd(&difference);
        (factor != *self.n && !factor.is_one()).then_some(factor)
    }

    pub fn digest(&self) -> u64 {
        let all = self.relations.iter().chain(self.partial.values());
        all.fold(self.steps, |sum, relation| {
            let primes = relation.primes.iter().fold(0u64, |sum, prime| sum * 3 + u64::from(*prime) % 3);
            sum.wrapping_mul(31).wrapping_add(relation.root.iter_u64_digits().fold(primes, u64::wrapping_add))
        })
    }
}

/// N is a square modulo each: no other prime divides any Q.
fn base(n: &Num) -> Vec<u32> {
    let mut base = vec![1, 2];
    let mut candidate = 3;
    while base.len() < BASE {
        let is_prime = (3..).step_by(2).take_while(|d| d * d <= candidate).all(|d| candidate % d != 0);
        if is_prime {
            let euler = n.modpow(&(candidate / 2).into(), &candidate.into());
            if euler.is_zero() || euler.is_one() {
                base.push(candidate);
            }
        }
        candidate += 2;
    }
    base
}

#[cfg(test)]
mod tests;
