//! Standard output and standard error of commands that print and end.
//!
//! It must never panic: a reader that goes away ends the command quietly, as it does other tools. Nothing
//! that a running server says goes this way, but by the queue of its lines.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a shell says of a program that was ended by SIGPIPE.
const CODE_BROKEN_PIPE: i32 = 128 + 13;
/// Bytes that a pipe with room takes at once (`PIPE_BUF`, pipe(7)).
const PIPE_BYTES: usize = 4096;
/// How long a piece of the reason for a failure may wait for its reader.
const PATIENCE: Duration = Duration::from_millis(500);

/// Prints on standard output. When nobody reads it any more the process ends; when it cannot be written (a
/// full disk) it ends as well, and says so.
pub fn print(text: &str) {
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
pub fn remark(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Words that came from elsewhere, for a terminal: control characters are told, and steer nothing.
pub fn printable(text: &str) -> String {
    let told = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(told).collect()
}

/// Says on standard error why a command fails, each line as `staunch: LINE`. A reader that takes nothing
/// cannot keep the process from ending; one that takes some gets the next piece.
pub fn explain(text: &str) {
    let lines: String = text.lines().map(|line| format!("staunch: {line}\n")).collect();
    // A reason that nobody takes has nowhere else to go.
    let _ = write_in_pieces(&mut io::stderr(), lines.as_bytes(), PATIENCE);
}

/// Writes pieces that a pipe with room takes at once, while each finds room within `patience`.
fn write_in_pieces(to: &mut (impl Write + AsFd), bytes: &[u8], patience: Duration) -> io::Result<()> {
    for piece in bytes.chunks(PIPE_BYTES) {
        if !takes(to.as_fd(), patience) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        to.write_all(piece)?;
    }
    to.flush()
}

/// Whether as much as a pipe takes at once can be written without a wait, now or in a short time.
fn takes(output: BorrowedFd<'_>, patience: Duration) -> bool {
    let patience = Timespec::try_from(patience).ok();
    let mut awaited = [PollFd::from_borrowed_fd(output, PollFlags::OUT)];
    poll(&mut awaited, patience.as_ref()).is_ok_and(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::thread;

    use super::*;

    #[test]
    fn a_reader_gets_a_long_reason_and_one_that_takes_nothing_holds_up_nothing() {
        let long = "a line of a reason\n".repeat(20_000);
        let (mut reader, mut writer) = io::pipe().unwrap();
        let read = thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        write_in_pieces(&mut writer, long.as_bytes(), Duration::from_secs(60)).unwrap();
        drop(writer);
        assert!(read.join().unwrap().unwrap() == long);
        let (_unread, mut writer) = io::pipe().unwrap();
        let error = write_in_pieces(&mut writer, long.as_bytes(), Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let (gone, mut writer) = io::pipe().unwrap();
        drop(gone);
        let error = write_in_pieces(&mut writer, long.as_bytes(), Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn control_characters_are_told() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }
}
