//! The archive for `tcmalloc.so`: Google's TCMalloc (crate `libtcmalloc-sys`, pages of 8 KiB). The
//! crate's asks for hugepages, unlike Google's; `TCMALLOC_DISABLE_MADV_HUGEPAGE=1` restores that.

use libtcmalloc_sys as _;
