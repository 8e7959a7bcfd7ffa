use super::*;

fn hosts(listen: &str, more: &[&str]) -> Hosts {
    let more: Vec<String> = more.iter().map(|name| (*name).to_owned()).collect();
    Hosts::new(listen.parse().unwrap(), &more)
}

#[test]
fn loopback_answers_its_names_alone() {
    let hosts = hosts("127.0.0.1:4327", &[]);
    for host in ["localhost", "LOCALHOST:9", "localhost.", "127.0.0.1:4327", "127.1.2.3", "[::1]:4327", "[::1]"] {
        assert!(hosts.allows(host), "{host}");
    }
    let machine = machine();
    for host in ["", "evil.example", "evil.example:4327", "10.0.0.1", "localhost.evil.example", "[::2]", "[", &machine]
    {
        assert!(!hosts.allows(host), "{host}");
    }
}

#[test]
fn other_addresses_answer_numbers_and_names_that_were_given() {
    let hosts = hosts("0.0.0.0:80", &["Heap.example"]);
    for host in ["heap.example:80", "10.0.0.1:80", "[fe80::1]:80", "localhost", &machine()] {
        assert!(hosts.allows(host), "{host}");
    }
    assert!(!hosts.allows("evil.example"));
}
