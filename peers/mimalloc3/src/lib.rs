//! The archive for `mimalloc3.so`: mimalloc 3 (crate `libmimalloc-sys` with `override`).

use libmimalloc_sys as _;
