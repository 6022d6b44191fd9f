//! A folder whose files are topics: each file's content is the value of the topic of its name.
//!
//! It owns which files count and when. It must never publish a file before its writer has closed it or given
//! it its name, but for what is there at the start; nor follow a link: who may write into the folder could
//! have any file published that this process may read.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use staunch_program::Failure;
use staunch_program::output::{printable, remark};

use super::patience::patiently;
use super::regular::open_regular;
use super::topic_writer::{PutFault, TopicValue, TopicWriter};

/// Room for what inotify tells at a time: some hundred changes.
const TOLD_BYTES: usize = 16 * 1024;

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FileChange {
    /// A file of this name was written and closed, or has got the name.
    Written(OsString),
    /// The file of this name was removed, or has got another.
    Gone(OsString),
}

/// A folder that is followed: each file is the value of a topic.
pub(super) struct TopicFolder {
    path: PathBuf,
    /// What every topic's name begins with.
    prefix: String,
    /// Longest file that is published.
    value_bytes_max: u64,
    /// Whether the value of a file that is gone ends.
    deletes: bool,
    watch: OwnedFd,
    /// Files that were there, for what is gone when the kernel could not tell of it; only if `deletes`.
    known: BTreeSet<OsString>,
    is_gone: bool,
}

impl TopicFolder {
    /// Watches a folder by inotify.
    ///
    /// # Errors
    /// The folder cannot be watched.
    pub(super) fn new(path: &Path, prefix: &str, value_bytes_max: u64, deletes: bool) -> io::Result<Self> {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC)?;
        let changes = WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&watch, path, changes)?;
        Ok(Self {
            path: path.to_owned(),
            prefix: prefix.to_owned(),
            value_bytes_max,
            deletes,
            watch,
            known: BTreeSet::new(),
            is_gone: false,
        })
    }

    /// Publishes the files that are there, and then each that changes. Never ends by itself but for a
    /// failure.
    ///
    /// # Errors
    /// The folder is gone or cannot be read; the server refuses this publisher.
    pub(super) fn follow(&mut self, writer: &mut TopicWriter) -> Result<(), Failure> {
        let name = self.path.display().to_string();
        let fault = |error: io::Error| Failure::from(format!("{name}: {error}"));
        let mut changes = self.files().map_err(fault)?;
        loop {
            for change in &changes {
                self.tell(change, writer)?;
            }
            changes = self.next().map_err(fault)?;
        }
    }

    /// All files that count, as if each had just been written, and those that are gone.
    fn files(&mut self) -> io::Result<Vec<FileChange>> {
        let mut present = BTreeSet::new();
        for entry in std::fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            if counts(&name) {
                present.insert(name);
            }
        }
        let gone = self.known.difference(&present).cloned().map(FileChange::Gone);
        let changes = gone.chain(present.iter().cloned().map(FileChange::Written)).collect();
        if self.deletes {
            self.known = present;
        }
        Ok(changes)
    }

    /// What happened next, however long it takes; of each file the last.
    fn next(&mut self) -> io::Result<Vec<FileChange>> {
        let mut changes: Vec<FileChange> = Vec::new();
        while !self.is_gone && changes.is_empty() {
            changes = self.told()?;
        }
        // What was there last is told before it is said that the folder is gone.
        if changes.is_empty() { Err(io::Error::other("the folder is gone")) } else { Ok(changes) }
    }

    /// What inotify tells at a time, of each file the last.
    fn told(&mut self) -> io::Result<Vec<FileChange>> {
        let mut changes: Vec<FileChange> = Vec::new();
        let mut has_overflown = false;
        let mut room = [MaybeUninit::uninit(); TOLD_BYTES];
        let mut told = inotify::Reader::new(&self.watch, &mut room);
        loop {
            match told.next() {
                Ok(event) => {
                    let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED;
                    self.is_gone |= event.events().intersects(gone | ReadFlags::UNMOUNT);
                    has_overflown |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    if let Some(change) = change(&event, self.deletes) {
                        changes.retain(|earlier| earlier.name() != change.name());
                        changes.push(change);
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if told.is_buffer_empty() {
                break;
            }
        }
        if has_overflown && !self.is_gone {
            // More happened than the kernel keeps: which files it was is not known.
            return self.files();
        }
        if self.deletes {
            changes.iter().for_each(|change| self.note(change));
        }
        Ok(changes)
    }

    fn note(&mut self, change: &FileChange) {
        match change {
            FileChange::Written(name) => self.known.insert(name.clone()),
            FileChange::Gone(name) => self.known.remove(name),
        };
    }

    /// Publishes what a file has now, or ends the value of one that is gone. What the server does not take is
    /// told, and left out until the file changes again.
    fn tell(&self, change: &FileChange, writer: &mut TopicWriter) -> Result<(), Failure> {
        let left_out = |said: &str| remark(&format!("staunch: a file was left out: {}\n", printable(said)));
        let Some(name) = change.name().to_str() else {
            left_out(&format!("{}: its name is no UTF-8", change.name().display()));
            return Ok(());
        };
        let topic = format!("{}{name}", self.prefix);
        let became = match change {
            FileChange::Gone(_) => patiently(writer, |writer| writer.delete(&topic)),
            FileChange::Written(_) => match self.read(name) {
                Ok(Some(value)) => {
                    let value = TopicValue::of(value);
                    patiently(writer, |writer| writer.put(&topic, &value))
                }
                Ok(None) => Ok(()),
                Err(error) => Err(PutFault::Value(format!("{name}: {error}"))),
            },
        };
        match became {
            Err(PutFault::Value(said) | PutFault::Full(said)) => left_out(&said),
            Err(fault) => return Err(fault.to_string().into()),
            Ok(()) => {}
        }
        Ok(())
    }

    /// What a file has; nothing if it is gone again, or is no file.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match open_regular(&self.path.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        let Some(file) = file else { return Ok(None) };
        let mut value = Vec::new();
        file.take(self.value_bytes_max + 1).read_to_end(&mut value)?;
        match value.len() as u64 > self.value_bytes_max {
            true => Err(io::Error::other(format!("it has more than {} bytes", self.value_bytes_max))),
            false => Ok(Some(value)),
        }
    }
}

impl FileChange {
    fn name(&self) -> &OsStr {
        let (Self::Written(name) | Self::Gone(name)) = self;
        name
    }
}

/// What an event tells of a file that counts; that one is gone only with `deletes`.
fn change(event: &inotify::Event<'_>, deletes: bool) -> Option<FileChange> {
    let name = OsStr::from_bytes(event.file_name()?.to_bytes());
    if !counts(name) || event.events().contains(ReadFlags::ISDIR) {
        return None;
    }
    if event.events().intersects(ReadFlags::CLOSE_WRITE | ReadFlags::MOVED_TO) {
        return Some(FileChange::Written(name.to_owned()));
    }
    deletes.then(|| FileChange::Gone(name.to_owned()))
}

/// Whether a file of this name is a topic: what begins with a dot is what programs write beside it.
fn counts(name: &OsStr) -> bool {
    !name.as_bytes().starts_with(b".")
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// A folder that is removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("staunch-topics-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn watch(&self, deletes: bool) -> TopicFolder {
            TopicFolder::new(&self.0, "", 8, deletes).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn written(name: &str) -> FileChange {
        FileChange::Written(name.into())
    }

    #[test]
    fn files_count_once_they_are_closed_or_have_their_name() {
        let folder = Scratch::new("closed");
        let path = |name: &str| folder.0.join(name);
        std::fs::write(path("there"), "1").unwrap();
        std::fs::write(path(".hidden"), "1").unwrap();
        let mut watched = folder.watch(false);
        assert_eq!(watched.files().unwrap(), [written("there")]);
        let half = File::create(path("a")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        std::fs::write(path(".b.tmp"), "2").unwrap();
        std::fs::rename(path(".b.tmp"), path("b")).unwrap();
        std::fs::remove_file(path("there")).unwrap();
        assert_eq!(watched.next().unwrap(), [written("b")]);
        drop(half);
        std::fs::write(path("b"), "3").unwrap();
        assert_eq!(watched.next().unwrap(), [written("a"), written("b")]);
    }

    #[test]
    fn files_that_are_gone_count_if_that_is_asked_for() {
        let folder = Scratch::new("gone");
        let path = |name: &str| folder.0.join(name);
        ["a", "b", "c"].iter().for_each(|name| std::fs::write(path(name), "1").unwrap());
        let mut watched = folder.watch(true);
        std::fs::remove_file(path("a")).unwrap();
        std::fs::rename(path("b"), path("d")).unwrap();
        std::fs::remove_file(path("c")).unwrap();
        std::fs::write(path("c"), "2").unwrap();
        let gone = |name: &str| FileChange::Gone(name.into());
        assert_eq!(watched.next().unwrap(), [gone("a"), gone("b"), written("d"), written("c")]);
        std::fs::remove_dir_all(&folder.0).unwrap();
        let fault = std::iter::repeat_with(|| watched.next()).find_map(Result::err).unwrap();
        assert_eq!(fault.to_string(), "the folder is gone");
    }

    /// What the kernel could not keep is found by looking: also what is gone.
    #[test]
    fn nothing_is_missed_when_more_happens_than_the_kernel_keeps() {
        let folder = Scratch::new("many");
        let path = |name: &str| folder.0.join(name);
        ["a", "b", "c"].iter().for_each(|name| std::fs::write(path(name), "1").unwrap());
        let mut watched = folder.watch(true);
        assert_eq!(watched.files().unwrap(), [written("a"), written("b"), written("c")]);
        let most = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        // Two events that follow each other and are the same are one.
        for _ in 0..=most.trim().parse::<usize>().unwrap() / 2 {
            std::fs::write(path("a"), "2").unwrap();
            std::fs::write(path("b"), "2").unwrap();
        }
        std::fs::remove_file(path("c")).unwrap();
        let mut told = Vec::new();
        while !told.contains(&FileChange::Gone("c".into())) {
            told = watched.next().unwrap();
        }
        assert_eq!(told, [FileChange::Gone("c".into()), written("a"), written("b")]);
    }

    #[test]
    fn a_file_is_bounded() {
        let folder = Scratch::new("long");
        let watched = folder.watch(false);
        std::fs::write(folder.0.join("a"), "12345678").unwrap();
        std::fs::write(folder.0.join("b"), "123456789").unwrap();
        assert_eq!(watched.read("a").unwrap(), Some(b"12345678".to_vec()));
        assert_eq!(watched.read("b").unwrap_err().to_string(), "it has more than 8 bytes");
        assert_eq!(watched.read("none").unwrap(), None);
    }

    #[test]
    fn links_and_what_is_no_file_are_not_read() {
        let folder = Scratch::new("links");
        let watched = folder.watch(false);
        let path = |name: &str| folder.0.join(name);
        std::fs::write(path("file"), "1").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", path("away")).unwrap();
        std::os::unix::fs::symlink("file", path("within")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("broken")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), fifo, mode, 0).unwrap();
        for name in ["away", "within", "broken"] {
            let fault = watched.read(name).unwrap_err().to_string();
            assert_eq!(fault, "it is a symbolic link, and those are not followed", "{name}");
        }
        for name in ["folder", "pipe"] {
            assert_eq!(watched.read(name).unwrap(), None, "{name}");
        }
    }
}
