mod complete;
mod ground;
mod heaps;
mod huge_table;
mod idle;
mod limits;
mod morphs;
pub(crate) mod world;
