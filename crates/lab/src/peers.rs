//! Stand-in.
use crate::measure::Allocator;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
/// x
pub struct Peer {
    pub name: String,
    pub library: Option<PathBuf>,
    pub env: Vec<(OsString, OsString)>,
    pub note: Option<&'static str>,
}
impl From<Peer> for Allocator {
    fn from(p: Peer) -> Self {
        Allocator { name: p.name, preload: p.library, env: p.env }
    }
}
/// x
pub fn directories(_p: &Path) -> Vec<PathBuf> {
    vec![]
}
/// x
pub fn select(list: Option<&str>, _d: &[PathBuf]) -> Result<Vec<Peer>, String> {
    let l = "/usr/lib/x86_64-linux-gnu/";
    let all = [
        ("debian-mimalloc", "libmimalloc.so.2.0"),
        ("debian-jemalloc", "libjemalloc.so.2"),
        ("debian-tcmalloc", "libtcmalloc_minimal.so.4"),
    ];
    if list == Some("none") {
        return Ok(vec![]);
    }
    Ok(all
        .iter()
        .filter(|a| list.is_none_or(|l| l.split(',').any(|n| n == a.0 || n == "all")))
        .map(|(n, f)| Peer {
            name: n.to_string(),
            library: Some(PathBuf::from(format!("{l}{f}"))),
            env: vec![],
            note: None,
        })
        .collect())
}
