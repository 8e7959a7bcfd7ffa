//! `craton set`: options of a running process.
//!
//! **Failure.** Settings that the process refuses are printed; the others hold. A process that has
//! not read the request in time will do so later, and the exit status is [`WAITS`].

use crate::args;
use crate::failure::Failure;
use crate::terminal::{plain, say};
use craton_inspect::{Answer, Refused};
use std::process::ExitCode;

/// The exit status when the process has the request, and has not read it yet.
const WAITS: u8 = 3;

pub fn set(args: &args::Set) -> Result<ExitCode, Failure> {
    let (pid, settings) = (args.pid, &args.settings);
    match craton_inspect::set(pid, settings, args.wait)? {
        Answer::Done(refused) => {
            for Refused { setting, why, waited } in &refused {
                let of = if *waited { ", which an earlier request asked for" } else { "" };
                let line = format!("process {pid}: option \"{setting}\"{of}: {why}");
                say(&format!("craton: {}\n", plain(&line)));
            }
            Ok(if refused.iter().all(|r| r.waited) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Answer::Waits { stopped: true } => {
            say(&format!(
                "craton: process {pid} is stopped, by a signal or a debugger. The request stays there, and is done once it goes on \
                 (kill -CONT {pid}) and next asks for memory\n"
            ));
            Ok(ExitCode::from(WAITS))
        }
        Answer::Waits { stopped: false } => {
            say(&format!(
                "craton: process {pid} has not looked in {} s: it sleeps, or asks for no memory. The request stays there, and is done at \
                 the next malloc or free that its caches do not serve; what is wrong with it the process says on its own standard \
                 error then. To have it done now, while the process sleeps: \
                 gdb -p {pid} -batch -ex 'call ((int(*)(void))craton_background_actions)()'\n",
                args.wait.as_secs_f64()
            ));
            Ok(ExitCode::from(WAITS))
        }
    }
}
