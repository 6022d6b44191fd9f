//! Folders of certificates, watched for changes.
//!
//! It must never read a file, and never wake anybody but for a change, or for what becomes due after hours.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
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
}

impl WatchedFolders {
    /// None yet.
    ///
    /// # Errors
    /// EMFILE, or another limit of the system.
    pub(super) fn new() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { inotify, news: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// There are other certificates: the thread has to wait otherwise.
    pub(super) fn tell(&self) {
        // The only failure is that it was told already, very often.
        let _ = rustix::io::write(&self.news, &1u64.to_ne_bytes());
    }

    /// Watches the folders in which these files stand, and those to which their links lead. A folder that
    /// cannot be watched is given back.
    pub(super) fn add(&self, files: &[PathBuf]) -> Vec<PathBuf> {
        let links = files.iter().filter_map(|file| file.canonicalize().ok());
        let all = files.iter().cloned().chain(links);
        let folders: BTreeSet<PathBuf> = all.filter_map(folder_of).collect();
        folders.into_iter().filter(|folder| !self.watch(folder)).collect()
    }

    fn watch(&self, folder: &Path) -> bool {
        let come = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::CREATE;
        // A key of tickets that is removed opens no longer; one that others could read is good once they
        // cannot.
        let changes = come | WatchFlags::MOVED_FROM | WatchFlags::DELETE | WatchFlags::ATTRIB;
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
