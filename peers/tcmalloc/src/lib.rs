//! TCMalloc, Google's (crate `libtcmalloc-sys`, pages of 8 KiB).
//!
//! **What.** The archive that `tcmalloc.so` is linked from; its functions get their C and C++ names in `names.ld`, without
//! a call in between. The crate's TCMalloc asks for huge pages, which Google's own does not; with
//! `disable_madv_hugepage_by_var`, `TCMALLOC_DISABLE_MADV_HUGEPAGE=1` gives Google's behaviour back.

use libtcmalloc_sys as _;
