//! Folders of certificates, watched for changes.
//!
//! It must never read a file, and never wake anybody but for a change, or for what becomes due after hours.
//! Where the system gives no inotify instance, every minute counts as a change.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use staunch_netio::clock;

/// A pair is two files, written one after the other: the second is waited for.
const SETTLE: Duration = Duration::from_millis(500);
/// How often it is looked whether something is due: certificates of the local authority are renewed a month
/// before their end, and keys of tickets are changed every 8 hours.
const DUE_SECONDS: i64 = 60 * 60;
/// How often files are read again that cannot be watched: soon enough for a renewal, and few bytes.
const BLIND_SECONDS: i64 = 60;

/// The folders of certificates that are watched.
pub(super) struct WatchedFolders {
    /// The instance, made for the first folder: a host has few of them for each user, often 128
    /// (`fs.inotify.max_user_instances`), and frees those of ended processes late.
    inotify: OnceLock<OwnedFd>,
    /// An instance was asked for last and not given.
    is_blind: AtomicBool,
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
        let news = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (inotify, is_blind) = (OnceLock::new(), AtomicBool::new(false));
        Ok(Self { inotify, is_blind, news, awaited: Mutex::default() })
    }

    /// There are other certificates: the thread has to wait otherwise.
    pub(super) fn tell(&self) {
        // The only failure is that it was told already, very often.
        let _ = rustix::io::write(&self.news, &1u64.to_ne_bytes());
    }

    /// Watches the folders in which these files stand, and those to which their links lead: those that have
    /// these names now, so to be called again when something has changed. A folder that cannot be watched is
    /// given back. Of one that is not there it is watched whether it comes.
    ///
    /// # Errors
    /// There are folders, and the system gives no inotify instance: EMFILE, ENFILE or ENOMEM.
    pub(super) fn add(&self, files: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
        let links = files.iter().filter_map(|file| file.canonicalize().ok());
        let all = files.iter().cloned().chain(links);
        let folders: BTreeSet<PathBuf> = all.filter_map(folder_of).collect();
        if folders.is_empty() {
            self.is_blind.store(false, Ordering::Relaxed);
            return Ok(Vec::new());
        }
        let instance = self.instance()?;
        let mut awaited = self.awaited.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for (_, number) in awaited.extract_if(|folder, _| folder.exists()) {
            // The watch may be gone by itself.
            let _ = inotify::remove_watch(instance, number);
        }
        let is_unwatched = |folder: &PathBuf| {
            !watch(instance, folder) && {
                let number = watch_above(instance, folder);
                awaited.extend(number.map(|number| (folder.clone(), number)));
                number.is_none()
            }
        };
        Ok(folders.into_iter().filter(is_unwatched).collect())
    }

    /// The inotify instance, asked for until there is one.
    fn instance(&self) -> io::Result<&OwnedFd> {
        if let Some(instance) = self.inotify.get() {
            return Ok(instance);
        }
        let made = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        self.is_blind.store(made.is_err(), Ordering::Relaxed);
        let made = made?;
        Ok(self.inotify.get_or_init(|| made))
    }

    /// Waits for a change, or where there are certificates until something may be due. Whether there was a
    /// change, or may have been.
    pub(super) fn wait(&self, has_certificates: bool) -> bool {
        let is_blind = self.is_blind.load(Ordering::Relaxed);
        let inotify = self.inotify.get();
        let mut awaited: Vec<PollFd<'_>> =
            [&self.news].into_iter().chain(inotify).map(|end| PollFd::new(end, PollFlags::IN)).collect();
        // EINTR is as good as a time that is over.
        let _ = poll(&mut awaited, longest_wait(has_certificates, is_blind).as_ref());
        let is_readable = |place: usize| {
            awaited.get(place).is_some_and(|end: &PollFd<'_>| end.revents().contains(PollFlags::IN))
        };
        let (has_news, has_changed) = (is_readable(0), is_readable(1));
        if has_news {
            let _ = rustix::io::read(&self.news, &mut [0; 8]);
        }
        let Some(inotify) = inotify.filter(|_| has_changed) else { return is_blind && !has_news };
        clock::pause(SETTLE);
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(inotify, &mut buffer);
        // What has changed does not matter: everything is read again.
        while reader.next().is_ok() {}
        true
    }
}

/// Watches what a folder is to come into that is not there.
fn watch_above(instance: &OwnedFd, folder: &Path) -> Option<i32> {
    // Where certificates stand as well, everything else goes on to be watched.
    let come = WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::MASK_ADD;
    let mut above = folder.ancestors().skip(1).filter(|_| !folder.exists());
    above.find_map(|above| inotify::add_watch(instance, above, come).ok())
}

fn watch(instance: &OwnedFd, folder: &Path) -> bool {
    let come = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::CREATE;
    // A key of tickets that is removed opens no longer; one that others could read is good once they cannot.
    let gone = WatchFlags::MOVED_FROM | WatchFlags::DELETE;
    // A folder in whose place another one comes.
    let exchanged = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
    let changes = come | gone | exchanged | WatchFlags::ATTRIB;
    inotify::add_watch(instance, folder, changes).is_ok()
}

/// How long it is waited at most; without end where there is nothing to look after.
fn longest_wait(has_certificates: bool, is_blind: bool) -> Option<Timespec> {
    let tv_sec = if is_blind { BLIND_SECONDS } else { DUE_SECONDS };
    has_certificates.then_some(Timespec { tv_sec, tv_nsec: 0 })
}

fn folder_of(file: PathBuf) -> Option<PathBuf> {
    let folder = file.parent()?;
    Some(if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_path_buf() })
}

/// The line for a folder that cannot be watched.
pub(super) fn unseen(folder: &Path) -> String {
    format!("{} cannot be watched for changes: HUP reads its certificates again", folder.display())
}

/// The line for a system that lets no folder be watched.
pub(super) fn blind(error: &io::Error) -> String {
    format!(
        "certificates cannot be watched for changes ({error}; fs.inotify.max_user_instances): \
         they are read again every minute"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_watched_are_read_every_minute() {
        let table = [
            (false, false, None),
            (false, true, None),
            (true, false, Some(DUE_SECONDS)),
            (true, true, Some(60)),
        ];
        for (has_certificates, is_blind, seconds) in table {
            let wait = longest_wait(has_certificates, is_blind);
            assert_eq!(wait.map(|wait| wait.tv_sec), seconds, "{has_certificates} {is_blind}");
        }
    }

    #[test]
    fn an_instance_is_made_for_the_first_folder() {
        let folders = WatchedFolders::new().expect("an eventfd");
        assert_eq!(folders.add(&[]).expect("nothing is asked for"), Vec::<PathBuf>::new());
        assert!(folders.inotify.get().is_none());
        folders.add(&["/dev/null".into()]).expect("an instance");
        assert!(folders.inotify.get().is_some());
    }
}
