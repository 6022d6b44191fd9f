//! Standard output and standard error of commands that print and end.
//!
//! It must never panic: a reader that goes away ends the command quietly, as it does other tools. Nothing
//! that a running server says goes this way, but by the queue of its lines.

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::process;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use staunch_server::log::LineQueue;

/// What a shell says of a program that was ended by SIGPIPE.
const CODE_BROKEN_PIPE: i32 = 128 + 13;
/// Bytes that a pipe with room takes at once (`PIPE_BUF`, pipe(7)).
const PIPE_BYTES: usize = 4096;
/// How long the reason for a failure may take to be written.
const PATIENCE: Duration = Duration::from_millis(500);

/// Prints on standard output. When nobody reads it any more the process ends; when it cannot be written (a
/// full disk) it ends as well, and says so.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => process::exit(CODE_BROKEN_PIPE),
        Err(error) => {
            remark(&format!("staunch: cannot write to standard output: {error}\n"));
            process::exit(1);
        }
    }
}

/// Prints on standard error. That nobody takes it changes nothing.
pub(crate) fn remark(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Words that came from elsewhere, for a terminal: control characters are told, and steer nothing.
pub(crate) fn printable(text: &str) -> String {
    let told = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(told).collect()
}

/// Says on standard error why a command fails, each line as `staunch: LINE`. A reader that takes nothing
/// cannot keep the process from ending.
pub(crate) fn explain(text: &str) {
    let lines: String = text.lines().map(|line| format!("staunch: {line}\n")).collect();
    if lines.len() <= PIPE_BYTES {
        if takes(io::stderr().as_fd(), PATIENCE) {
            remark(&lines);
        }
        return;
    }
    match LineQueue::of_standard_error(Arc::default()) {
        Ok(queue) => {
            text.lines().for_each(|line| queue.say(line));
            queue.finish(PATIENCE);
        }
        // Without a descriptor for the copy there is no way that surely does not wait.
        Err(_) => remark(&lines),
    }
}

/// Whether as much as a pipe takes at once can be written without a wait, now or in a short time.
fn takes(output: BorrowedFd<'_>, patience: Duration) -> bool {
    let patience = Timespec::try_from(patience).ok();
    let mut awaited = [PollFd::from_borrowed_fd(output, PollFlags::OUT)];
    poll(&mut awaited, patience.as_ref()).is_ok_and(|count| count > 0)
}
