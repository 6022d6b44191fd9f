//! The error log: the server's own lines, on standard error or in a file.
//!
//! Order of calls: [`ErrorLog::new`], [`ErrorLog::prepare`] and [`ErrorLog::commit`] at start and whenever
//! the configuration changed; before that no thread is started, and lines wait. [`ErrorLog::finish`] at the
//! end. It must never make anybody wait who has something to say.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use staunch_engine::{Form, LineCounts, LineQueue};

use super::settings::{LogError, Target};
use super::sink;

/// The error log of a process.
pub struct ErrorLog {
    place: RwLock<Destination>,
    counts: Arc<LineCounts>,
}

/// Where lines go.
struct Destination {
    /// `None`: standard error.
    path: Option<PathBuf>,
    queue: LineQueue,
}

/// Another place for lines, opened and not yet written to.
pub struct Prepared(Option<Destination>);

impl ErrorLog {
    /// Lines for standard error.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn new() -> io::Result<Arc<Self>> {
        let counts = Arc::<LineCounts>::default();
        let queue = LineQueue::of_standard_error(Arc::clone(&counts))?;
        Ok(Arc::new(Self { place: RwLock::new(Destination { path: None, queue }), counts }))
    }

    /// Says a line, or several.
    pub fn say(&self, text: &str) {
        self.read(|place| place.queue.say(text));
    }

    /// Opens where lines are to go: a file, to write to its end, or standard error.
    ///
    /// # Errors
    /// If it cannot be opened, or no thread be started: then all stays as it was.
    pub fn prepare(&self, path: Option<PathBuf>) -> Result<Prepared, LogError> {
        if self.read(|place| place.path == path) {
            let started = self.read(|place| place.queue.start());
            return started.map(|()| Prepared(None)).map_err(|error| failed(path, error));
        }
        let counts = Arc::clone(&self.counts);
        let queue = match &path {
            None => LineQueue::of_standard_error(counts),
            Some(path) => append(path).map(|file| LineQueue::new(file, dated(), counts)),
        };
        let queue = queue.and_then(|queue| queue.start().map(|()| queue));
        match queue {
            Ok(queue) => Ok(Prepared(Some(Destination { path, queue }))),
            Err(error) => Err(failed(path, error)),
        }
    }

    /// Lines go there from now on. What was said before is still written where it was meant to go.
    pub fn commit(&self, prepared: Prepared) {
        if let Some(place) = prepared.0 {
            let mut present = self.place.write().unwrap_or_else(PoisonError::into_inner);
            // Without its thread lines said at start would be lost; it is there but for a lack of memory.
            let _ = present.queue.start();
            *present = place;
        }
    }

    /// Opens the file that now has the name. If that fails, the old one is kept and a line says so.
    pub fn reopen(&self) {
        self.read(|place| {
            let Some(path) = &place.path else { return };
            match append(path) {
                Ok(file) => place.queue.exchange(file),
                Err(error) => place.queue.say(&format!(
                    "{}: cannot be opened again, so the old one is kept: {error}",
                    path.display()
                )),
            }
        });
    }

    /// Waits until everything said before is written or lost, but no longer than `patience`. Whether it is.
    pub fn finish(&self, patience: Duration) -> bool {
        self.read(|place| place.queue.finish(patience))
    }

    /// What became of lines until now.
    pub fn counts(&self) -> Arc<LineCounts> {
        Arc::clone(&self.counts)
    }

    fn read<T>(&self, look: impl FnOnce(&Destination) -> T) -> T {
        look(&self.place.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn failed(path: Option<PathBuf>, error: io::Error) -> LogError {
    LogError { target: path.map_or(Target::StandardError, Target::File), error }
}

fn append(path: &std::path::Path) -> io::Result<File> {
    Ok(sink::open_file(path)?.0)
}

/// `2026-11-20T10:00:00Z staunch[4711]: text`
fn dated() -> Form {
    // tidy: allow(clock): a line of a log says when it was written.
    Box::new(|text| line(SystemTime::now(), text))
}

fn line(time: SystemTime, text: &str) -> String {
    let unix_s = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    format!("{}Z staunch[{}]: {text}\n", super::lines::rfc3339(unix_s), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::testing::Folder;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn file(path: &std::path::Path) -> Arc<ErrorLog> {
        let log = ErrorLog::new().unwrap();
        log.commit(log.prepare(Some(path.to_path_buf())).unwrap());
        log
    }

    #[test]
    fn lines_go_where_the_name_leads() {
        let folder = Folder::new();
        let (path, moved) = (folder.path().join("error"), folder.path().join("moved"));
        let log = file(&path);
        log.say("one");
        assert!(log.finish(PATIENCE));
        std::fs::rename(&path, &moved).unwrap();
        log.reopen();
        log.say("two");
        assert!(log.finish(PATIENCE));
        let (old, new) = (std::fs::read_to_string(&moved).unwrap(), std::fs::read_to_string(&path).unwrap());
        assert!(old.ends_with(&format!("Z staunch[{}]: one\n", std::process::id())), "{old}");
        assert!(new.ends_with(": two\n") && new.lines().count() == 1, "{new}");
    }

    #[test]
    fn what_is_prepared_and_given_up_changes_nothing() {
        let folder = Folder::new();
        let (path, other) = (folder.path().join("error"), folder.path().join("other"));
        let log = file(&path);
        drop(log.prepare(Some(other.clone())).unwrap());
        assert!(log.prepare(Some(folder.path().join("absent/error"))).is_err());
        log.say("one");
        assert!(log.finish(PATIENCE));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "");
        assert_eq!((log.counts().written(), log.counts().lost()), (1, 0));
    }

    #[test]
    fn a_line_has_its_time() {
        let time = UNIX_EPOCH + Duration::from_millis(1_795_168_514_999);
        assert!(line(time, "text").starts_with("2026-11-20T09:55:14Z staunch["));
    }
}
