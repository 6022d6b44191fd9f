//! Sees changes beneath the root, and has what they touch forgotten at once.
//!
//! It owns the watches (inotify) and what an event means for keys. A folder is watched from the first time
//! something in it is loaded, before that is opened; so new folders and their content need no care here:
//! nothing of them can be held before they are watched. It must never read content.
//!
//! What cannot be watched is told to the caller of [`Watch::cover`], who then has it checked when used:
//! folders behind symbolic links, on other file systems, beyond the system's limit. Changes through a shared
//! memory mapping and by other machines (network file systems) give no events.
//!
//! Order for the thread that watches: wait until [`Watch::events`] can be read, then [`Watch::take_changes`].

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use staunch_engine::Notice;

use crate::limits::WATCHES_MAX;

/// Events are read in pieces of this size: a thousand or so at once.
const EVENTS_BYTES: usize = 64 * 1024;

/// The watches of a site's root and of the folders beneath it.
pub(crate) struct Watch {
    inotify: Option<OwnedFd>,
    root: PathBuf,
    notice: Notice,
    folders: Mutex<Folders>,
    limit_told: AtomicBool,
    /// Events can be read no more.
    broken: AtomicBool,
}

/// Watched folders: keys with their closing `/`, and the kernel's numbers for them.
#[derive(Debug, Default)]
struct Folders {
    numbers: HashMap<Arc<[u8]>, i32>,
    names: HashMap<i32, Arc<[u8]>>,
    /// The root itself was moved or removed: its name says nothing any more.
    lost: bool,
}

/// What changed, gathered from many events.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Files and folders, without a closing `/`, each in the folder that is named first.
    pub(crate) names: HashSet<(Arc<[u8]>, Vec<u8>)>,
    /// Folders gone, moved or closed, with everything in them: keys with a closing `/`.
    pub(crate) trees: HashSet<Vec<u8>>,
    /// Events were lost, or the root was: everything.
    pub(crate) everything: bool,
}

impl Watch {
    /// Watches beneath the folder of this name, or nothing if the system will not: `notice` is told.
    pub(crate) fn new(root: &Path, notice: Notice) -> Self {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        if inotify.is_none() {
            notice(&format!(
                "{} cannot be watched for changes (fs.inotify.max_user_instances); \
                 its files are checked once a second when used",
                root.display()
            ));
        }
        let (limit_told, broken) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { inotify, root: root.to_path_buf(), notice, folders: Mutex::default(), limit_told, broken }
    }

    /// Sees to it that changes in a folder (a key with its closing `/`) and of its name are seen from now on.
    /// False if they may not be.
    pub(crate) fn cover(&self, folder: &[u8]) -> bool {
        let Some(inotify) = &self.inotify else { return false };
        let mut folders = self.lock();
        if folders.lost {
            return false;
        }
        if folders.numbers.contains_key(folder) {
            return true;
        }
        // From the root down: a folder is covered only if the folders it is in are.
        let ends = folder.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(index, _)| index + 1);
        ends.into_iter().all(|end| self.add(inotify, &mut folders, &folder[..end]))
    }

    fn add(&self, inotify: &OwnedFd, folders: &mut Folders, folder: &[u8]) -> bool {
        if folders.numbers.contains_key(folder) {
            return true;
        }
        if folders.numbers.len() >= WATCHES_MAX {
            return self.tell_limit();
        }
        let relative = folder.strip_prefix(b"/").unwrap_or(folder);
        match inotify::add_watch(
            inotify,
            self.root.join(OsStr::from_bytes(relative)),
            flags(relative.is_empty()),
        ) {
            // A folder that is watched under another name (bind mounts, or a rename not yet heard of) stays
            // with that name.
            Ok(number) if folders.names.contains_key(&number) => false,
            Ok(number) => {
                let folder: Arc<[u8]> = folder.into();
                folders.names.insert(number, Arc::clone(&folder));
                folders.numbers.insert(folder, number);
                true
            }
            Err(Errno::NOSPC | Errno::NOMEM) => self.tell_limit(),
            Err(_) => false,
        }
    }

    /// Says once that not everything is watched.
    fn tell_limit(&self) -> bool {
        if !self.limit_told.swap(true, Ordering::Relaxed) {
            (self.notice)(
                "no more folders can be watched for changes (fs.inotify.max_user_watches); \
                 files in further folders are checked once a second when used",
            );
        }
        false
    }

    /// Whether the root has left its name.
    pub(crate) fn is_lost(&self) -> bool {
        self.lock().lost
    }

    /// Where events come, as long as they can be read.
    pub(crate) fn events(&self) -> Option<BorrowedFd<'_>> {
        let readable = !self.broken.load(Ordering::Relaxed);
        self.inotify.as_ref().filter(|_| readable).map(AsFd::as_fd)
    }

    /// All changes of one reading; none if nothing has happened. If events can be read no more, everything
    /// has changed, and nothing is covered from then on.
    pub(crate) fn take_changes(&self) -> Changes {
        let mut changes = Changes::default();
        let Some(inotify) = &self.inotify else { return changes };
        let mut memory = vec![MaybeUninit::uninit(); EVENTS_BYTES];
        let mut reader = Reader::new(inotify, &mut memory);
        let mut gone = HashSet::new();
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_bytes());
                    self.note(event.wd(), event.events(), name, &mut changes, &mut gone);
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return changes,
                Err(_) => {
                    self.broken.store(true, Ordering::Relaxed);
                    self.lose(&mut changes);
                    return changes;
                }
            }
            if reader.is_buffer_empty() {
                self.release(&mut changes, &gone);
                return changes;
            }
        }
    }

    fn note(
        &self,
        number: i32,
        events: ReadFlags,
        name: Option<&[u8]>,
        changes: &mut Changes,
        gone: &mut HashSet<i32>,
    ) {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            changes.everything = true;
            return;
        }
        let Some(folder) = self.lock().names.get(&number).cloned() else { return };
        match name {
            Some(name) => {
                let tree =
                    ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO | ReadFlags::DELETE | ReadFlags::ATTRIB;
                if events.contains(ReadFlags::ISDIR) && events.intersects(tree) {
                    changes.trees.insert([&*folder, name, b"/"].concat());
                }
                changes.names.insert((folder, name.to_vec()));
            }
            None if events.intersects(ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF) && *folder == *b"/" => {
                self.lose(changes);
            }
            None if events.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) => {
                gone.insert(number);
                changes.trees.insert(folder.to_vec());
            }
            None if *folder == *b"/" => changes.everything = true,
            None => {}
        }
    }

    /// The root has left its name, or events cannot be read: from now on nothing is covered.
    fn lose(&self, changes: &mut Changes) {
        self.lock().lost = true;
        changes.everything = true;
    }

    /// Ends the watches of folders that are gone or bear another name now; who needs them covers them anew.
    fn release(&self, changes: &mut Changes, gone: &HashSet<i32>) {
        if changes.trees.is_empty() && !changes.everything {
            return;
        }
        let mut folders = self.lock();
        let Folders { numbers, names, .. } = &mut *folders;
        names.retain(|number, name| {
            let released = changes.contains_tree_of(name);
            if released {
                numbers.remove(name);
                if let (Some(inotify), false) = (&self.inotify, gone.contains(number)) {
                    // The folder may be gone meanwhile, which is as good.
                    let _ = inotify::remove_watch(inotify, *number);
                }
            }
            !released
        });
    }

    fn lock(&self) -> MutexGuard<'_, Folders> {
        self.folders.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Changes {
    /// These changes under the keys that they have where their folder is served below a path with its closing
    /// `/`.
    pub(crate) fn below(self, prefix: &[u8]) -> Self {
        if prefix == b"/" {
            return self;
        }
        let within = |key: &[u8]| [prefix, key.strip_prefix(b"/").unwrap_or(key)].concat();
        let names = self.names.into_iter().map(|(folder, name)| (within(&folder).into(), name)).collect();
        let whole = self.everything.then(|| prefix.to_vec());
        let trees = self.trees.iter().map(|tree| within(tree)).chain(whole).collect();
        Self { names, trees, everything: false }
    }

    /// Whether a key lies in a changed tree, or everything changed.
    pub(crate) fn contains_tree_of(&self, key: &[u8]) -> bool {
        let mut slashes = key.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        self.everything || slashes.any(|(index, _)| self.trees.contains(&key[..=index]))
    }
}

fn flags(is_root: bool) -> WatchFlags {
    let events = WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MODIFY
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::ATTRIB;
    let root = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
    // The root may be named by a symbolic link; nothing beneath it is.
    if is_root {
        events | root | WatchFlags::ONLYDIR
    } else {
        events | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW
    }
}

#[cfg(test)]
#[path = "watch/tests.rs"]
mod tests;
