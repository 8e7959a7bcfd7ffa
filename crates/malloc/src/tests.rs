mod heaps;
mod huge_table;
mod limits;
pub(crate) mod world;
