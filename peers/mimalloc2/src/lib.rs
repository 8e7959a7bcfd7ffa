//! mimalloc, version 2 (crate `libmimalloc-sys` with `v2` and `override`, so that it defines malloc and its family itself).
//!
//! **What.** The archive that `mimalloc2.so` is linked from; nothing of ours is in it.

use libmimalloc_sys as _;
