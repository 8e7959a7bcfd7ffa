//! The workloads: small programs that run on any preloaded allocator, with a fixed amount of work.
//!
//! The result is a checksum over the data in memory, of the [`Load`] alone. The full load takes
//! about a second on glibc and two processors.

mod alloc_test;
pub mod arguments;
mod barnes;
mod block;
mod cfrac;
pub(crate) mod crew;
mod espresso;
mod false_sharing;
pub(crate) mod fragbench;
mod glibc_simple;
mod glibc_thread;
mod interpreter;
mod json_dom;
mod larson;
mod load;
mod lru_cache;
mod malloc_large;
mod mleak;
mod mstress;
mod prod_con;
mod rptest;
mod server;
mod shbench;
mod threadtest;

pub use load::{FULL, Load, QUICK, SEED};

pub struct Workload {
    pub name: &'static str,
    pub about: &'static str,
    pub from: &'static str,
    pub threads: usize,
    pub run: fn(&Load) -> u64,
    /// Of the quick and the full load.
    pub known: [u64; 2],
}

impl Workload {
    pub fn load(&self, percent: u64) -> Load {
        Load { threads: self.threads, percent, seed: SEED }
    }

    pub fn expected(&self, load: &Load) -> Option<u64> {
        let known = [self.load(QUICK), self.load(FULL)].iter().position(|standard| standard == load);
        known.map(|i| self.known[i])
    }
}

macro_rules! workloads {
    ($($name:literal by $from:literal on $threads:literal: $about:literal, $run:expr => $known:expr;)*) => {
        pub const WORKLOADS: &[Workload] = &[$(Workload {
            name: $name,
            about: $about,
            from: $from,
            threads: $threads,
            run: $run,
            known: $known,
        }),*];
    };
}

// Name; source; threads; description; function, checksums.
workloads! {
    "alloc-test" by "OLogN alloc-test, mimalloc-bench" on 1:
        "random slots of a large array are filled with blocks to 1 KiB and emptied again",
        alloc_test::run => [0x0fdb_4355_c276_b3cd, 0xf024_a32c_b779_e31a];
    "barnes" by "Barnes and Hut 1986, SPLASH-2, Hoard, mimalloc-bench" on 1:
        "an octree of boxed nodes over 20,000 bodies, built and dropped in each step",
        barnes::run => [0x9db5_e3af_dbf4_6e6d, 0x0fc8_460c_28ae_d78f];
    "cache-scratch" by "Hoard (ASPLOS 2000) §7" on 2:
        "as cache-thrash, after freeing objects that one thread had allocated (passive false sharing)",
        false_sharing::scratch => [0x9ae2_9331_6efd_d450, 0x4046_b720_786e_195e];
    "cache-thrash" by "Hoard (ASPLOS 2000) §7" on 2:
        "each thread writes to an 8 B object of its own many times (active false sharing)",
        false_sharing::thrash => [0x9ae2_9331_6efd_d44f, 0x4046_b720_786e_195d];
    "cfrac" by "Zorn and Grunwald 1992, Hoard, mimalloc-bench" on 1:
        "splits numbers of 35 digits by continued fractions, with tiny short-lived big numbers",
        cfrac::run => [0x40d5_d89d_9e80_d574, 0x75a1_0f6b_5834_d660];
    "empirical" by "TEMERAIRE §6.1" on 2:
        "births and deaths after a distribution of sizes, 64 MiB live; a tenth of the frees on the next thread",
        crate::empirical::run => [0x30ef_b503_5da4_d498, 0x814c_8297_33aa_471e];
    "espresso" by "Zorn and Grunwald 1992, mimalloc-bench" on 1:
        "minimizes random two-level logic, by lists of cubes that are tiny objects",
        espresso::run => [0x9437_6acb_3d60_1523, 0x3861_1150_cc41_9ada];
    "fragbench-w1" by "NVAlloc (ASPLOS 2022) table 1" on 1:
        "objects of 100 B, of which 90 % are freed, then of 130 B",
        |load| fragbench::run(&fragbench::ROWS[0], load).checksum => [0x3205_1ee8_fbcf_4a5e, 0xfd19_731d_27bb_809b];
    "fragbench-w2" by "NVAlloc (ASPLOS 2022) table 1" on 1:
        "objects of 100 to 150 B, none of them freed, then of 200 to 250 B",
        |load| fragbench::run(&fragbench::ROWS[1], load).checksum => [0x2da4_abf8_601e_99e3, 0xb91f_fa02_aba5_cb37];
    "fragbench-w3" by "NVAlloc (ASPLOS 2022) table 1" on 1:
        "objects of 100 to 150 B, of which 90 % are freed, then of 200 to 250 B",
        |load| fragbench::run(&fragbench::ROWS[2], load).checksum => [0x239d_0405_ecfe_f263, 0x05f9_8ec1_598f_4319];
    "fragbench-w4" by "NVAlloc (ASPLOS 2022) table 1" on 1:
        "objects of 100 to 200 B, of which 50 % are freed, then of 1000 to 2000 B",
        |load| fragbench::run(&fragbench::ROWS[3], load).checksum => [0xc814_67ea_55dd_e245, 0x2832_233f_1930_5ea3];
    "glibc-simple" by "glibc bench-malloc-simple" on 1:
        "batches of blocks of one size, freed in several orders, for several sizes",
        glibc_simple::run => [0xc7f0_c01f_2003_2081, 0x73e6_0f18_eb8e_8c6b];
    "glibc-thread" by "glibc bench-malloc-thread" on 2:
        "each thread replaces blocks at random in a working set; sizes of a power law, 4 B to 32 KiB",
        glibc_thread::run => [0xaf89_721b_b0af_ba7f, 0x2fcd_c960_6e66_9364];
    "interpreter" by "Zorn and Grunwald 1992 (perl, gawk), Detlefs et al. 1994" on 1:
        "scripts with counted strings, lists and tables: split, count, sort, join, replace",
        interpreter::run => [0xed07_0931_f1ba_c59e, 0x8f04_64e7_1ffd_efe8];
    "json-dom" by "services with a document model" on 1:
        "JSON documents of 8 to 8000 nodes are made, written, parsed, edited and kept",
        json_dom::run => [0x4308_4199_f22d_2194, 0x05ab_f05d_b877_edc7];
    "larson-large" by "Larson and Krishnan 1998, sizes of NVAlloc §6.1" on 4:
        "blocks of 32 to 512 KiB at random replaced; slots are inherited by new threads",
        larson::large => [0xb05a_2da9_cac2_17e9, 0x6758_4357_dbeb_c314];
    "larson-small" by "Larson and Krishnan 1998" on 4:
        "blocks of 8 to 1000 B at random replaced; slots are inherited by new threads",
        larson::small => [0x6eb2_67a2_79c3_d1d0, 0x30e5_271e_979a_6229];
    "lru-cache" by "value sizes that change, after RAMCloud (FAST 2014)" on 1:
        "a cache of 48 MiB, whose values' sizes drift between 32 B and 16 KiB",
        lru_cache::run => [0xea52_38a6_d041_6252, 0xc745_11d9_2889_b326];
    "malloc-large" by "mimalloc-bench malloc-large" on 1:
        "5 slots with blocks of 0.5 to 25 MiB, replaced at random, all written",
        malloc_large::run => [0x6f44_d650_8216_f67a, 0x92f8_81b3_c130_8ef3];
    "mleak" by "mimalloc-bench mleak" on 8:
        "short-lived threads in waves; objects that outlive their thread are freed by later ones",
        mleak::run => [0xf0e5_1311_9166_3b8e, 0xb37a_f163_7126_b2ab];
    "mstress" by "mimalloc test-stress" on 4:
        "threads of many rounds keep, free and swap objects through a shared array",
        mstress::run => [0x6fd8_c923_e13c_0d23, 0x5190_23b8_fb3b_8340];
    "prod-con" by "NVAlloc §6.1, Schneider et al. 2006" on 2:
        "pairs of threads: one allocates objects of 64 B, the other frees them",
        prod_con::prod_con => [0x790a_0520_d995_9949, 0xc664_0f1e_108b_725e];
    "rptest" by "rpmalloc-benchmark" on 4:
        "blocks of 16 B to 8 KiB, linear and exponential sizes, replaced in strides; sets go to the next thread",
        rptest::run => [0x8a7d_7ec5_7a59_3df4, 0xbb24_01a3_6018_bee0];
    "server" by "the mixture that server papers describe" on 2:
        "requests with lifetimes, a cache, sessions, bursts and a daily swing; some frees on the next thread",
        server::serve => [0x7188_3f7b_6a9e_cb7b, 0x9cd1_a25a_5486_7b98];
    "sh6" by "MicroQuill sh6bench" on 2:
        "batches of blocks of 1 to 1000 B, freed in several orders",
        shbench::sh6 => [0xfc06_6317_de7d_d949, 0xed9a_a279_7ceb_f3b8];
    "sh8" by "MicroQuill sh8bench" on 4:
        "the same, with a part of the blocks freed by other threads",
        shbench::sh8 => [0x9063_8ef1_29db_fd26, 0x02c8_5fb8_a1e0_80ae];
    "threadtest" by "Hoard (ASPLOS 2000) §7" on 2:
        "each thread allocates its share of 100,000 objects of 64 B and frees them, over and over",
        threadtest::run => [0xca7f_366e_60ff_4dc9, 0xb4c5_aee6_1be4_17c5];
    "xmalloc" by "Lever and Boreham 2000, xmalloc-test" on 4:
        "half of the threads allocate blocks, the other half free them",
        prod_con::xmalloc => [0xd2bf_0c2e_386a_c833, 0x6653_8d23_b947_f288];
}

pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}

#[cfg(test)]
mod tests;
