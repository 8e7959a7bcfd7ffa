mod heaps;
mod huge_table;
mod morphs;
