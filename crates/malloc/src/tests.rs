mod complete;
mod heaps;
mod huge_table;
mod limits;
mod morphs;
pub(crate) mod world;
