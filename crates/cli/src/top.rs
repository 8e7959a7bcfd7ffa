//! `craton top`: the processes on Craton, or one's memory, without a stop. A process that ends
//! while it is watched leaves its last numbers in a line, and status 0.

mod holders;
mod keys;
mod sample;
mod screen;

use crate::args;
use crate::failure::Failure;
use crate::run::contents;
use crate::signals;
use crate::terminal::{Stream, plain, say};
use craton_inspect::is_running;
use keys::{Key, Terminal};
use sample::{Sample, Samples};
use screen::Order;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

pub fn top(args: &args::Top) -> Result<ExitCode, Failure> {
    let mut samples = match args.pid {
        Some(pid) => Samples::of(pid)?,
        None => Samples::All(Vec::new()),
    };
    let mut sample = samples.take()?;
    let mut order = Order::default();
    if args.once || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let text: String = screen::once(&sample).iter().map(|line| format!("{}\n", line.trim_end())).collect();
        return print(&text);
    }
    signals::catch(&signals::ENDING, signals::stop);
    let terminal = Terminal::open().map_err(|e| format!("cannot set up the terminal: {e}; use --once"))?;
    let (mut before, mut paused): (Option<Sample>, bool) = (None, false);
    let mut next = Instant::now() + args.every;
    loop {
        let (width, height) = keys::size();
        terminal.draw(&screen::lines(&sample, before.as_ref(), &order, width, height));
        match terminal.key(next) {
            Key::Quit => return Ok(ExitCode::SUCCESS),
            _ if signals::STOP.load(Relaxed) => return Ok(ExitCode::SUCCESS),
            Key::Sort => order.next(),
            Key::Reverse => order.reverse(),
            Key::Pause => paused = !paused,
            Key::Who => {
                samples.turn();
                (paused, next) = (false, Instant::now());
            }
            Key::None => (),
        }
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + args.every;
        if paused {
            continue;
        }
        match samples.take() {
            Ok(new) => before = Some(std::mem::replace(&mut sample, new)),
            Err(why) => {
                drop(terminal);
                return end(args.pid, &sample, why);
            }
        }
    }
}

fn end(pid: Option<u32>, last: &Sample, why: String) -> Result<ExitCode, Failure> {
    let (Some(pid), Sample::One(one)) = (pid, last) else { return Err(why.into()) };
    if is_running(pid) {
        return Err(why.into());
    }
    let (name, last) = (plain(&one.page.exe), contents(&one.page));
    say(&format!("craton: process {pid} ({name}) has ended; it had last: {last}\n"));
    Ok(ExitCode::SUCCESS)
}

fn print(text: &str) -> Result<ExitCode, Failure> {
    Stream::Out.write(text).map_err(|e| format!("cannot print the numbers: {e}"))?;
    Ok(ExitCode::SUCCESS)
}
