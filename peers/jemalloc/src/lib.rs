//! The archive for `jemalloc.so`: crate `tikv-jemalloc-sys` with unprefixed names, so that it
//! defines malloc and its family and reads `MALLOC_CONF`.

use tikv_jemalloc_sys as _;
