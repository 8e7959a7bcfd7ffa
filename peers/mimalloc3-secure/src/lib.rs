//! The archive for `mimalloc3-secure.so`: `mimalloc3` with feature `secure` (`MI_SECURE=4`).

use libmimalloc_sys as _;
