//! The error log: the server's own lines, in a file instead of on standard error.
//!
//! A thread of its own writes them, so that nobody who has something to say waits for a disk. What finds no
//! room is gone: a server that has so much to say has said it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::settings::{LogError, Target};

/// Lines waiting to be written: each is said once a second at most, by a handful of places.
const LINES_WAITING_MAX: usize = 256;

/// See the module's text.
pub struct ErrorLog {
    entries: SyncSender<Entry>,
}

enum Entry {
    Line(SystemTime, String),
    Reopen,
    Flush(SyncSender<()>),
}

impl ErrorLog {
    /// Opens the file, to write to its end.
    ///
    /// # Errors
    /// If it cannot be opened, or no thread be started.
    pub fn open(path: PathBuf) -> Result<Arc<Self>, LogError> {
        let (entries, received) = mpsc::sync_channel(LINES_WAITING_MAX);
        let started = append(&path).and_then(|file| {
            let name = path.clone();
            thread::Builder::new().name("error-log".into()).spawn(move || write(&name, file, &received))
        });
        match started {
            Ok(_) => Ok(Arc::new(Self { entries })),
            Err(error) => Err(LogError { target: Target::File(path), error }),
        }
    }

    /// Writes a line.
    pub fn say(&self, text: &str) {
        // tidy: allow(clock): a line of a log says when it was written.
        let now = SystemTime::now();
        let _ = self.entries.try_send(Entry::Line(now, text.to_owned()));
    }

    /// Opens the file that now has the name. If that fails, the old one is kept.
    pub fn reopen(&self) {
        let _ = self.entries.try_send(Entry::Reopen);
    }

    /// Waits until everything said before is written, but no longer than `patience`. Whether it is.
    pub fn finish(&self, patience: Duration) -> bool {
        let (sender, done) = mpsc::sync_channel(1);
        self.entries.try_send(Entry::Flush(sender)).is_ok() && done.recv_timeout(patience).is_ok()
    }
}

fn append(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

fn write(path: &PathBuf, mut file: File, entries: &Receiver<Entry>) {
    for entry in entries {
        // Where should one say that saying failed?
        match entry {
            Entry::Line(time, text) => _ = file.write_all(line(time, &text).as_bytes()),
            Entry::Reopen => file = append(path).unwrap_or(file),
            Entry::Flush(done) => _ = done.try_send(()),
        }
    }
}

/// `2026-11-20T10:00:00Z staunch[4711]: text`
fn line(time: SystemTime, text: &str) -> String {
    let unix_s = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    format!("{}Z staunch[{}]: {text}\n", super::lines::rfc3339(unix_s), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::testing::Folder;

    #[test]
    fn lines_go_where_the_name_leads() {
        let folder = Folder::new();
        let (path, moved) = (folder.path().join("error"), folder.path().join("moved"));
        let log = ErrorLog::open(path.clone()).unwrap();
        log.say("one");
        assert!(log.finish(Duration::from_secs(20)));
        std::fs::rename(&path, &moved).unwrap();
        log.reopen();
        log.say("two");
        assert!(log.finish(Duration::from_secs(20)));
        let (old, new) = (std::fs::read_to_string(&moved).unwrap(), std::fs::read_to_string(&path).unwrap());
        assert!(old.ends_with(&format!("Z staunch[{}]: one\n", std::process::id())), "{old}");
        assert!(new.ends_with(": two\n") && new.lines().count() == 1, "{new}");
    }

    #[test]
    fn a_line_has_its_time() {
        let time = UNIX_EPOCH + Duration::from_millis(1_795_168_514_999);
        assert!(line(time, "text").starts_with("2026-11-20T09:55:14Z staunch["));
    }
}
