//! `craton set`: options of a running process.
//!
//! **Failure.** Prints refused settings; the others are in force. A process that does not read the
//! request in time will do so later; the exit status is [`WAITS`].

use crate::args;
use crate::failure::Failure;
use crate::terminal::{plain, say};
use craton_inspect::{Answer, Refused};
use std::process::ExitCode;

const WAITS: u8 = 3;

pub fn set(args: &args::Set) -> Result<ExitCode, Failure> {
    let (pid, settings) = (args.pid, &args.settings);
    match craton_inspect::set(pid, settings, args.wait)? {
        Answer::Done(refused) => {
            for Refused { setting, why, waited } in &refused {
                let of = if *waited { ", of an earlier request" } else { "" };
                let line = format!("process {pid}: option \"{setting}\"{of}: {why}");
                say(&format!("craton: {}\n", plain(&line)));
            }
            Ok(if refused.iter().all(|r| r.waited) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Answer::Waits { stopped: true } => {
            say(&format!(
                "craton: process {pid} is stopped, by a signal or a debugger. The request stays with it: it reads the request \
                 once it continues (kill -CONT {pid}) and allocates memory\n"
            ));
            Ok(ExitCode::from(WAITS))
        }
        Answer::Waits { stopped: false } => {
            say(&format!(
                "craton: process {pid} has not read the request in {} s: it sleeps, or allocates nothing. The request stays \
                 with it until a malloc or free that its caches do not serve; errors then appear on its standard error. \
                 To make a sleeping process read it now: \
                 gdb -p {pid} -batch -ex 'call ((int(*)(void))craton_background_actions)()'\n",
                args.wait.as_secs_f64()
            ));
            Ok(ExitCode::from(WAITS))
        }
    }
}
