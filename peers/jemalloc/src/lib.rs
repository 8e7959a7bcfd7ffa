//! jemalloc (crate `tikv-jemalloc-sys` with its names unprefixed, so that it defines malloc and its family itself and
//! reads `MALLOC_CONF`).
//!
//! **What.** The archive that `jemalloc.so` is linked from; nothing of ours is in it.

use tikv_jemalloc_sys as _;
