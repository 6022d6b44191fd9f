//! A file of `/proc` that is opened once and read again and again.
//!
//! It owns the open file: a process that is followed cannot be mistaken for a later one of the same number.
//! It must never fail twice: the first failure is told, then the file is left out.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rustix::io::Errno;

use crate::fault::Fault;

/// The first size of the buffer, which grows: a page, as the kernel makes them.
const BUFFER_BYTES: usize = 4096;

/// A file, what it says, and what it said the time before.
#[derive(Debug)]
pub(super) struct Watched<T> {
    path: String,
    file: Option<File>,
    parse: fn(&str) -> Option<T>,
    buffer: Vec<u8>,
    before: Option<T>,
}

impl<T> Watched<T> {
    /// Opens the file and reads it for the first time.
    pub(super) fn open(path: String, parse: fn(&str) -> Option<T>, faults: &mut Vec<Fault>) -> Self {
        let file = File::open(&path).map_err(|error| faults.push(unreadable(&path, &error))).ok();
        let mut watched = Self { path, file, parse, buffer: vec![0; BUFFER_BYTES], before: None };
        watched.before = watched.now(faults);
        watched
    }

    /// Whether it is still read.
    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// What it says now.
    pub(super) fn now(&mut self, faults: &mut Vec<Fault>) -> Option<T> {
        let file = self.file.as_ref()?;
        let result = read_whole(file, &mut self.buffer).map_err(|error| unreadable(&self.path, &error));
        let result = result.and_then(|bytes| {
            let text = self.buffer.get(..bytes).and_then(|bytes| std::str::from_utf8(bytes).ok());
            let strange =
                || Fault::new(format!("{} has a form that is not known: it is left out", self.path));
            text.and_then(self.parse).ok_or_else(strange)
        });
        result.map_err(|fault| self.give_up(fault, faults)).ok()
    }

    /// What has changed since the last call, or since the file was opened.
    pub(super) fn change<D>(
        &mut self,
        faults: &mut Vec<Fault>,
        between: impl FnOnce(&T, &T) -> D,
    ) -> Option<D> {
        let now = self.now(faults)?;
        let change = self.before.as_ref().map(|before| between(before, &now));
        self.before = Some(now);
        change
    }

    fn give_up(&mut self, fault: Fault, faults: &mut Vec<Fault>) {
        self.file = None;
        faults.push(fault);
    }
}

/// A sentence about a file that cannot be read.
pub(super) fn unreadable(path: &str, error: &io::Error) -> Fault {
    let is_over = Errno::from_io_error(error) == Some(Errno::SRCH);
    let reason = if is_over { "the process has ended".to_owned() } else { error.to_string() };
    Fault::new(format!("{path} cannot be read: {reason}; it is left out"))
}

/// Reads from the start to the end with pread(2). Says how many bytes there are.
fn read_whole(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if length == buffer.len() {
            buffer.resize(2 * length, 0);
        }
        match file.read_at(&mut buffer[length..], length as u64) {
            Ok(0) => return Ok(length),
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Option<u64> {
        text.trim().parse().ok()
    }

    fn lines(text: &str) -> Option<usize> {
        Some(text.lines().count())
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole() {
        let mut faults = Vec::new();
        // The memory map of this very test has more than a page.
        let mut maps = Watched::open("/proc/self/smaps".into(), lines, &mut faults);
        let expected = std::fs::read_to_string("/proc/self/smaps").unwrap().lines().count();
        assert!(expected > 500);
        assert!(maps.now(&mut faults).unwrap().abs_diff(expected) < expected / 2);
        assert_eq!(faults, []);
    }

    #[test]
    fn what_cannot_be_read_is_told_once() {
        let cases = [
            ("/proc/nothing", "/proc/nothing cannot be read: No such file"),
            ("/proc/self/comm", "/proc/self/comm has a form that is not known"),
        ];
        for (path, expected) in cases {
            let mut faults = Vec::new();
            let mut watched = Watched::open(path.into(), number, &mut faults);
            assert!(!watched.is_open());
            assert_eq!(watched.change(&mut faults, |before, now| now - before), None);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].to_string().starts_with(expected), "{faults:?}");
        }
    }
}
