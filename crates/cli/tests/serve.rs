//! `craton serve`: the page's files, metrics and JSON, over a real connection.

use crate::common::{Place, Program, craton, said};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

/// As many 800-byte objects as fit into 40 MB, from one function; a large and a huge object.
pub const HOLDS: &str = "__attribute__((noinline)) void *keep(int n) { return memset(malloc(n), 1, n); }\n\
    int main(void) {\n\
        for (int i = 0; i < 50000; i++) keep(800);\n\
        keep(1 << 20); keep(40 << 20);\n\
        wait_here(); return 0;\n\
    }\n";

/// Ends when dropped.
pub struct Serving {
    child: Child,
    address: String,
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Serving {
    pub fn start(args: &[&str]) -> Self {
        let mut command = craton([&["serve", "--listen", "0", "--every", "0.1"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("http://").and_then(|rest| rest.split('/').next()).map(str::to_owned);
        let address = address.unwrap_or_else(|| {
            let mut why = String::new();
            child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            panic!("{args:?}: {line:?} {why}")
        });
        Self { child, address }
    }

    fn stop_and_go_on(&self) {
        let pid = self.child.id() as libc::pid_t;
        let status = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // The connection's thread waits again for what has not come.
        std::thread::sleep(Duration::from_millis(20));
        // SAFETY: the child is not waited for yet.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        while !status().contains(") T ") {
            std::thread::yield_now();
        }
        // SAFETY: as above.
        unsafe { libc::kill(pid, libc::SIGCONT) };
    }

    fn errors(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.child.stderr.take().unwrap())
    }

    fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{request:?}: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address))
    }

    fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// Asks until it is so: a minute at most, since other tests may keep all processors busy.
    fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..1200 {
            let value = self.json(path);
            if is_so(&value) {
                return value;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{path}: {} {}", self.get(path).body, self.get("/api/processes").body);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Name with labels, and value; checks the form of the text.
pub fn metrics(text: &str) -> Vec<(String, f64)> {
    let mut family = "";
    let mut all = Vec::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().unwrap();
            continue;
        }
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(name == family && ["gauge", "counter"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with(&format!("{family}{{")) && name.ends_with("\"}"), "{line} of {family}");
        all.push((name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}"))));
    }
    all
}

fn value(all: &[(String, f64)], family: &str, labels: &[&str]) -> f64 {
    let is_meant = |name: &String| name.starts_with(&format!("{family}{{")) && labels.iter().all(|l| name.contains(l));
    let found: Vec<_> = all.iter().filter(|(name, _)| is_meant(name)).collect();
    assert_eq!(found.len(), 1, "{family} {labels:?}: {found:?}");
    found[0].1
}

#[test]
fn metrics_of_a_process_sum_to_its_memory() {
    let place = Place::new("serve-metrics");
    let program = Program::start(&place, "holds", HOLDS);
    let pid = program.pid();
    let serving = Serving::start(&["--experiment", "new-limits", &pid]);
    let answer = serving.get("/metrics");
    assert!(answer.status == 200 && answer.head.contains("text/plain; version=0.0.4"), "{}", answer.head);
    let all = metrics(&answer.body);
    let process = [format!("pid=\"{pid}\""), "exe=\"holds\"".to_owned(), "experiment=\"new-limits\"".to_owned()];
    let labels: Vec<&str> = process.iter().map(String::as_str).collect();
    let rss = value(&all, "craton_rss_bytes", &labels);
    let ledger: f64 =
        all.iter().filter(|(name, _)| name.starts_with("craton_ledger_bytes{")).map(|(_, bytes)| bytes).sum();
    assert!((ledger - rss).abs() <= rss / 100.0, "{ledger} of {rss}");
    let live = value(&all, "craton_ledger_bytes", &["row=\"live_bytes\"", "part=\"heap\""]);
    assert!(live >= 50_000.0 * 816.0, "{live}");
    assert_eq!(value(&all, "craton_huge_allocs_total", &labels), 1.0);
    assert!(value(&all, "craton_class_live_objects", &["object_bytes=\"816\""]) >= 49_000.0);
    assert!(program.end());
}

#[test]
fn the_api_has_ledger_map_spans_and_profile() {
    let place = Place::new("serve-api");
    let program = Program::start_with(&place, "holds", HOLDS, &["profile=16K"]);
    let pid = program.pid();
    let serving = Serving::start(&[&pid]);
    let list = serving.json("/api/processes");
    assert_eq!(list["processes"][0]["pid"].as_u64().unwrap().to_string(), pid, "{list}");
    let of = |path: &str| format!("/api/processes/{pid}{path}");
    let one = serving.json(&of(""));
    let rows = |part: &str| one[part].as_array().unwrap().iter().map(|row| row["bytes"].as_u64().unwrap()).sum::<u64>();
    let rss = one["rss_bytes"].as_u64().unwrap();
    let sums: u64 = one["sums"].as_object().unwrap().values().map(|bytes| bytes.as_u64().unwrap()).sum();
    assert!(rss.abs_diff(rows("heap") + rows("rest")) <= rss / 100 && sums == rows("heap") + rows("rest"), "{one}");
    assert!(one["sentences"][0].as_str().unwrap().contains(" in objects"), "{one}");

    let history = serving.until(&of("/history"), |history| history["points"].as_array().unwrap().len() > 2);
    let columns = history["columns"].as_array().unwrap().len();
    assert!(history["points"].as_array().unwrap().iter().all(|point| point.as_array().unwrap().len() == columns));
    let last = history["points"].as_array().unwrap().last().unwrap()[0].as_u64().unwrap();
    let more = serving.json(&of(&format!("/history?since={last}")));
    assert!(more["points"].as_array().unwrap().iter().all(|point| point[0].as_u64().unwrap() > last), "{more}");

    let map = serving.json(&of("/map"));
    let cells: Vec<Vec<u64>> = serde_json::from_value(map["hugepages"].clone()).unwrap();
    let used: u64 = cells.iter().map(|cell| cell[1]).sum();
    assert!(used >= 50_000 * 816 + (1 << 20), "{map}");
    assert!(cells.iter().all(|cell| cell[1] <= 2 << 20 && cell[3] <= 2 << 20), "{map}");
    let places =
        ["dense", "sparse"].map(|name| map["places"].as_array().unwrap().iter().position(|p| p == name).unwrap());
    assert!(cells.iter().any(|cell| places.contains(&(cell[0] as usize))), "{map}");
    let most = (0..cells.len()).max_by_key(|i| cells[*i][1]).unwrap();
    let spans = serving.json(&of(&format!("/map/{most}")));
    let spans = spans["spans"].as_array().unwrap();
    let pages: u64 = spans.iter().map(|span| span["pages"].as_u64().unwrap()).sum();
    assert!(pages * 8192 == cells[most][1] && spans.iter().any(|span| span["object_bytes"] == 816), "{spans:?}");

    let profile = serving.json(&of("/profile"));
    let first = &profile["functions"][0];
    assert!(first["name"] == "keep" && first["bytes"].as_i64().unwrap() > 40 << 20, "{profile}");
    let tree = &profile["tree"];
    assert!(
        tree["v"].as_i64() == profile["bytes"].as_i64() && tree["c"][0]["v"].as_u64() <= tree["v"].as_u64(),
        "{tree}"
    );
    let captive = serving.json(&of("/profile?measure=captive"));
    assert!(captive["measure"] == "captive" && captive["objects"].as_u64().unwrap() > 0, "{captive}");
    assert!(program.end());
}

#[test]
fn a_profile_s_difference_has_what_came_between_two_moments() {
    let place = Place::new("serve-diff");
    let grows = "__attribute__((noinline)) void *early(void) { return memset(malloc(20 << 20), 1, 20 << 20); }\n\
        __attribute__((noinline)) void *late(void) { return memset(malloc(24 << 20), 1, 24 << 20); }\n\
        int main(void) { void *a = early(); wait_here(); late(); free(a); pause(); return 0; }\n";
    let program = Program::start(&place, "grows", grows);
    let pid = program.pid();
    let serving = Serving::start(&[&pid]);
    let of = |path: &str| format!("/api/processes/{pid}{path}");
    let before = serving.json(&of("/profile"));
    assert_eq!(before["functions"][0]["name"], "early", "{before}");
    let program = program.close_input();
    let at = before["at_ms"].as_u64().unwrap();
    let path = of(&format!("/profile?since={at}"));
    // First the new object comes, then the old one goes.
    let after = serving.until(&path, |answer| answer["functions"].as_array().unwrap().len() == 2);
    let of_function = |name: &str| {
        let all = after["functions"].as_array().unwrap();
        all.iter().find(|function| function["name"] == name).unwrap()["bytes"].as_i64().unwrap()
    };
    assert!(of_function("late") >= 24 << 20 && of_function("early") <= -(20 << 20), "{after}");
    assert!(after["moments"].as_array().unwrap().len() >= 2, "{after}");
    drop(program);
}

#[test]
fn under_audit_there_is_what_lives_and_nothing_else() {
    let place = Place::new("serve-audit");
    let program = Program::start_with(&place, "holds", HOLDS, &["debug=audit"]);
    let serving = Serving::start(&[&program.pid()]);
    let of = |query: &str| format!("/api/processes/{}/profile{query}", program.pid());
    let live = serving.json(&of(""));
    assert!(live["exact_objects"].as_u64().unwrap() >= 50_000, "{}", live["exact_objects"]);
    for measure in ["captive", "peak", "total", "short"] {
        let answer = serving.get(&of(&format!("?measure={measure}")));
        assert!(answer.status == 400 && answer.body.contains("debug=audit"), "{measure}: {}", answer.body);
        assert!(!answer.body.contains("0x"), "{measure}: {}", answer.body);
    }
    let captive = serving.get(&of("?measure=captive"));
    assert!(captive.body.contains("captive bytes do not exist under debug=audit"), "{}", captive.body);
    assert!(program.end());
}

#[test]
fn a_process_that_dies_keeps_its_last_numbers() {
    let place = Place::new("serve-dies");
    let (program, other) = (Program::start(&place, "holds", HOLDS), Program::start(&place, "other", HOLDS));
    let (pid, other_pid) = (program.pid(), other.pid());
    let serving = Serving::start(&[&pid, &other_pid]);
    drop(program);
    let path = format!("/api/processes/{pid}");
    let ended = serving.until(&path, |one| one["ended"].is_string());
    assert!(ended["ended"].as_str().unwrap().contains("has ended"), "{ended}");
    assert!(ended["rss_bytes"].as_u64().unwrap() > 40 << 20, "{ended}");
    assert_eq!(serving.get(&format!("{path}/map")).status, 410);
    assert!(!serving.get("/metrics").body.contains(&pid));
    let list = serving.json("/api/processes");
    assert_eq!(
        (&list["processes"][0]["ended"], list["processes"].as_array().unwrap().len()),
        (&Value::Null, 2),
        "{list}"
    );
}

#[test]
fn processes_on_craton_are_found() {
    // A library of another name is not found.
    if !crate::common::library().ends_with("libcraton.so") {
        return;
    }
    let place = Place::new("serve-finds");
    let serving = Serving::start(&[]);
    let program = Program::start(&place, "holds", HOLDS);
    let pid: u64 = program.pid().parse().unwrap();
    let is_there = |list: &Value| list["processes"].as_array().unwrap().iter().any(|p| p["pid"] == pid);
    serving.until("/api/processes", is_there);
}

#[test]
fn the_page_s_files_are_there_and_nothing_else() {
    let place = Place::new("serve-files");
    let program = Program::start(&place, "holds", HOLDS);
    let serving = Serving::start(&[&program.pid()]);
    let page = serving.get("/");
    assert!(
        page.status == 200 && page.head.contains("text/html") && page.head.contains("default-src 'self'"),
        "{}",
        page.head
    );
    let files = page.body.split(['"', '\'']).filter(|word| word.ends_with(".js") || word.ends_with(".css"));
    let files: Vec<&str> = files.collect();
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        assert_eq!(serving.get(file).status, 200, "{file}");
    }
    assert!(!page.body.contains("http://") || page.body.matches("http://").count() == 1, "only the namespace of SVG");
    for path in [
        "/nothing",
        "/../Cargo.toml",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/style.css/",
        "/index.html",
        "/assets/",
    ] {
        let answer = serving.get(path);
        assert!(answer.status == 404 && answer.body.contains("there is no"), "{path}: {}", answer.body);
    }
    for path in ["/api/processes/1/map", "/api/processes/x", "/api/nothing", "/api/processes/0"] {
        assert_eq!(serving.get(path).status, 404, "{path}");
    }
    let of = |path: &str| format!("/api/processes/{}{path}", program.pid());
    assert_eq!(serving.get(&of("/history?since=yesterday")).status, 400);
    assert_eq!(serving.get(&of("/profile?measure=all")).status, 400);
    assert_eq!(serving.get(&of("/map/99999999")).status, 410);
    assert_eq!(serving.get(&of("/map/18446744073709551615")).status, 410);
    assert_eq!(serving.get(&of("/map/-1")).status, 404);
}

#[test]
fn foreign_names_and_methods_are_refused() {
    let place = Place::new("serve-foreign");
    let program = Program::start(&place, "holds", HOLDS);
    let serving = Serving::start(&["--host", "heap.example", &program.pid()]);
    let with_host =
        |host: &str| serving.send(&format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    for host in ["evil.example", "evil.example:80", "10.1.2.3", ""] {
        let answer = with_host(host);
        assert!(answer.status == 403 && answer.body.contains("--host"), "{host}: {}", answer.body);
    }
    for host in ["localhost", "127.0.0.1:1", "[::1]", "Heap.Example:443"] {
        assert_eq!(with_host(host).status, 200, "{host}");
    }
    assert_eq!(serving.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").status, 400);
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = serving.send(&format!("{method} /api HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert!(answer.status == 405 && answer.head.contains("Allow: GET, HEAD\r\n"), "{method}: {}", answer.head);
    }
    let two = "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n";
    assert_eq!(serving.send(two).status, 400);
    let body = "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(serving.send(body).status, 413);
    assert_eq!(serving.send("GET / HTTP/3.0\r\nHost: localhost\r\n\r\n").status, 505);
    assert_eq!(serving.send("what\r\n\r\n").status, 400);
    assert_eq!(serving.send(&format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(20_000))).status, 431);
    // It still answers.
    assert_eq!(serving.get("/api").status, 200);
}

#[test]
fn head_answers_as_get_without_the_body() {
    let place = Place::new("serve-head");
    let program = Program::start(&place, "holds", HOLDS);
    let serving = Serving::start(&[&program.pid()]);
    for path in ["/", "/style.css", "/api/nothing"] {
        let ask = |method: &str, end: &str| {
            serving.send(&format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {end}\r\n\r\n"))
        };
        let (get, head) = (ask("GET", "close"), ask("HEAD", "close"));
        assert_eq!((head.status, &head.head, head.body.as_str()), (get.status, &get.head, ""), "{path}");
        assert!(!get.body.is_empty() && get.head.contains(&format!("Content-Length: {}\r\n", get.body.len())));
    }
    // The next answer on a connection follows at once.
    let two = "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api HTTP/1.1\r\nHost: localhost\r\n\
               Connection: close\r\n\r\n";
    let both = serving.send(two);
    assert!(both.body.starts_with("HTTP/1.1 200 OK\r\n"), "{}", both.body);
}

/// A stop ends waits with a time limit (signal(7)).
#[test]
fn a_stop_in_the_middle_of_a_request_does_no_harm() {
    let place = Place::new("serve-stopped");
    let program = Program::start(&place, "holds", HOLDS);
    let serving = Serving::start(&[&program.pid()]);
    let mut stream = TcpStream::connect(&serving.address).unwrap();
    for piece in ["GET /api ", "HTTP/1.1\r\n", "Host: localhost\r\n", "Connection: close\r\n"] {
        stream.write_all(piece.as_bytes()).unwrap();
        serving.stop_and_go_on();
    }
    stream.write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
}

#[test]
fn what_it_cannot_do_is_a_sentence() {
    let wrong = |args: &[&str], status: i32, text: &str| {
        let said = said(&mut craton([&["serve"], args].concat()));
        assert!(said.status == status && said.err.contains(text) && said.out.is_empty(), "{args:?}: {}", said.err);
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    wrong(&["--listen", &port], 1, "is in use, perhaps by another `craton serve`; give another, such as --listen");
    wrong(&["--listen", "192.0.2.1:0", "--public"], 1, "this machine has no address 192.0.2.1");
    wrong(&["--listen", "0.0.0.0:0"], 2, "everybody who reaches this address");
    wrong(&["--listen", "[::]:0"], 2, "give --public");
    wrong(&["--listen", "here:80"], 2, "give a port, or an address and a port");
    wrong(&["--listen", "127.0.0.1:70000"], 2, "give a port, or an address and a port");
    wrong(&["--otlp", "https://127.0.0.1"], 2, "such as http://127.0.0.1:4318");
    wrong(&["--otlp", "127.0.0.1:4318"], 2, "such as http://127.0.0.1:4318");
    wrong(&["--every", "0"], 2, "--every");
    wrong(&["--experiment", ""], 2, "--experiment");
    wrong(&["me"], 2, "not a process id");
    wrong(&["--listen", "0", "4194305"], 1, "there is no process 4194305");
    wrong(&["--listen", "0", &std::process::id().to_string()], 1, "not running on Craton");
}

#[test]
fn an_address_for_all_is_warned_about() {
    let place = Place::new("serve-public");
    let program = Program::start(&place, "holds", HOLDS);
    let mut command = craton(["serve", "--listen", "0.0.0.0:0", "--public", &program.pid()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.contains("everybody who reaches 0.0.0.0:"), "{line}");
}

/// One request to a collector: head and body.
fn pushed(listener: &TcpListener, status: &str) -> (String, Value) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some((_, value)) = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
            length = value.trim().parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    stream
        .write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}").as_bytes())
        .unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

#[test]
fn a_collector_gets_the_metrics() {
    let place = Place::new("serve-otlp");
    let program = Program::start(&place, "holds", HOLDS);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut serving = Serving::start(&["--otlp", &url, "--experiment", "a", &program.pid()]);
    let (head, body) = pushed(&listener, "503 Busy");
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1") && head.contains("application/json"), "{head}");
    let resource = &body["resourceMetrics"][0];
    let attributes = resource["resource"]["attributes"].as_array().unwrap();
    let has =
        |key: &str, kind: &str, value: &str| attributes.iter().any(|a| a["key"] == key && a["value"][kind] == value);
    assert!(has("service.name", "stringValue", "holds") && has("experiment", "stringValue", "a"), "{attributes:?}");
    assert!(has("process.pid", "intValue", &program.pid()), "{attributes:?}");
    let metrics = resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let metric =
        |name: &str| metrics.iter().find(|m| m["name"] == name).unwrap_or_else(|| panic!("{name}: {metrics:?}"));
    let bytes = |point: &Value| point["asInt"].as_str().unwrap().parse::<u64>().unwrap();
    let rss = bytes(&metric("craton.rss_bytes")["gauge"]["dataPoints"][0]);
    let ledger: u64 = metric("craton.ledger_bytes")["gauge"]["dataPoints"].as_array().unwrap().iter().map(bytes).sum();
    assert!(rss > 80 << 20 && rss.abs_diff(ledger) <= rss / 100, "{rss} {ledger}");
    let refills = &metric("craton.refills")["sum"];
    assert!(refills["isMonotonic"] == true && refills["aggregationTemporality"] == 2, "{refills}");
    let mut line = String::new();
    serving.errors().read_line(&mut line).unwrap();
    assert!(line.contains("the collector does not take the metrics: it answers 503"), "{line}");
}
