//! `craton set`. Refused settings leave the others in force. A process that does not read the
//! request in time will do so later: status [`WAITS`].

use crate::args;
use crate::failure::Failure;
use crate::terminal::{Stream, plain, say};
use craton_inspect::{Answer, Published, Refused, Watch};
use craton_tables::options::OPTIONS;
use std::process::ExitCode;

const WAITS: u8 = 3;

pub fn set(args: &args::Set) -> Result<ExitCode, Failure> {
    let (pid, settings) = (args.pid, &args.settings);
    let before = Watch::open(pid).and_then(|watch| watch.page()).ok();
    match craton_inspect::set(pid, settings, args.wait)? {
        Answer::Done(refused) => {
            let is_set = |setting: &&String| !refused.iter().any(|r| !r.waited && r.setting == **setting);
            let text: String = settings.iter().filter(is_set).map(|s| done(pid, s, before.as_ref())).collect();
            Stream::Out.write(&text).map_err(|e| format!("cannot print what was set: {e}"))?;
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

/// `process 7: thp=never (was auto)`.
fn done(pid: u32, setting: &str, before: Option<&Published>) -> String {
    let key = setting.split_once('=').map_or(setting, |(key, _)| key);
    let default = || OPTIONS.iter().find(|row| row.key == key).map(|row| row.default.to_owned());
    let was = before.and_then(|page| {
        let set = page.options.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone());
        set.or_else(default).filter(|value| !value.is_empty())
    });
    let was = was.map_or_else(String::new, |was| format!(" (was {was})"));
    format!("{}\n", plain(&format!("process {pid}: {setting}{was}")))
}
