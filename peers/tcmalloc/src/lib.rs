//! The archive for `tcmalloc.so`: Google's TCMalloc (crate `libtcmalloc-sys`, pages of 8 KiB).
//!
//! **What.** `names.ld` gives its functions their C and C++ names, without a call in between. The
//! crate's TCMalloc asks for hugepages, unlike Google's; with `disable_madv_hugepage_by_var`,
//! `TCMALLOC_DISABLE_MADV_HUGEPAGE=1` restores Google's behaviour.

use libtcmalloc_sys as _;
