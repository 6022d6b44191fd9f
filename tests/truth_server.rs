//! The truth server as a program: `truth-server --listen 127.0.0.1:0 --service-time 2ms --workers 1`.
//!
//! Its first line says where it listens. It must never be used but to measure and to test.
#![forbid(unsafe_code)]

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use staunch_tests::truth::{Address, Plan, Queue, Stall, Truth, Work, WorkersChange, duration};

/// A server whose behaviour is known: every path does something else, and GET /truth says what was done.
#[derive(Debug, Parser)]
#[command(name = "truth-server")]
struct Arguments {
    /// Where to listen: ADDRESS:PORT (port 0: any that is free) or unix:PATH
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: Address,
    /// Connections the kernel may keep in its accept queue
    #[arg(long, default_value_t = 4096)]
    backlog: i32,
    /// How long a worker is busy with one request, such as 2ms; 0s: no worker is needed
    #[arg(long, default_value = "0s", value_parser = duration)]
    service_time: Duration,
    /// Workers; capacity is workers / service time
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// What a worker does meanwhile: `burn` processor time or `sleep`
    #[arg(long, default_value = "sleep")]
    work: Work,
    /// Where requests wait: `connection` (all are accepted and read) or `accept` (in the kernel)
    #[arg(long, default_value = "connection")]
    queue: Queue,
    /// When to stop serving everything, after the start
    #[arg(long, requires = "stall_for", value_parser = duration)]
    stall_at: Option<Duration>,
    /// For how long
    #[arg(long, requires = "stall_at", value_parser = duration)]
    stall_for: Option<Duration>,
    /// Another number of workers from a time on, such as 2@12s; may be given several times, in order
    #[arg(long = "then", value_name = "WORKERS@TIME")]
    changes: Vec<WorkersChange>,
    /// Close after every answer without announcing it
    #[arg(long)]
    answer_then_close: bool,
    /// End with the standard input, and print the counts then
    #[arg(long)]
    end_with_input: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let _ = staunch_netio::descriptors::raise_descriptor_limit();
    let plan = Plan {
        address: arguments.listen,
        backlog: arguments.backlog,
        service_time: arguments.service_time,
        workers: arguments.workers,
        work: arguments.work,
        queue: arguments.queue,
        stall: arguments.stall_at.zip(arguments.stall_for).map(|(after, length)| Stall { after, length }),
        changes: arguments.changes,
        answer_then_close: arguments.answer_then_close,
    };
    let address = plan.address.clone();
    match Truth::start(plan) {
        Ok(truth) => {
            println!("listening on {}", truth.address());
            let _ = std::io::stdout().flush();
            wait(truth, arguments.end_with_input)
        }
        Err(error) => {
            eprintln!("truth-server: {address}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn wait(truth: Truth, end_with_input: bool) -> ExitCode {
    if !end_with_input {
        loop {
            std::thread::park();
        }
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let counts = serde_json::to_string(&truth.finish()).expect("counts can be written as JSON");
    println!("{counts}");
    ExitCode::SUCCESS
}
