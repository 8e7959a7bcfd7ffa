//! `craton serve`: the processes' memory as a web page, metrics and JSON.
//!
//! **Failure.** Status 1 when the address or a process cannot be had, 2 for an address that other
//! machines reach without `--public`.

use crate::args;
use crate::failure::Failure;
use crate::signals;
use crate::terminal::{Stream, say};
use craton_serve::{Options, Server};
use std::process::ExitCode;

pub fn serve(args: &args::Serve) -> Result<ExitCode, Failure> {
    let listen = args.listen;
    let is_public = !listen.ip().is_loopback();
    if is_public && !args.public {
        return Err(Failure::Usage(format!(
            "--listen {listen}: everybody who reaches this address could read the heap's figures and the names of the \
             program's functions; give --public to allow that, or stay at 127.0.0.1 and use a tunnel: ssh -L \
             {0}:localhost:{0} MACHINE",
            listen.port()
        )));
    }
    let options = Options {
        listen,
        hosts: args.hosts.clone(),
        every: args.every,
        experiment: args.experiment.clone(),
        collector: args.otlp.clone(),
        pids: args.pids.clone(),
    };
    let server = Server::bind(options)?;
    let address = server.address();
    signals::catch(&signals::ENDING, signals::stop);
    if is_public {
        say(&format!("craton: everybody who reaches {address} can read the heaps' figures and functions\n"));
    }
    let url = format!("http://{address}/ shows the processes on Craton; Ctrl-C ends\n");
    Stream::Out.write(&url).map_err(|e| format!("cannot print the address: {e}"))?;
    server.run(&signals::STOP, |sentence| say(&format!("craton: {sentence}\n")));
    Ok(ExitCode::SUCCESS)
}
