mod caches;
mod complete;
mod heaps;
mod huge_table;
mod idle;
mod limits;
mod morphs;
pub(crate) mod virtual_process;
pub(crate) mod world;
