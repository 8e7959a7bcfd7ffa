mod heaps;
mod huge_table;
pub(crate) mod world;
