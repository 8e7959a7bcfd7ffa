use super::*;

fn is_near(found: Option<f64>, wanted: f64) -> bool {
    found.is_some_and(|found| (found - wanted).abs() < wanted * 1e-9)
}

#[test]
fn redis_benchmark_prints_a_summary_for_each_test() {
    let text = "====== SET ======\n  100000 requests completed in 0.90 seconds\n\nSummary:\n  \
                throughput summary: 100000.00 requests per second\n  latency summary (msec):\n          \
                avg       min       p50       p95       p99       max\n        \
                0.250     0.080     0.240     0.375     0.520     1.311\n\
                ====== GET ======\n  throughput summary: 200000.00 requests per second\n  latency summary (msec):\n  \
                avg       min       p50       p95       p99       max\n  \
                0.250     0.080     0.120     0.375     0.260     1.311\n";
    let results = of(text, &[]);
    assert!(is_near(results.operations_per_s, 150_000.0), "{results:?}");
    assert!(is_near(results.p50_s, 0.18e-3) && is_near(results.p99_s, 0.39e-3), "{results:?}");
    assert_eq!(results.p999_s, None);
}

#[test]
fn redis_benchmark_is_read_when_it_is_quiet_or_prints_csv() {
    let quiet =
        of("SET: rps=0.0 (overall: 0.0) avg_msec=-nan\rSET: 125000.00 requests per second, p50=0.207 msec\n", &[]);
    assert!(is_near(quiet.operations_per_s, 125_000.0) && is_near(quiet.p50_s, 0.207e-3), "{quiet:?}");
    let csv = of(
        "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\
         \"max_latency_ms\"\n\"SET\",\"50000.00\",\"0.500\",\"0.100\",\"0.400\",\"0.700\",\"0.900\",\"2.000\"\n",
        &[],
    );
    assert!(is_near(csv.operations_per_s, 50_000.0), "{csv:?}");
    assert!(is_near(csv.p50_s, 0.4e-3) && is_near(csv.p99_s, 0.9e-3), "{csv:?}");
}

#[test]
fn wrk_prints_latency_with_units() {
    let text = "Running 30s test @ http://127.0.0.1:8080/index.html\n  12 threads and 400 connections\n  \
                Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   635.91us    0.89ms  12.92ms   93.69%\n    \
                Req/Sec    56.20k     8.07k   62.00k    86.54%\n  Latency Distribution\n     50%  250.00us\n     \
                75%  491.00us\n     99%    5.80ms\n  22464657 requests in 30.00s, 17.76GB read\n\
                Requests/sec: 748868.53\nTransfer/sec:    606.33MB\n";
    let results = of(text, &[]);
    assert!(is_near(results.operations_per_s, 748_868.53), "{results:?}");
    assert!(is_near(results.p50_s, 0.25e-3) && is_near(results.p99_s, 5.8e-3), "{results:?}");
}

#[test]
fn pgbench_memtier_and_ab_are_read() {
    let pgbench = of("latency average = 0.9 ms\ntps = 1096.5 (without initial connection time)\n", &[]);
    assert!(is_near(pgbench.operations_per_s, 1096.5), "{pgbench:?}");
    let memtier = "Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   \
                   p99.9 Latency       KB/sec \nSets       10000.00          ---          ---         0.60        \
                   0.50         1.00         2.00      1000.00 \nTotals     110000.00         0.00    100000.00        \
                   0.61         0.55         1.10         2.20      5000.00 \n";
    let memtier = of(memtier, &[]);
    assert!(is_near(memtier.operations_per_s, 110_000.0), "{memtier:?}");
    assert!(is_near(memtier.p50_s, 0.55e-3) && is_near(memtier.p99_s, 1.1e-3), "{memtier:?}");
    assert!(is_near(memtier.p999_s, 2.2e-3), "{memtier:?}");
    let ab =
        of("Requests per second:    2345.67 [#/sec] (mean)\n  50%      4\n  99%     12\n 100%     20 (longest)\n", &[]);
    assert!(is_near(ab.operations_per_s, 2345.67), "{ab:?}");
    assert!(is_near(ab.p50_s, 4e-3) && is_near(ab.p99_s, 12e-3), "{ab:?}");
}

#[test]
fn a_pattern_reads_any_other_output() {
    let patterns = ["ops=^rate ([0-9,]+)", "p99=slow: ([0-9.]+) ms"].map(|text| Pattern::parse(text).unwrap());
    let results = of("warm\nrate 12,500\nslow: 3.5 ms\n", &patterns);
    assert!(is_near(results.operations_per_s, 12_500.0) && is_near(results.p99_s, 3.5e-3), "{results:?}");
    assert_eq!(of("nothing of the kind: 50% more", &[]), Results::default());
}

#[test]
fn a_wrong_pattern_is_named() {
    for (text, part) in [
        ("rps=([0-9]+)", "`rps` is no figure"),
        ("ops", "has no group"),
        ("ops=[0-9]+", "has no group"),
        ("ops=([0-9]+", "is no pattern"),
    ] {
        let error = Pattern::parse(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}
