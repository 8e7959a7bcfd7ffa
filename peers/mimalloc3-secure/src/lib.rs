//! mimalloc, version 3 (crate `libmimalloc-sys` with `override`, so that it defines malloc and its family itself).
//!
//! **What.** The archive that `mimalloc3.so` is linked from; nothing of ours is in it.

use libmimalloc_sys as _;
