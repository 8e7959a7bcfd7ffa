//! The allocators of a comparison. An environment that hides glibc's allocator is an error.

use crate::failure::Failure;
use crate::library;
use crate::options::{self, Setting};
use crate::place;
use craton_lab::measure::Allocator;
use craton_lab::peers;
use craton_lab::ratios::OURS;
use std::env;

pub struct Allocators {
    /// glibc's, Craton, peers: in the order of turns.
    pub list: Vec<Allocator>,
    pub notes: Vec<String>,
    /// Those notes that explain failed runs, and qualify no figure.
    pub faults: Vec<String>,
}

/// Without a list, all peers found.
pub fn find(list: Option<&str>, settings: &[Setting]) -> Result<Allocators, Failure> {
    let library = library::find()?;
    if env::var_os("LD_PRELOAD").is_some_and(|list| library::is_in(&list)) {
        let text = "LD_PRELOAD names libcraton.so, so that the runs on glibc would be on Craton too; unset it first";
        return Err(text.to_owned().into());
    }
    let own = place::own()?;
    let peers = peers::select(list, &peers::directories(&own), &library).map_err(Failure::Usage)?;
    let mut ours = Allocator::preloaded(OURS, library);
    let mut notes = Vec::new();
    if !settings.is_empty() {
        let all = options::merge(env::var_os(options::VARIABLE).as_deref(), settings);
        notes.push(format!("{OURS}: {}={}", options::VARIABLE, all.display()));
        ours.env.push((options::VARIABLE.into(), all));
    }
    let mut faults = Vec::new();
    for (peer, note) in peers.iter().filter_map(|peer| Some((peer, peer.note?))) {
        let line = format!("{}: {}", peer.name, note.text);
        if note.is_fault {
            faults.push(line.clone());
        }
        notes.push(line);
    }
    let mut all = vec![Allocator::glibc(), ours];
    all.extend(peers.into_iter().map(Allocator::from));
    Ok(Allocators { list: all, notes, faults })
}
