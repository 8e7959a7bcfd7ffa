use craton_programs::{Output, Program, live_segment, missing, workspace};
use std::env;
use std::fmt::Write;
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use tempfile::TempDir;

fn bash(script: &str) -> Program {
    Program::new("bash").args(["--norc", "-euc", script]).env("LC_ALL", "C").env_remove("BASH_ENV")
}

#[test]
fn bash_runs_subshells_pipes_arrays_and_here_documents() {
    if missing("bash", "bash") {
        return;
    }
    let script = r#"
        declare -a list; declare -A map
        for ((i = 0; i < 3000; i++)); do list+=("item $i"); map[key$i]=$((i * i)); done
        echo "${#list[@]} ${list[2999]} ${map[key77]}"
        text=$(cat <<END
$(for ((i = 0; i < 500; i++)); do echo "line $i ${list[i]}"; done)
END
        )
        wc -l <<<"$text"
        (list=(); (echo "inner ${#list[@]} ${#map[@]}") | cat | (read -r line; echo "<$line>"))
        echo "outer ${#list[@]}"
        long=$(printf '%*s' 100000 x); long=${long// /ab}
        echo "${#long}"
        # All of it is read: a sort that dies of SIGPIPE leaves no statistics.
        printf '%s\n' "${list[@]}" | sort -r | { read -r last; cat >/dev/null; echo "$last"; }
    "#;
    let output = bash(script).preloaded().run();
    output.assert_success();
    let expected = "3000 item 2999 5929\n500\n<inner 0 3000>\nouter 3000\n199999\nitem 999\n";
    assert_eq!(output.stdout, expected, "{output}");
    output.assert_served("bash");
    output.assert_served("sort");
}

#[test]
fn bash_waits_for_background_jobs() {
    if missing("bash", "bash") {
        return;
    }
    let script = r#"
        for ((i = 0; i < 40; i++)); do
            (words=(); for ((j = 0; j < 200; j++)); do words+=("$i.$j"); done; exit $((${#words[@]} == 200 ? i : 99))) &
            jobs[i]=$!
        done
        sum=0
        for pid in "${jobs[@]}"; do status=0; wait "$pid" || status=$?; sum=$((sum + status)); done
        echo "$sum"
    "#;
    let output = bash(script).preloaded().run();
    output.assert_success();
    assert_eq!(output.stdout, "780\n", "{output}");
    output.assert_served("bash");
    let served = output.stats.iter().filter(|s| s.exe == "bash" && s.refills > 0).count();
    assert!(
        served >= 41,
        "the shell and its 40 children should say that Craton served them, but {served} do:\n{output}"
    );
}

fn git(dir: &Path, args: &[&str]) -> Program {
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"]
        .iter()
        .fold(Program::new("git"), |git, key| git.env_remove(key))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .args(["-c", "safe.directory=*", "--no-pager"])
        .args(args)
        .dir(dir)
}

fn served_git(program: Program) -> Output {
    let output = program.preloaded().timeout(300).run();
    output.assert_success();
    output.assert_served("git");
    output
}

fn history(commits: usize) -> String {
    let mut text = String::new();
    for n in 0..commits {
        let content = format!("content of commit {n}\n").repeat(1 + n % 50);
        let message = format!("commit number {n}");
        writeln!(
            text,
            "commit refs/heads/main\nmark :{}\ncommitter A <a@example.org> {} +0000\ndata {}\n{message}\n\
             M 100644 inline folder{}/file{}\ndata {}\n{content}",
            n + 1,
            1_000_000_000 + n * 60,
            message.len(),
            n % 4,
            n % 20,
            content.len(),
        )
        .expect("a string can be written to");
    }
    text
}

#[test]
fn git_makes_packs_and_clones_a_repository() {
    if missing("git", "git") {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder can be made");
    let (root, repo) = (folder.path(), folder.path().join("repo"));
    served_git(git(root, &["init", "-q", "-b", "main", "repo"]));
    served_git(git(&repo, &["fast-import", "--quiet"]).stdin(history(300)));
    served_git(git(&repo, &["reset", "-q", "--hard"]));
    assert_eq!(served_git(git(&repo, &["status", "--porcelain"])).stdout, "");
    let log = served_git(git(&repo, &["log", "--stat", "-p", "--format=%H %s"]));
    assert_eq!(log.stdout, git(&repo, &["log", "--stat", "-p", "--format=%H %s"]).run().stdout, "as without Craton");
    assert_eq!(log.stdout.matches(" commit number ").count(), 300);
    served_git(git(&repo, &["gc", "-q", "--aggressive"]));
    served_git(git(&repo, &["fsck", "--full", "--strict"]));
    served_git(git(root, &["clone", "-q", "--no-local", "repo", "copy"]));
    assert_eq!(served_git(git(&root.join("copy"), &["rev-list", "--count", "HEAD"])).stdout, "300\n");
    assert_eq!(served_git(git(&root.join("copy"), &["diff", "--stat", "HEAD~200", "HEAD"])).stdout.lines().count(), 21);
}

#[test]
fn git_reads_this_repository() {
    if missing("git", "git") {
        return;
    }
    if !workspace().join(".git").exists() {
        eprintln!("skipped: the sources here are not a git repository");
        return;
    }
    let log = served_git(git(workspace(), &["log", "-5", "--stat"]));
    assert!(log.stdout.starts_with("commit "), "{log}");
    assert_eq!(log.stdout, git(workspace(), &["log", "-5", "--stat"]).run().stdout, "as without Craton");
    served_git(git(workspace(), &["status"]));

    // The server's side of a clone gets no -c.
    let folder = TempDir::new().expect("a temporary folder can be made");
    let (config, copy) = (folder.path().join("config"), folder.path().join("copy"));
    fs::write(&config, "[safe]\n\tdirectory = *\n").expect("a file can be written");
    let from = workspace().to_str().expect("the workspace's path is UTF-8");
    // `gc` compares all objects with each other: the whole history takes a minute.
    let commits: &[&str] = if env::var_os("CRATON_FULL").is_some() { &[] } else { &["--depth", "30"] };
    let clone = git(folder.path(), &[&["clone", "-q", "--no-local"], commits, &[from, "copy"]].concat());
    served_git(clone.env("GIT_CONFIG_GLOBAL", &config));
    served_git(git(&copy, &["gc", "-q", "--aggressive", "--prune=now"]));
    served_git(git(&copy, &["fsck", "--full"]));
    assert_eq!(served_git(git(&copy, &["status", "--porcelain"])).stdout, "");
    let count = ["rev-list", "--count", "--all"];
    assert_eq!(served_git(git(&copy, &count)).stdout, git(&copy, &count).run().stdout, "as without Craton");
}

#[test]
fn the_proofs_fail_without_the_library() {
    if missing("bash", "bash") {
        return;
    }
    let output = bash("echo hello").run();
    output.assert_success();
    assert_eq!(output.stdout, "hello\n");
    assert!(catch_unwind(|| output.assert_served("bash").refills).is_err(), "{output}");

    let mut alone = Program::new("sleep").arg("60").start();
    let pid = alone.pid();
    assert!(catch_unwind(|| live_segment(pid)).is_err(), "a process without the library has a segment");
    assert!(!alone.has_ended(), "sleep has ended before it could be looked at");
}
