//! Where lines end up: a file that may be renamed, cut off or full, standard output, or syslog.
//!
//! It must never give up: what cannot be written is lost and counted, and the next chunk is tried again.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::{Errno, retry_on_intr};

use super::settings::{LogError, Target};
use super::syslog::Syslog;

/// The destination of lines, and its state.
#[derive(Debug)]
pub(super) struct Sink {
    target: Target,
    open_target: OpenTarget,
    size_bytes: u64,
    size_bytes_max: Option<u64>,
    keep: u32,
    /// The last line was cut off.
    torn: bool,
}

/// A target that was opened.
#[derive(Debug)]
enum OpenTarget {
    File(File),
    Syslog(Syslog),
    /// A place that could not be opened, and why.
    Absent(String),
}

/// Lines that could not be written, and why.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) error: io::Error,
    pub(super) lines: u64,
}

impl Sink {
    /// Opens the target of lines.
    pub(super) fn open(target: Target, size_bytes_max: Option<u64>, keep: u32) -> Result<Self, LogError> {
        match open(&target) {
            Ok((open_target, size_bytes)) => {
                Ok(Self { target, open_target, size_bytes, size_bytes_max, keep, torn: false })
            }
            Err(error) => Err(LogError { target, error }),
        }
    }

    /// Opens it, or waits for it: until [`Self::reopen`] finds it, lines are lost.
    pub(super) fn open_or_await(target: Target, size_bytes_max: Option<u64>, keep: u32) -> Self {
        let (open_target, size_bytes) = match open(&target) {
            Ok(opened) => opened,
            Err(error) => (OpenTarget::Absent(LogError { target: target.clone(), error }.to_string()), 0),
        };
        Self { target, open_target, size_bytes, size_bytes_max, keep, torn: false }
    }

    /// Why it is not open, if it is not.
    pub(super) fn absence(&self) -> Option<&str> {
        match &self.open_target {
            OpenTarget::Absent(why) => Some(why),
            OpenTarget::File(_) | OpenTarget::Syslog(_) => None,
        }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Opens what now has the name. If that fails, the old one stays.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        (self.open_target, self.size_bytes) = open(&self.target)?;
        self.torn = false;
        Ok(())
    }

    /// Whether so many bytes more would make it too large.
    pub(super) fn would_overflow(&self, bytes: usize) -> bool {
        let is_file = matches!(self.target, Target::File(_));
        let limit = self.size_bytes_max.filter(|_| is_file && self.size_bytes > 0);
        limit.is_some_and(|limit| self.size_bytes + bytes as u64 > limit)
    }

    /// Moves the file and its predecessors by one, and begins a new one. If that fails, writing goes on where
    /// it was.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        let Target::File(path) = &self.target else { return Ok(()) };
        let place = |number: u32| if number == 0 { path.clone() } else { numbered(path, number) };
        for number in (0..self.keep).rev() {
            absent_is_fine(fs::rename(place(number), place(number + 1)))?;
        }
        if self.keep == 0 {
            absent_is_fine(fs::remove_file(path))?;
        }
        self.reopen()
    }

    /// Writes lines.
    pub(super) fn write(&mut self, lines: &[u8]) -> Result<(), Lost> {
        match &mut self.open_target {
            OpenTarget::Syslog(syslog) => send(syslog, lines),
            OpenTarget::File(_) => self.append(lines),
            OpenTarget::Absent(why) => {
                Err(Lost { error: io::Error::other(why.clone()), lines: count(lines) })
            }
        }
    }

    fn append(&mut self, mut lines: &[u8]) -> Result<(), Lost> {
        let OpenTarget::File(file) = &mut self.open_target else { return Ok(()) };
        if self.torn {
            file.write_all(b"\n").map_err(|error| Lost { error, lines: count(lines) })?;
            self.torn = false;
        }
        while !lines.is_empty() {
            match file.write(lines) {
                Ok(written) => {
                    self.torn = written > 0 && lines[written - 1] != b'\n';
                    self.size_bytes += written as u64;
                    lines = &lines[written..];
                    if written == 0 {
                        return Err(Lost { error: io::ErrorKind::WriteZero.into(), lines: count(lines) });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Another program that shares standard output may have made it one that does not wait.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => await_room(file, lines)?,
                Err(error) => return Err(Lost { error, lines: count(lines) }),
            }
        }
        Ok(())
    }
}

fn await_room(file: &File, lines: &[u8]) -> Result<(), Lost> {
    let lost = |errno: Errno| Lost { error: errno.into(), lines: count(lines) };
    let mut awaited = [PollFd::new(file, PollFlags::OUT)];
    retry_on_intr(|| poll(&mut awaited, None)).map(drop).map_err(lost)
}

/// Each line by itself. One that could not be sent does not keep back those behind it.
fn send(syslog: &mut Syslog, lines: &[u8]) -> Result<(), Lost> {
    let mut lost: Option<Lost> = None;
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        if let Err(error) = syslog.send(line.trim_ascii_end()) {
            let before = lost.as_ref().map_or(0, |lost| lost.lines);
            lost = Some(Lost { error, lines: before + 1 });
        }
    }
    lost.map_or(Ok(()), Err)
}

/// The rest of a line that was begun counts as one.
fn count(lines: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', lines).count() as u64
}

fn open(target: &Target) -> io::Result<(OpenTarget, u64)> {
    let (file, size_bytes) = match target {
        Target::StandardOutput => (io::stdout().as_fd().try_clone_to_owned()?.into(), 0),
        Target::StandardError => (io::stderr().as_fd().try_clone_to_owned()?.into(), 0),
        Target::File(path) => open_file(path)?,
        Target::Syslog(path) => return Ok((OpenTarget::Syslog(Syslog::open(path)?), 0)),
    };
    Ok((OpenTarget::File(file), size_bytes))
}

/// Opens a file to write to its end; with its length.
pub(super) fn open_file(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o640);
    // A pipe that nobody reads is an error instead of a wait without end.
    let file = options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    let size_bytes = file.metadata()?.len();
    Ok((file, size_bytes))
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    name.into()
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::testing::Folder;

    fn sink(path: &Path, size_bytes_max: Option<u64>, keep: u32) -> Sink {
        Sink::open(Target::File(path.into()), size_bytes_max, keep).unwrap()
    }

    #[test]
    fn appends_and_follows_a_rename() {
        let folder = Folder::new();
        let path = folder.path().join("log");
        fs::write(&path, "old\n").unwrap();
        let mut sink = sink(&path, None, 0);
        sink.write(b"one\n").unwrap();
        let moved = folder.path().join("moved");
        fs::rename(&path, &moved).unwrap();
        sink.write(b"two\n").unwrap();
        sink.reopen().unwrap();
        sink.write(b"three\n").unwrap();
        assert_eq!(fs::read_to_string(&moved).unwrap(), "old\none\ntwo\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        fs::remove_dir_all(folder.path()).unwrap();
        assert!(sink.reopen().is_err());
        sink.write(b"into the old one\n").unwrap();
    }

    #[test]
    fn what_cannot_be_opened_yet_is_awaited() {
        let folder = Folder::new();
        let path = folder.path().join("later/log");
        let mut sink = Sink::open_or_await(Target::File(path.clone()), Some(10), 1);
        assert!(sink.absence().is_some_and(|why| why.contains("the folder of the log")));
        let lost = sink.write(b"one\ntwo\n").unwrap_err();
        assert!(lost.lines == 2 && lost.error.to_string().contains("does not exist"), "{lost:?}");
        assert!(sink.reopen().is_err() && sink.absence().is_some());
        fs::create_dir(folder.path().join("later")).unwrap();
        sink.reopen().unwrap();
        assert_eq!(sink.absence(), None);
        sink.write(b"three\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
    }

    #[test]
    fn rotation_keeps_as_many_as_asked_for() {
        for keep in [0, 1, 3] {
            let folder = Folder::new();
            let path = folder.path().join("log");
            let mut sink = sink(&path, Some(10), keep);
            for line in ["first\n", "second\n", "third\n", "fourth\n", "fifth\n"] {
                if sink.would_overflow(line.len()) {
                    sink.rotate().unwrap();
                }
                sink.write(line.as_bytes()).unwrap();
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), "fifth\n");
            let older = ["fourth\n", "third\n", "second\n"];
            for (number, expected) in (1..=keep).zip(older) {
                assert_eq!(fs::read_to_string(numbered(&path, number)).unwrap(), expected);
            }
            assert!(!numbered(&path, keep + 1).exists());
        }
    }

    #[test]
    fn a_full_disk_loses_lines_and_tears_none() {
        let mut sink = sink(Path::new("/dev/full"), None, 0);
        let lost = sink.write(b"one\ntwo\n").unwrap_err();
        assert_eq!((lost.error.kind(), lost.lines), (io::ErrorKind::StorageFull, 2));
        let folder = Folder::new();
        let path = folder.path().join("log");
        sink.open_target = OpenTarget::File(File::create(&path).unwrap());
        sink.torn = true;
        sink.write(b"three\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "\nthree\n");
    }

    #[test]
    fn what_cannot_be_opened_says_why() {
        let folder = Folder::new();
        let cases = [
            (folder.path().to_path_buf(), "is a folder"),
            (folder.path().join("absent/log"), "the folder of the log"),
        ];
        for (path, words) in cases {
            let error = Sink::open(Target::File(path), None, 0).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
