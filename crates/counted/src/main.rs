//! The paths of requests and records alone, without any input or output: what callgrind counts.
//!
//! `session CASE N`, `http2 N`, `record CASE BYTES N` and `dostp CASE N` do one thing N times; so does
//! `places THREADS PLACES N`, whose processor time is measured. One program holds all of them, so that they
//! cost one build with link-time optimisation. It must never ask the time while it counts.

#![forbid(unsafe_code)]

mod dostp;
mod http2;
mod places;
mod record;
mod session;

use std::process::ExitCode;

const USAGE: &str = "\
usage: staunch-counted session plain|browser|browsers|unlike|pipelined|logged|logged-browser REQUESTS
       staunch-counted http2 REQUESTS
       staunch-counted record open|seal|open-cipher|seal-cipher BYTES RECORDS
       staunch-counted dostp decode|encode|receive|reassemble FRAMES
       staunch-counted places THREADS PLACES TIMES";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["session", case, count] => count.parse().map(|count| session::run(case, count)),
        ["dostp", case, count] => count.parse().map(|count| Ok(dostp::run(case, count)?)),
        ["http2", count] => count.parse().map(|count| Ok(http2::run(count)?)),
        ["record", case, bytes, count] => {
            bytes.parse().and_then(|bytes| count.parse().map(|count| record::run(case, bytes, count)))
        }
        ["places", threads, limit, times] => threads.parse().and_then(|threads| {
            let (limit, times) = (limit.parse()?, times.parse()?);
            places::run(threads, limit, times);
            Ok(Ok(()))
        }),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done.unwrap_or_else(|error| Err(error.into())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
