//! The archive for `mimalloc2.so`: mimalloc 2 (crate `libmimalloc-sys` with `v2` and `override`).

use libmimalloc_sys as _;
