//! Folders of certificates, watched for changes.
//!
//! It must never read a file, and never wake anybody but for a change, or for what becomes due after hours.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use staunch_netio::clock;

/// A pair is two files, written one after the other: the second is waited for.
const SETTLE: Duration = Duration::from_millis(500);
/// How often it is looked whether something is due: certificates of the local authority are renewed a month
/// before their end, and keys of tickets are changed every 8 hours.
const DUE_SECONDS: i64 = 60 * 60;

/// The folders of certificates that are watched.
pub(super) struct WatchedFolders {
    inotify: OwnedFd,
    /// Readable when the thread is to look what it waits for.
    news: OwnedFd,
    /// Folders that are not there, with the number of the watch on what they are to come into.
    awaited: Mutex<HashMap<PathBuf, i32>>,
}

impl WatchedFolders {
    /// None yet.
    ///
    /// # Errors
    /// EMFILE, or another limit of the system.
    pub(super) fn new() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let news = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { inotify, news, awaited: Mutex::default() })
    }

    /// There are other certificates: the thread has to wait otherwise.
    pub(super) fn tell(&self) {
        // The only failure is that it was told already, very often.
        let _ = rustix::io::write(&self.news, &1u64.to_ne_bytes());
    }

    /// Watches the folders in which these files stand, and those to which their links lead: those that have
    /// these names now, so to be called again when something has changed. A folder that cannot be watched is
    /// given back. Of one that is not there it is watched whether it comes.
    pub(super) fn add(&self, files: &[PathBuf]) -> Vec<PathBuf> {
        let links = files.iter().filter_map(|file| file.canonicalize().ok());
        let all = files.iter().cloned().chain(links);
        let folders: BTreeSet<PathBuf> = all.filter_map(folder_of).collect();
        let mut awaited = self.awaited.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for (_, number) in awaited.extract_if(|folder, _| folder.exists()) {
            // It may be gone by itself.
            let _ = inotify::remove_watch(&self.inotify, number);
        }
        let is_unwatched = |folder: &PathBuf| {
            !self.watch(folder) && {
                let number = self.watch_above(folder);
                awaited.extend(number.map(|number| (folder.clone(), number)));
                number.is_none()
            }
        };
        folders.into_iter().filter(is_unwatched).collect()
    }

    /// Watches what a folder is to come into that is not there.
    fn watch_above(&self, folder: &Path) -> Option<i32> {
        // Where certificates stand as well, everything else goes on to be watched.
        let come = WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::MASK_ADD;
        let mut above = folder.ancestors().skip(1).filter(|_| !folder.exists());
        above.find_map(|above| inotify::add_watch(&self.inotify, above, come).ok())
    }

    fn watch(&self, folder: &Path) -> bool {
        let come = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::CREATE;
        // A key of tickets that is removed opens no longer; one that others could read is good once they
        // cannot.
        let gone = WatchFlags::MOVED_FROM | WatchFlags::DELETE;
        // A folder in whose place another one comes.
        let exchanged = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
        let changes = come | gone | exchanged | WatchFlags::ATTRIB;
        inotify::add_watch(&self.inotify, folder, changes).is_ok()
    }

    /// Waits for a change, or where there are certificates until something may be due. Whether there was a
    /// change.
    pub(super) fn wait(&self, has_certificates: bool) -> bool {
        let timeout = has_certificates.then_some(Timespec { tv_sec: DUE_SECONDS, tv_nsec: 0 });
        let awaited = [&self.inotify, &self.news].map(|descriptor| PollFd::new(descriptor, PollFlags::IN));
        let mut awaited = awaited;
        // EINTR is as good as a time that is over.
        let _ = poll(&mut awaited, timeout.as_ref());
        let [has_changed, has_news] = awaited.map(|one| one.revents().contains(PollFlags::IN));
        if has_news {
            let _ = rustix::io::read(&self.news, &mut [0; 8]);
        }
        if !has_changed {
            return false;
        }
        clock::pause(SETTLE);
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        // What has changed does not matter: everything is read again.
        while reader.next().is_ok() {}
        true
    }
}

fn folder_of(file: PathBuf) -> Option<PathBuf> {
    let folder = file.parent()?;
    Some(if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_path_buf() })
}
