use crate::common::{Place, Program, craton, said};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// A thread for each kind of wait counts its `EINTR`. The end of input brings an event for
/// `epoll_wait`, and a signal with a handler.
const WAITS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static int ep, event[2], pipes[2], socks[2], sem, word;
static aio_context_t aio;
static sigset_t usr1, none;
static struct timespec hour = {3600, 0};
static long w_epoll_wait(void) { struct epoll_event e; return epoll_wait(ep, &e, 1, -1); }
static long w_epoll_wait_timed(void) { struct epoll_event e; return epoll_wait(ep, &e, 1, 3600000); }
static long w_epoll_pwait(void) { struct epoll_event e; return epoll_pwait(ep, &e, 1, -1, &none); }
static long w_poll(void) { struct pollfd p = {pipes[0], POLLIN, 0}; return poll(&p, 1, 3600000); }
static long w_select(void) { fd_set s; FD_ZERO(&s); FD_SET(pipes[0], &s); struct timeval t = {3600, 0}; return select(pipes[0] + 1, &s, 0, 0, &t); }
static long w_nanosleep(void) { return nanosleep(&hour, 0); }
static long w_futex(void) { return syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0); }
static long w_futex_timed(void) { return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &hour); }
static long w_read(void) { char c; return read(pipes[0], &c, 1); }
static long w_read_timed(void) { char c; return read(socks[0], &c, 1); }
static long w_recv_timed(void) { char c; return recv(socks[0], &c, 1, 0); }
static long w_sigtimedwait(void) { return sigtimedwait(&usr1, 0, &hour); }
static long w_sigwaitinfo(void) { return sigwaitinfo(&usr1, 0); }
static long w_semop(void) { struct sembuf b = {0, -1, 0}; return semop(sem, &b, 1); }
static long w_semtimedop(void) { struct sembuf b = {0, -1, 0}; return semtimedop(sem, &b, 1, &hour); }
static long w_io_getevents(void) { struct io_event e; return syscall(SYS_io_getevents, aio, 1, 1, &e, 0); }
static long w_pause(void) { return pause(); }
#define W(name) {#name, w_##name, 0, 0}
static struct { const char *name; long (*wait)(void); volatile long interrupted, others; } all[] = {
    W(epoll_wait), W(epoll_wait_timed), W(epoll_pwait), W(poll), W(select), W(nanosleep), W(futex), W(futex_timed),
    W(read), W(read_timed), W(recv_timed), W(sigtimedwait), W(sigwaitinfo), W(semop), W(semtimedop), W(io_getevents),
    W(pause),
};
#define N (sizeof all / sizeof *all)
static void *run(void *p) {
    long i = (long)p;
    for (;;) {
        long r = all[i].wait();
        if (r < 0 && errno == EINTR) all[i].interrupted++; else all[i].others++;
    }
}
static void on_signal(int s) { (void)s; }
int main(int argc, char **argv) {
    FILE *out = fopen(argv[1], "w");
    sigemptyset(&none);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, 0);
    signal(SIGUSR2, on_signal);
    ep = epoll_create1(0);
    if (pipe(pipes) || pipe(event) || socketpair(AF_UNIX, SOCK_STREAM, 0, socks)) return 1;
    struct epoll_event e = {.events = EPOLLIN};
    epoll_ctl(ep, EPOLL_CTL_ADD, event[0], &e);
    struct timeval t = {3600, 0};
    setsockopt(socks[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    sem = semget(IPC_PRIVATE, 1, 0600);
    syscall(SYS_io_setup, 8, &aio);
    pthread_t threads[N];
    for (long i = 0; i < N; i++) pthread_create(&threads[i], 0, run, (void *)i);
    puts("ready");
    fflush(stdout);
    char c;
    while (read(0, &c, 1) > 0);
    for (unsigned i = 0; i < N; i++) fprintf(out, "%s %ld %ld\n", all[i].name, all[i].interrupted, all[i].others);
    while (!all[1].interrupted) { pthread_kill(threads[1], SIGUSR2); usleep(1000); }
    write(event[1], "x", 1);
    while (!all[0].others) usleep(1000);
    fprintf(out, "end 0 0\n");
    fclose(out);
    semctl(sem, 0, IPC_RMID);
    _exit(0);
}
"#;

fn statuses(pid: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks.map(|task| fs::read_to_string(task.path().join("status")).unwrap()).collect()
}

fn switches(pid: &str) -> Vec<String> {
    let counts = |status: &String| {
        status.lines().filter(|line| line.starts_with("Pid:") || line.contains("ctxt_switches:")).collect()
    };
    let mut status: Vec<String> = statuses(pid).iter().map(counts).collect();
    status.sort();
    status
}

/// A machine that stops all its processes for a moment, as for a snapshot, ends such waits, too:
/// one round without is enough.
#[test]
fn threads_that_wait_are_not_interrupted() {
    let noticed: Vec<_> = (0..5).map(|_| waits_that_ended()).take_while(|noticed| !noticed.is_empty()).collect();
    assert!(noticed.len() < 5, "waits that `craton core` ended, of 40 (by EINTR, otherwise): {noticed:?}");
}

fn waits_that_ended() -> Vec<String> {
    let place = Place::new("waits");
    let (program, file) = (place.path("waits"), place.path("counts"));
    fs::write(place.path("waits.c"), WAITS).unwrap();
    let compiled = Command::new("gcc").args(["-w", "-o", &program, &place.path("waits.c"), "-lpthread"]).status();
    assert!(compiled.unwrap().success());
    let waiting = Program::run(&mut craton(["run", "--", &program, &file]));
    // Threads of a busy machine begin late.
    let sleep = || statuses(&waiting.pid()).iter().all(|status| status.contains("\nState:\tS"));
    assert!((0..6000).any(|_| sleep() || {
        std::thread::sleep(Duration::from_millis(10));
        false
    }));
    // Sleeping threads do not even wake up.
    let before = switches(&waiting.pid());
    for task in [&["stats"] as &[&str], &["verify"], &["whatis", "0x1000"]] {
        let looked = said(&mut craton([&["core", "--pid", &waiting.pid()], task].concat()));
        assert_eq!((looked.status, looked.err.as_str()), (0, ""), "{task:?}");
    }
    assert_eq!(before.len(), 18);
    let woken = switches(&waiting.pid()).into_iter().filter(|thread| !before.contains(thread));
    let woken: Vec<String> = woken.map(|thread| format!("woken: {thread}")).collect();
    let tasks: [&[&str]; 4] = [&["stats"], &["verify"], &["leaks"], &["save", &place.path("core")]];
    for task in tasks.iter().cycle().take(40) {
        let looked = said(&mut craton([&["core", "--pid", &waiting.pid()], *task].concat()));
        assert!(looked.status < 2 && !looked.out.is_empty(), "{task:?}: {}", looked.err);
    }
    assert!(waiting.end(), "a call that was interrupted by a stop takes an event and a signal afterwards");
    let counts = fs::read_to_string(&file).unwrap();
    let rows: Vec<Vec<&str>> = counts.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!((rows.len(), rows.last().map(|row| row[0])), (18, Some("end")), "{counts}");
    // Elsewhere the kernel decides before the stop.
    let is_told = |row: &&Vec<&str>| cfg!(target_arch = "x86_64") && row[1..] != ["0", "0"];
    rows.iter().filter(is_told).map(|row| row.join(" ")).chain(woken).collect()
}
