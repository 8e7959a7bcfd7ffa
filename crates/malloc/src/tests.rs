mod heaps;
mod huge_table;
