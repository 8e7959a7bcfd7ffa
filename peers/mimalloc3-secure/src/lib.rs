//! The archive for `mimalloc3-secure.so`: as the peer `mimalloc3`, with its secure mode (feature
//! `secure`: `MI_SECURE=4`).

use libmimalloc_sys as _;
