//! The freestanding files of khttpd, compiled for user space with sanitizers and asked over a pipe.
//!
//! The server's own parser is the judge wherever it knows the answer: what both are given, both must
//! understand alike. No kernel is needed. A machine without the sanitizers' libraries says so and skips; with
//! CI=true it fails.
#![forbid(unsafe_code)]

mod answers;
mod command;
mod deadlines;
mod documents;
mod driver;
mod mime;
mod paths;
mod requests;

/// The sanitizer watches: a read behind the end of the input ends the program.
#[test]
fn a_read_behind_the_end_is_seen() {
    let Some(mut driver) = driver::start() else { return };
    assert_eq!(driver.ask(b'p', b"/a"), Ok("path 1 2f61".to_owned()));
    let fault = driver.ask(b'!', b"four").expect_err("a program that ended");
    assert!(fault.contains("heap-buffer-overflow"), "{fault}");
}
