//! mimalloc, version 3, with its secure mode (feature `secure`: `MI_SECURE=4`); else as the peer `mimalloc3`.
//!
//! **What.** The archive that `mimalloc3-secure.so` is linked from; nothing of ours is in it.

use libmimalloc_sys as _;
