//! Instructions out of arbitrary bytes, and their interpreter.

use super::{Op, World};
use arbitrary::{Arbitrary, Unstructured};
use craton_base::{CollapseError, Geometry, Huge2M, Huge64K, HugePageId};
use craton_pages::{Breaking, HugeBacking};
use craton_sim::{Call, FaultRule, ThpMode};

const LONGEST: usize = 400;
const CAPACITIES: [u32; 3] = [5, 40, 640];

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Size {
    Few(u8),
    /// Sixteenths of a hugepage, and some pages.
    Parts(u8, i8),
    Hugepages(u8, i8),
    Any(u32),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Way {
    Never,
    Surplus,
    Always,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Which {
    Any,
    Reserve,
    Unback,
    Collapse,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Rule {
    Never,
    Nth(u8),
    Every(u8),
    From(u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Instruction {
    Alloc { size: Size, align_log: u8, dense: bool },
    Slab { log: u8 },
    Free { nth: u16 },
    FreeMany { nth: u16, count: u8 },
    Resize { nth: u16, size: Size },
    Release { size: Size, way: Way },
    ReleaseAll(Way),
    Back { from: u16 },
    Wait { ms: u16 },
    Tick,
    Rate { log: u8 },
    Regions(bool),
    BeginCollapse,
    EndCollapse { error: u8, ms: u8 },
    BeginRefill,
    Clear { fails: bool },
    Helped(bool),
    RecordSlow,
    Misuse { page: u32, len: u16 },
    MisuseOf { nth: u16, first: i8, len: i8 },
    Refuse { which: Which, rule: Rule },
}

#[derive(Debug)]
pub struct Program {
    capacity: u32,
    thp: ThpMode,
    from: u32,
    tiny: bool,
    pub instructions: Vec<Instruction>,
}

impl Size {
    fn pages<G: Geometry>(self) -> u32 {
        match self {
            Self::Few(pages) => pages.into(),
            Self::Parts(parts, off) => (u32::from(parts % 17) * G::PAGES / 16).saturating_add_signed(off.into()),
            Self::Hugepages(count, off) => (u32::from(count % 8) * G::PAGES).saturating_add_signed(i32::from(off % 4)),
            Self::Any(pages) => pages,
        }
    }
}

impl Way {
    fn breaking(self) -> Breaking {
        match self {
            Self::Never => Breaking::Never,
            Self::Surplus => Breaking::Surplus,
            Self::Always => Breaking::Always,
        }
    }
}

impl<'a> Arbitrary<'a> for Program {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let capacity = *bytes.choose(&CAPACITIES)?;
        let thp = *bytes.choose(&[ThpMode::Always, ThpMode::Madvise, ThpMode::Never])?;
        let from = *bytes.choose(&[0, 1, 8, u32::MAX])?;
        let tiny = bytes.arbitrary()?;
        let mut instructions = Vec::new();
        while !bytes.is_empty() && instructions.len() < LONGEST {
            instructions.push(bytes.arbitrary()?);
        }
        Ok(Self { capacity, thp, from, tiny, instructions })
    }
}

impl Program {
    pub fn run(&self) {
        if self.tiny { self.run_on::<Huge64K>() } else { self.run_on::<Huge2M>() }
    }

    fn run_on<G: Geometry>(&self) {
        let mut world = World::<G>::new(self.capacity, self.thp, HugeBacking { from: HugePageId(self.from) });
        for instruction in &self.instructions {
            world.execute(*instruction);
            world.check();
        }
        world.faults.set(FaultRule::Never);
        world.drain();
    }
}

impl<G: Geometry> World<G> {
    fn execute(&mut self, instruction: Instruction) {
        let op = match instruction {
            // The checks in between allow no such requests.
            Instruction::Alloc { size, align_log, dense } => {
                Op::Alloc { pages: size.pages::<G>().max(1), align: 1 << (align_log % 14), dense }
            }
            Instruction::Slab { log } => Op::Alloc { pages: 1 << (log % 4), align: 1 << (log % 4), dense: true },
            Instruction::Free { nth } => Op::Free { nth: nth.into() },
            Instruction::FreeMany { nth, count } => {
                return (0..count)
                    .for_each(|_| self.step(Op::Free { nth: nth.into() }).expect("a free is not refused"));
            }
            Instruction::Resize { nth, size } => Op::Resize { nth: nth.into(), pages: size.pages::<G>().max(1) },
            Instruction::Release { size, way } => Op::Release { pages: size.pages::<G>(), breaking: way.breaking() },
            Instruction::ReleaseAll(way) => Op::ReleaseAll(way.breaking()),
            Instruction::Back { from } => Op::Back(HugeBacking { from: HugePageId(from.into()) }),
            Instruction::Wait { ms } => Op::Wait { ns: u64::from(ms) * 1_000_000 },
            Instruction::Tick => Op::Tick,
            Instruction::Rate { log } => Op::Rate { bytes_per_s: 1 << (log % 64) },
            Instruction::Regions(allowed) => Op::Regions(allowed),
            Instruction::BeginCollapse => Op::BeginCollapse,
            Instruction::EndCollapse { error, ms } => {
                let error = match error % 8 {
                    0 => Some(CollapseError::NoMemory),
                    1 => Some(CollapseError::Busy),
                    2 => Some(CollapseError::Again),
                    3 => Some(CollapseError::Unsupported),
                    _ => None,
                };
                Op::EndCollapse { error, took_ns: u64::from(ms) * 1_000_000 }
            }
            Instruction::BeginRefill => Op::BeginRefill,
            Instruction::Clear { fails } => Op::Clear { fails },
            Instruction::Helped(helped) => Op::Helped(helped),
            Instruction::RecordSlow => Op::RecordSlow,
            Instruction::Misuse { page, len } => Op::Misuse { page, len: len.into() },
            Instruction::MisuseOf { nth, first, len } => {
                let Some(span) = self.out.get(usize::from(nth) % self.out.len().max(1)) else { return };
                Op::Misuse {
                    page: span.first.0.saturating_add_signed(first.into()),
                    len: span.len.0.saturating_add_signed(len.into()),
                }
            }
            Instruction::Refuse { which, rule } => return self.refuse(which, rule),
        };
        let (before, refused_below) = (self.snapshot(), self.faults.refused());
        if self.step(op).is_ok() {
            return;
        }
        assert_eq!(self.snapshot(), before, "{op:?} was refused, and yet changed something");
        if let Op::Alloc { pages, align, .. } = op {
            let faulty = self.faults.refused() > refused_below;
            assert!(faulty || self.refusal_is_right(pages, align), "{op:?} was refused without need");
        }
    }

    fn refuse(&mut self, which: Which, rule: Rule) {
        let rule = match rule {
            Rule::Never => FaultRule::Never,
            Rule::Nth(n) => FaultRule::Nth(u64::from(n % 16) + 1),
            Rule::Every(n) => FaultRule::Every(u64::from(n % 8) + 1),
            Rule::From(n) => FaultRule::From(u64::from(n % 16) + 1),
        };
        self.faultless = false;
        match which {
            Which::Any => self.faults.set(rule),
            Which::Reserve => self.faults.set_only(Call::Reserve, rule),
            Which::Unback => self.faults.set_only(Call::Unback, rule),
            Which::Collapse => self.faults.set_only(Call::Collapse, rule),
        }
    }
}
