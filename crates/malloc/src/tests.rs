mod classes;
mod heaps;
mod huge_table;
