//! The loads, a file each.

pub mod dbmstest;
pub mod fptree;
pub mod fragbench;
pub mod growth;
pub mod larson;
pub mod list;
pub mod log_gc;
pub mod prod_con;
pub mod publish;
pub mod shbench;
pub mod threadtest;
