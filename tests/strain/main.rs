//! Modules of the kernel under strain, inside the machine that has them: `kernel-strain MODULE MODE`.
//!
//! Peers come of every manner, one unloads the module under them, and what is left behind is counted. Each
//! piece says one line, `MODULE MODE: PIECE: RESULT`. A piece that does not end is told by name with what all
//! tasks wait for, and ends the program. It must never be run outside of a machine made for it.
#![forbid(unsafe_code)]

mod cached;
mod leaks;
mod pages;
mod peers;
mod pieces;
mod scarce;
mod server;
mod unloading;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use clap::Parser;

use leaks::Objects;
use server::{Name, Server};
use unloading::Rounds;

/// No piece, and no round of one that has rounds, takes longer than this on a busy machine; else it hangs.
const PIECE_SECONDS_MAX: u64 = 300;
/// The exit status of a program that hung.
const HUNG: i32 = 70;

#[derive(Parser)]
#[command(name = "kernel-strain", about = "Strain a module of the kernel, inside a machine made for it")]
struct Arguments {
    /// kecho or khttpd
    #[arg(required_unless_present = "leaks")]
    module: Option<Name>,
    /// Its modes, one after the other; further parameters may stand behind one
    modes: Vec<String>,
    /// How often the module is unloaded under load
    #[arg(long, default_value_t = 4)]
    rounds: usize,
    /// How many connections are held at each of these, beside peers that come and go
    #[arg(long, default_value_t = 0)]
    connections: usize,
    /// Only unload under load
    #[arg(long)]
    unloads: bool,
    /// Only make each of its calls for memory fail, by the module scarce
    #[arg(long)]
    scarce: bool,
    /// Only look for what modules have left behind that are gone, and threads of this name
    #[arg(long, exclusive = true, value_name = "NAME")]
    leaks: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(name) = &arguments.leaks {
        return look_for_leaks(name);
    }
    let Some(name) = arguments.module else { return ExitCode::FAILURE };
    for mode in &arguments.modes {
        let server = Server { name, mode: mode.clone() };
        if let Err(error) = strain(&server, &arguments) {
            println!("{} {mode}: FAILED: {error}", server.module());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn look_for_leaks(name: &str) -> ExitCode {
    match leaks::prepare().and_then(|()| Objects::of(name)) {
        Ok(objects) if objects.is_nothing_of_modules() => ExitCode::SUCCESS,
        Ok(objects) => {
            println!("left behind: {objects:?}");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn strain(server: &Server, arguments: &Arguments) -> Result<(), String> {
    Server::prepare()?;
    leaks::prepare()?;
    // The first load of all brings into being what stays, as workers of the kernel do.
    server.load("")?;
    server.ask()?;
    server.unload()?;
    let before = Objects::of(server.module())?;
    if arguments.scarce {
        piece(server, "calls that fail", || scarce::every_call_fails(server))?;
    } else {
        if !arguments.unloads {
            go_through(server)?;
        }
        let rounds = Rounds { count: arguments.rounds, connections: arguments.connections };
        piece_in_rounds(server, "unloaded under load", |moves| unloading::under_load(server, rounds, moves))?;
    }
    piece(server, "left behind", || {
        before.wait_for_those_before(server.module()).map(|()| "nothing".to_owned())
    })
}

fn go_through(server: &Server) -> Result<(), String> {
    piece(server, "whole", || pieces::whole(server))?;
    piece(server, "cache", || cached::changes_are_seen(server))?;
    piece(server, "pages", || pages::bodies_are_whole(server))?;
    piece(server, "deadlines", || pieces::deadlines(server))?;
    piece(server, "one too many", || pieces::one_too_many(server))?;
    piece(server, "crowd", || pieces::crowd(server))
}

/// Runs one piece and says its result. A piece that hangs ends the program.
fn piece(server: &Server, name: &str, run: impl FnOnce() -> Result<String, String>) -> Result<(), String> {
    piece_in_rounds(server, name, |_| run())
}

/// Runs one piece that says whenever a round of it is done.
fn piece_in_rounds(
    server: &Server,
    name: &str,
    run: impl FnOnce(&dyn Fn()) -> Result<String, String>,
) -> Result<(), String> {
    let words = format!("{} {}: {name}", server.module(), server.mode);
    let watched = words.clone();
    let (done, is_done) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let round = Duration::from_secs(PIECE_SECONDS_MAX);
        let ended = loop {
            if let Err(ended) = is_done.recv_timeout(round) {
                break ended;
            }
        };
        if ended == RecvTimeoutError::Timeout {
            tell_who_waits(&watched);
            std::process::exit(HUNG);
        }
    });
    // The watch hears of it until `done` is dropped.
    let moves = || done.send(()).unwrap_or(());
    let result = run(&moves).map_err(|error| format!("{name}: {error}"))?;
    drop(done);
    let _ = watch.join();
    println!("{words}: {result}");
    Ok(())
}

/// Says where every task stands that sleeps in the kernel.
fn tell_who_waits(words: &str) {
    println!("{words}: HANGS after {PIECE_SECONDS_MAX} s");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    for process in processes {
        let read = |name: &str| std::fs::read_to_string(process.path().join(name));
        if let (Ok(name), Ok(stack)) = (read("comm"), read("stack")) {
            println!("{:?} {}\n{stack}", process.file_name(), name.trim_end());
        }
    }
    let _ = std::io::stdout().flush();
}
