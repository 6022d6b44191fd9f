//! The first preparation of a whole site: finds files, and loads them, the small ones first, while there is
//! room.
//!
//! It must never hold up the start or a request: it runs on a thread that does nothing else and takes no
//! room from others. It ends early when its site is given up.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType};

use super::branches::Branch;
use super::load::Load;
use super::negotiate::Encoding;
use super::path::is_servable;
use super::store::Room;
use crate::limits::{WALK_BUDGET_SIXTEENTHS, WALK_DEPTH_MAX, WALK_FILES_MAX};

/// How far it is.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    files: AtomicU64,
    done: AtomicBool,
    given_up: AtomicBool,
}

impl Walk {
    /// Files found so far.
    pub(crate) fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// Whether everything was loaded that has room.
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }

    /// Walks once through the whole site.
    pub(crate) fn run(&self, load: &Load) {
        self.load_all(load, self.find_all(load));
        self.skip();
    }

    /// Ends it early.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Says that there is nothing to prepare.
    pub(crate) fn skip(&self) {
        self.done.store(true, Ordering::Relaxed);
    }

    /// All files that can be held, with their sizes.
    fn find_all(&self, load: &Load) -> Vec<(u64, Box<[u8]>)> {
        let mut files = Vec::new();
        let branches: HashSet<&[u8]> = load.branches.iter().map(Branch::prefix).collect();
        let mut folders: Vec<_> = branches.iter().map(|prefix| (prefix.to_vec(), 0)).collect();
        folders.push((b"/".to_vec(), 0));
        while let Some((folder, depth)) = folders.pop().filter(|_| !self.is_given_up()) {
            load.cover(&folder);
            let Ok(opened) = load.open_beneath(&folder) else { continue };
            for (name, kind, size_bytes) in read(&opened.file) {
                let path = [&folder[..], &name].concat();
                if !is_servable(&path, load.config.dotfiles) || files.len() >= WALK_FILES_MAX {
                    continue;
                }
                match kind {
                    FileType::Directory if depth < WALK_DEPTH_MAX => {
                        let folder = [&path[..], b"/"].concat();
                        // A branch is walked through from its own top.
                        if !branches.contains(&folder[..]) {
                            folders.push((folder, depth + 1));
                        }
                    }
                    FileType::RegularFile => {
                        self.files.fetch_add(1, Ordering::Relaxed);
                        if size_bytes <= load.held_file_bytes_max() {
                            files.push((size_bytes, path.into_boxed_slice()));
                        }
                    }
                    _ => {}
                }
            }
        }
        files
    }

    fn load_all(&self, load: &Load, mut files: Vec<(u64, Box<[u8]>)>) {
        files.sort_unstable();
        let index: HashSet<&[u8]> = load.config.index.iter().map(|name| name.as_bytes()).collect();
        for (size_bytes, path) in &files {
            if self.is_given_up() || !load.store.has_room(*size_bytes, WALK_BUDGET_SIXTEENTHS) {
                return;
            }
            if is_side_file(path) || load.store.find(path).is_some() {
                continue;
            }
            load.load(path, 0, Room::Found);
            let (folder, name) = path.split_at(super::path::folder_of(path).len());
            if index.contains(name) {
                load.load(folder, 0, Room::Found);
            }
        }
    }
}

/// Names, kinds and sizes in a folder. Symbolic links are left alone: they are loaded when asked for.
fn read(folder: &OwnedFd) -> Vec<(Vec<u8>, FileType, u64)> {
    let Ok(entries) = Dir::read_from(folder) else { return Vec::new() };
    let look = |entry: rustix::fs::DirEntry| {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            return None;
        }
        let kind = entry.file_type();
        if kind == FileType::Directory {
            return Some((name.to_bytes().to_vec(), kind, 0));
        }
        let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let kind = FileType::from_raw_mode(status.st_mode);
        Some((name.to_bytes().to_vec(), kind, u64::try_from(status.st_size).unwrap_or(0)))
    };
    entries.filter_map(Result::ok).filter_map(look).collect()
}

/// `style.css.br` belongs to `style.css` and is loaded with it.
fn is_side_file(path: &[u8]) -> bool {
    let stem = Encoding::ALL.iter().find_map(|encoding| path.strip_suffix(encoding.extension().as_bytes()));
    stem.is_some_and(super::mime::is_known)
}
