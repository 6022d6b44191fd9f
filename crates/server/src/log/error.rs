//! The error log: the server's own lines, on standard error, on standard output or in a file.
//!
//! Order of calls: [`ErrorLog::new`], [`ErrorLog::prepare_what_can_be`] at start or [`ErrorLog::prepare`]
//! whenever the configuration changed, and [`ErrorLog::commit`] behind both; before that no thread is
//! started, and lines wait. [`ErrorLog::finish`] at the end. It must never make anybody wait who has
//! something to say.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
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
    target: Target,
    queue: LineQueue,
    /// Why they go to standard error instead, if they do.
    trouble: Option<String>,
}

/// Another place for lines, opened and not yet written to.
pub struct Prepared(Option<Destination>);

impl Prepared {
    /// Why lines will go to standard error instead, if they will.
    pub fn trouble(&self) -> Option<&str> {
        self.0.as_ref()?.trouble.as_deref()
    }
}

impl ErrorLog {
    /// Lines for standard error.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn new() -> io::Result<Arc<Self>> {
        let counts = Arc::<LineCounts>::default();
        let queue = LineQueue::of_standard_error(Arc::clone(&counts))?;
        let place = Destination { target: Target::StandardError, queue, trouble: None };
        Ok(Arc::new(Self { place: RwLock::new(place), counts }))
    }

    /// Says a line, or several.
    pub fn say(&self, text: &str) {
        self.read(|place| place.queue.say(text));
    }

    /// Opens where lines are to go.
    ///
    /// # Errors
    /// If it cannot be opened, or no thread be started: then all stays as it was.
    pub fn prepare(&self, target: Target) -> Result<Prepared, LogError> {
        if self.read(|place| place.target == target && place.trouble.is_none()) {
            let started = self.read(|place| place.queue.start());
            return started.map(|()| Prepared(None)).map_err(|error| LogError { target, error });
        }
        match started(open(&target, Arc::clone(&self.counts))) {
            Ok(queue) => Ok(Prepared(Some(Destination { target, queue, trouble: None }))),
            Err(error) => Err(LogError { target, error }),
        }
    }

    /// As [`Self::prepare`], for a start: what cannot be opened is no reason not to serve. Lines go to
    /// standard error instead, and [`Self::trouble`] says why, until [`Self::reopen`] finds it.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn prepare_what_can_be(&self, target: Target) -> Result<Prepared, LogError> {
        let trouble = match self.prepare(target.clone()) {
            Ok(prepared) => return Ok(prepared),
            Err(error) => Some(format!("{error}; its lines go to standard error")),
        };
        match started(open(&Target::StandardError, Arc::clone(&self.counts))) {
            Ok(queue) => Ok(Prepared(Some(Destination { target, queue, trouble }))),
            Err(error) => Err(LogError { target, error }),
        }
    }

    /// Why lines go to standard error and not where they were meant to, in a sentence, if they do.
    pub fn trouble(&self) -> Option<String> {
        self.read(|place| place.trouble.clone())
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
        if self.trouble().is_some() {
            return self.find();
        }
        self.read(|place| {
            let Target::File(path) = &place.target else { return };
            match append(path) {
                Ok(file) => place.queue.exchange(file),
                Err(error) => place.queue.say(&format!(
                    "{}: cannot be opened again, so the old one is kept: {error}",
                    path.display()
                )),
            }
        });
    }

    /// Tries again to open what could not be.
    fn find(&self) {
        match self.prepare(self.read(|place| place.target.clone())) {
            Ok(prepared) => self.commit(prepared),
            Err(error) => self.say(&format!("error_log: still not to be had: {error}")),
        }
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

fn started(queue: io::Result<LineQueue>) -> io::Result<LineQueue> {
    queue.and_then(|queue| queue.start().map(|()| queue))
}

fn open(target: &Target, counts: Arc<LineCounts>) -> io::Result<LineQueue> {
    match target {
        Target::StandardError => LineQueue::of_standard_error(counts),
        Target::StandardOutput => {
            let file = io::stdout().as_fd().try_clone_to_owned()?.into();
            Ok(LineQueue::new(file, Box::new(|text| format!("staunch: {text}\n")), counts))
        }
        Target::File(path) => Ok(LineQueue::new(append(path)?, dated(), counts)),
        Target::Syslog(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn append(path: &Path) -> io::Result<File> {
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

    fn target(path: &Path) -> Target {
        Target::File(path.to_path_buf())
    }

    fn file(path: &Path) -> Arc<ErrorLog> {
        let log = ErrorLog::new().unwrap();
        log.commit(log.prepare(target(path)).unwrap());
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
        drop(log.prepare(target(&other)).unwrap());
        assert!(log.prepare(target(&folder.path().join("absent/error"))).is_err());
        log.say("one");
        assert!(log.finish(PATIENCE));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "");
        assert_eq!((log.counts().written(), log.counts().lost()), (1, 0));
    }

    #[test]
    fn what_cannot_be_opened_at_start_is_found_later() {
        let folder = Folder::new();
        let path = folder.path().join("later/error");
        let log = ErrorLog::new().unwrap();
        log.commit(log.prepare_what_can_be(target(&path)).unwrap());
        assert!(log.trouble().is_some_and(|why| why.contains("the folder of the log")));
        log.reopen();
        assert!(log.trouble().is_some());
        std::fs::create_dir(folder.path().join("later")).unwrap();
        log.reopen();
        assert_eq!(log.trouble(), None);
        log.say("one");
        assert!(log.finish(PATIENCE));
        assert!(std::fs::read_to_string(&path).unwrap().ends_with(": one\n"));
    }

    #[test]
    fn a_line_has_its_time() {
        let time = UNIX_EPOCH + Duration::from_millis(1_795_168_514_999);
        assert!(line(time, "text").starts_with("2026-11-20T09:55:14Z staunch["));
    }
}
