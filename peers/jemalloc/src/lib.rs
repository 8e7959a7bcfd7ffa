//! The archive for `jemalloc.so`: crate `tikv-jemalloc-sys` with unprefixed names.

use tikv_jemalloc_sys as _;
