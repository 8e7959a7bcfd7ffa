//! Which `Host` a request may name. A page of another site can let its name point to this machine
//! (DNS rebinding); then the browser sends that name.
//!
//! ```text
//! loopback alone   localhost, 127.0.0.0/8, [::1], and names by --host
//! other addresses  these, every numeric address, the machine's name, and names by --host
//! ```
//! Ports may differ: a tunnel has another one.

use std::net::{IpAddr, SocketAddr};

#[derive(Clone, Debug)]
pub struct Hosts {
    is_loopback: bool,
    names: Vec<String>,
}

impl Hosts {
    pub fn new(listen: SocketAddr, more: &[String]) -> Self {
        let is_loopback = listen.ip().is_loopback();
        let mut names: Vec<String> = more.iter().map(|name| name.to_ascii_lowercase()).collect();
        names.push("localhost".to_owned());
        if !is_loopback {
            names.push(machine().to_ascii_lowercase());
        }
        Self { is_loopback, names }
    }

    pub fn allows(&self, host: &str) -> bool {
        let name = name_of(host).to_ascii_lowercase();
        let address: Option<IpAddr> = name.parse().ok();
        address.is_some_and(|ip| !self.is_loopback || ip.is_loopback()) || self.names.contains(&name)
    }
}

/// Without the port and an address's brackets.
fn name_of(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name).trim_end_matches('.')
}

pub fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
