use super::*;

#[test]
fn ratios_are_of_servers_with_the_same_promise() {
    let speed = |server, per_s| speed_row(server, 16, &[Ok(Speed { per_s, written_bytes: 100.0 })]).expect("a round");
    let rows = [
        speed(Server::CratonAlways, 300_000.0),
        speed(Server::RedisAlways, 100_000.0),
        restart_row(Server::CratonAlways, Ok((10, vec![2.0, 1.0, 3.0]))),
        restart_row(Server::RedisAlways, Err("it is gone".to_owned())),
    ];
    assert!(rows[2].num("restart_ms") == 2.0 && rows[2].int("keys") == 10 && !rows[3].is_ok());
    let ratios = ratios(&rows);
    let names: Vec<&str> = ratios.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["set-16_time_craton-kv-always_vs_redis-always", "set-16_written_craton-kv-always_vs_redis-always"]
    );
    assert!((ratios[names[0]] - 1.0 / 3.0).abs() < 1e-6);
}
