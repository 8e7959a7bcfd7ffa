use std::sync::Mutex;
use std::thread;

/// Most of the time is a process's start and end.
const AT_ONCE: usize = 4;

/// Panics if a case does, after the others.
pub fn side_by_side<C: Sync, R: Send>(cases: &[C], act: impl Fn(&C) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(cases.iter().enumerate());
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            // A statement: the lock ends before the case runs.
            let case = next.lock().expect("no case runs under this lock").next();
            let Some((place, case)) = case else { break };
            let result = act(case);
            done.lock().expect("no case runs under this lock").push((place, result));
        }
    };
    thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let mut done = done.into_inner().expect("no case runs under this lock");
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}
