//! Many small objects, short-lived threads.

use craton_programs::{Output, Program, missing};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn served(program: Program, exe: &str, expected: &str) -> Output {
    let output = program.preloaded().run();
    output.assert_success();
    assert_eq!(output.stdout, expected, "{output}");
    output.assert_served(exe);
    output
}

/// A version manager's may be a shell script, or have no tests.
fn python() -> Option<Program> {
    let path = "/usr/bin/python3";
    (!missing(path, "python3")).then(|| Program::new(path).env("PYTHONMALLOC", "malloc").env_remove("PYTHONPATH"))
}

#[test]
fn python_runs_a_script_with_threads_cycles_and_children() {
    let Some(python) = python() else { return };
    let script = r#"
import gc, subprocess, sys, threading
found = []
def work(seed):
    words = {f"{seed}-{i}": [i] * (i % 50) for i in range(20000)}
    for i in range(0, 20000, 3):
        del words[f"{seed}-{i}"]
    ring = []
    for _ in range(1000):
        ring = [ring, {}]
        ring[1]["self"] = ring
    found.append(sum(map(len, words.values())))
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
child = subprocess.run([sys.executable, "-c", "print(len(sorted(map(str, range(50000)))))"], capture_output=True)
print(len(set(found)), gc.collect() > 0, child.stdout.decode().strip(), child.returncode)
"#;
    let output = served(python.args(["-c", script]), "python3", "1 True 50000 0\n");
    let objects = output.stats.iter().filter(|s| s.exe.starts_with("python3")).map(|s| s.objects_out);
    assert_eq!(objects.filter(|n| *n > 10_000).count(), 2, "script and child:\n{output}");
}

#[test]
#[ignore = "nightly: python's own suite takes minutes"]
fn python_passes_its_own_tests() {
    let Some(python) = python() else { return };
    let stdlib = python.clone().args(["-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"]).run().stdout;
    let stdlib = Path::new(stdlib.trim());
    let version = stdlib.file_name().expect("the standard library has a folder").to_string_lossy();
    if missing(&stdlib.join("test/test_dict.py").to_string_lossy(), &format!("lib{version}-testsuite")) {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder can be made");
    let tests = ["test_dict", "test_list", "test_gc", "test_threading", "test_subprocess"];
    let run = python.args(["-m", "test"]).args(tests).env("TMPDIR", folder.path()).dir(folder.path());
    let output = run.preloaded().timeout(400).run();
    output.assert_success();
    assert!(output.stdout.contains("Tests result: SUCCESS") || output.stdout.contains("Result: SUCCESS"), "{output}");
    let objects = output.stats.iter().filter(|s| s.exe.starts_with("python3")).map(|s| s.objects_out).max();
    assert!(objects.is_some_and(|n| n > 100_000), "the interpreter's objects did not come from Craton:\n{output}");
}

#[test]
fn node_runs_buffers_and_workers() {
    if missing("node", "nodejs") {
        return;
    }
    let script = r#"
        const { Worker, isMainThread, parentPort } = require('worker_threads');
        const zlib = require('zlib');
        function work() {
            let sum = 0;
            for (let round = 0; round < 200; round++) {
                const parts = [];
                for (let i = 1; i <= 50; i++) parts.push(Buffer.alloc(i * 300, i));
                const all = Buffer.concat(parts);
                if (round % 20 == 0 && !zlib.inflateSync(zlib.deflateSync(all)).equals(all)) process.exit(3);
                sum += all.length + all[all.length - 1];
            }
            return sum;
        }
        if (isMainThread) {
            let total = work(), left = 4;
            for (let i = 0; i < 4; i++) new Worker(__filename)
                .on('message', (sum) => { total += sum; })
                .on('exit', (code) => {
                    if (code !== 0) process.exit(4);
                    if (--left === 0) { console.log(total); process.exitCode = 0; }
                });
        } else parentPort.postMessage(work());
    "#;
    let folder = TempDir::new().expect("a temporary folder can be made");
    let path = folder.path().join("workers.js");
    fs::write(&path, script).expect("a script can be written");
    let program = Program::new("node").env_remove("NODE_OPTIONS").timeout(300);
    // Five times 200 rounds of 300 × (1 + … + 50) bytes, and the last byte.
    let output = served(program.clone().arg(path), "node", "382550000\n");
    assert!(output.assert_served("node").threads_seen >= 5, "main and four workers:\n{output}");

    let failed = program.args(["-e", "process.exit(7)"]).preloaded().run();
    assert_eq!(failed.status, Some(7), "{failed}");
    failed.assert_served("node");
}

#[test]
fn java_says_its_version() {
    if missing("java", "openjdk-17-jre-headless") {
        return;
    }
    let output = Program::new("java").arg("-version").env_remove("JAVA_TOOL_OPTIONS").preloaded().timeout(300).run();
    output.assert_success();
    assert!(output.stderr.contains(" version \""), "{output}");
    output.assert_served("java");
}

#[test]
#[ignore = "nightly: two starts of a virtual machine and a compiler"]
fn java_runs_threads_with_memory_outside_its_heap() {
    if missing("java", "openjdk-17-jre-headless") || missing("javac", "openjdk-17-jdk-headless") {
        return;
    }
    // Direct buffers, zlib, and the JIT use malloc.
    let source = r#"
        import java.nio.ByteBuffer;
        import java.util.*;
        import java.util.concurrent.*;
        import java.util.zip.*;
        public class Work {
            static long work(int seed) throws Exception {
                Random random = new Random(seed);
                long sum = 0;
                for (int round = 0; round < 300; round++) {
                    byte[] data = new byte[1000 + random.nextInt(60000)];
                    Arrays.fill(data, (byte) round);
                    ByteBuffer direct = ByteBuffer.allocateDirect(data.length);
                    direct.put(data).flip();
                    Deflater deflater = new Deflater();
                    deflater.setInput(data); deflater.finish();
                    byte[] small = new byte[data.length];
                    int length = deflater.deflate(small);
                    deflater.end();
                    Inflater inflater = new Inflater();
                    inflater.setInput(small, 0, length);
                    byte[] back = new byte[data.length];
                    if (inflater.inflate(back) != data.length || !direct.equals(ByteBuffer.wrap(back))) System.exit(3);
                    inflater.end();
                    sum++;
                }
                return sum;
            }
            public static void main(String[] args) throws Exception {
                ExecutorService pool = Executors.newFixedThreadPool(8);
                List<Future<Long>> parts = new ArrayList<>();
                for (int i = 0; i < 16; i++) { int seed = i; parts.add(pool.submit(() -> work(seed))); }
                long sum = 0;
                for (Future<Long> part : parts) sum += part.get();
                pool.shutdown();
                System.out.println(sum);
            }
        }
    "#;
    let folder = TempDir::new().expect("a temporary folder can be made");
    fs::write(folder.path().join("Work.java"), source).expect("a source can be written");
    let java = |program: &str| Program::new(program).dir(folder.path()).env_remove("JAVA_TOOL_OPTIONS").timeout(300);
    let compiled = java("javac").arg("Work.java").preloaded().run();
    compiled.assert_success();
    // A thread of the virtual machine ends javac, whatever its name.
    assert!(compiled.stats.iter().any(|s| s.refills > 0 && s.threads_seen > 1), "{compiled}");
    let output = served(java("java").args(["-Xmx256m", "Work"]), "java", "4800\n");
    assert!(output.assert_served("java").threads_seen > 8, "a pool of eight threads:\n{output}");
}

#[test]
fn sqlite_runs_a_generated_script() {
    if missing("sqlite3", "sqlite3") {
        return;
    }
    let mut script = String::from("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, size INTEGER);\nBEGIN;\n");
    for id in 0..20_000 {
        script += &format!("INSERT INTO item VALUES ({id}, '{}{id}', {});\n", "name".repeat(id % 40), id * 7919 % 1000);
    }
    script += "COMMIT;\nCREATE INDEX by_size ON item (size, name);\nDELETE FROM item WHERE id % 5 = 0;\n\
               UPDATE item SET name = name || name WHERE size < 100;\n\
               SELECT count(*), sum(size), sum(length(name)) FROM item;\n\
               SELECT count(DISTINCT a.name) FROM item a JOIN item b ON a.size = b.size AND a.id < b.id WHERE a.size < 50;\n\
               SELECT group_concat(size) FROM (SELECT DISTINCT size FROM item ORDER BY size DESC LIMIT 3);\n\
               VACUUM;\nPRAGMA integrity_check;\n";
    let folder = TempDir::new().expect("a temporary folder can be made");
    let sqlite = |name: &str| Program::new("sqlite3").arg("-batch").arg(folder.path().join(name)).stdin(script.clone());
    let without = sqlite("without").run();
    let output = served(sqlite("with"), "sqlite3", &without.stdout);
    assert!(output.stdout.starts_with("16000|") && output.stdout.ends_with("\nok\n"), "{output}");
}

#[test]
fn perl_builds_hashes_and_strings() {
    if missing("perl", "perl") {
        return;
    }
    let script = r#"
        my (%count, @lists);
        for my $i (1 .. 100_000) { $count{"key" . $i % 7919} .= chr(65 + $i % 26); push @{$lists[$i % 100]}, "$i" x 3; }
        my $text = join ",", map { "$_=$count{$_}" } sort keys %count;
        (my $changed = $text) =~ s/([A-Z])([A-Z]+)/$2$1/g;
        my $pid = fork // die; if (!$pid) { undef %count; exit(@lists == 100 ? 5 : 6) }
        waitpid $pid, 0;
        print join(" ", scalar keys %count, length $text, length $changed, scalar @{$lists[7]}, $? >> 8), "\n";
    "#;
    let perl = Program::new("perl").args(["-w", "-e", script]).env("LC_ALL", "C").env_remove("PERL5OPT");
    let output = served(perl.clone(), "perl", &perl.run().stdout);
    assert!(output.stdout.starts_with("7919 ") && output.stdout.ends_with(" 1000 5\n"), "{output}");
}
