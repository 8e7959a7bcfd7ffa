//! The archive for `mimalloc3.so`: mimalloc 3 (crate `libmimalloc-sys` with `override`, so that it
//! defines malloc and its family).

use libmimalloc_sys as _;
