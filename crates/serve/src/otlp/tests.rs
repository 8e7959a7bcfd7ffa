use super::*;
use crate::testing::process;

#[test]
fn a_collector_s_address_gets_the_path_unless_it_has_one() {
    assert_eq!(address("http://here:4318").unwrap(), "http://here:4318/v1/metrics");
    assert_eq!(address("http://here:4318/").unwrap(), "http://here:4318/v1/metrics");
    assert_eq!(address("http://[::1]:4318/otlp/v1/metrics").unwrap(), "http://[::1]:4318/otlp/v1/metrics");
    for wrong in
        ["", "here:4318", "https://here", "http://", "http://:4318", "http:///v1", "http://a@b/", "http://a b/"]
    {
        assert!(address(wrong).unwrap_err().contains("http://127.0.0.1:4318"), "{wrong}");
    }
}

#[test]
fn a_counter_is_a_sum_since_the_start_and_the_rest_are_gauges() {
    let pusher = Pusher::new("http://x".to_owned(), Some("b".to_owned()));
    let body = pusher.body(&[process(7, "one"), process(8, "two")]);
    let resources = body["resourceMetrics"].as_array().unwrap();
    assert_eq!(resources.len(), 2);
    let metrics = resources[1]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let metric = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
    assert_eq!(metric("craton.rss_bytes")["gauge"]["dataPoints"][0]["asInt"], "20971520");
    assert_eq!((&metric("craton.rss_bytes")["unit"], &metric("craton.refills")["unit"]), (&json!("By"), &json!("1")));
    assert_eq!(metric("craton.refills")["sum"]["isMonotonic"], true);
    assert!(metric("craton.refills")["sum"]["dataPoints"][0]["startTimeUnixNano"].is_string());
    assert_eq!(metric("craton.ledger_bytes")["gauge"]["dataPoints"].as_array().unwrap().len(), 20);
}

#[test]
fn a_collector_that_is_away_is_reported_once() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", taken.local_addr().unwrap());
    drop(taken);
    let mut pusher = Pusher::new(url, None);
    let all = [process(7, "one")];
    assert!(pusher.push(&[]).is_none());
    assert!(pusher.push(&all).unwrap().contains("does not take the metrics"));
    assert!(pusher.push(&all).is_none());
}
