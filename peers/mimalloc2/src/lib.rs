//! The archive for `mimalloc2.so`: mimalloc 2 (crate `libmimalloc-sys` with `v2` and `override`, so
//! that it defines malloc and its family).

use libmimalloc_sys as _;
