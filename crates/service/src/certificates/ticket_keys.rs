//! Keys of tickets: from the files of a folder, read whole or not at all, the newest first; and from one
//! process to the next.
//!
//! It owns the sentences about them. It must never believe in a key that others could have read, nor write
//! one.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;
use staunch_config::Config;
use staunch_engine::Notice;
use staunch_program::Failure;
use staunch_tls::limits::TICKET_FILES_MAX;
use staunch_tls::{TicketFault, TicketKeys, Tickets};
use zeroize::Zeroizing;

use super::sealed_memory;

/// Bytes that are read of a file at most: one more than the longest form has, which tells a longer one.
const FILE_BYTES_MAX: usize = 81;
/// Rights of those who are neither the owner nor of the group: to read, and to write.
const OTHERS: u32 = 0o006;
const OTHERS_WRITE: u32 = 0o002;

/// A file with a key.
struct KeyFile {
    changed: SystemTime,
    path: PathBuf,
    bytes: Zeroizing<Vec<u8>>,
}

/// A name that stands for the files of the folder, if there is one: what is beside it is watched, and may be
/// read by a confined process.
pub(super) fn file(config: &Config) -> Option<PathBuf> {
    config.tls.ticket_keys.as_ref().map(|folder| folder.join("key"))
}

/// What has to be watched beside [`file()`]: where the folder is a link, that it leads elsewhere.
pub(super) fn link(config: &Config) -> Option<PathBuf> {
    config.tls.ticket_keys.clone().filter(|folder| folder.is_symlink())
}

/// The keys in the folder that the settings name. The newest file comes first; of two that are of one time,
/// that with the greater name. Files whose names begin with a dot are left out: they are unfinished.
///
/// # Errors
/// What is wrong with the folder or a file, with its name.
pub(super) fn read(config: &Config) -> Result<Option<TicketKeys>, Failure> {
    let Some(folder) = &config.tls.ticket_keys else { return Ok(None) };
    let mut files = files(folder)?;
    files.sort_by(|one, other| (other.changed, &other.path).cmp(&(one.changed, &one.path)));
    let (paths, bytes): (Vec<_>, Vec<_>) = files.into_iter().map(|file| (file.path, file.bytes)).unzip();
    TicketKeys::from_files(&bytes)
        .map(Some)
        .map_err(|fault| blame(fault.place().and_then(|place| paths.get(place)).unwrap_or(folder), &fault))
}

/// Reads the files again, if the settings name a folder. `known_fault`: what was said last of those that
/// cannot be used.
pub(super) fn look(config: &Config, tickets: &Tickets, known_fault: &mut String, say: &Notice) {
    let read = read(config).map_err(|failure| failure.text);
    match read.and_then(|keys| tickets.choose(keys.as_ref()).map_err(|fault| fault.to_string())) {
        Ok(have_changed) => {
            known_fault.clear();
            if have_changed {
                say("the keys of tickets have changed: the newest seals from now on");
            }
        }
        Err(text) if text == *known_fault => {}
        Err(text) => {
            say(&stay(&text));
            *known_fault = text;
        }
    }
}

/// The keys for the process that takes over. Without them clients make a full handshake once, so an upgrade
/// goes on without them.
pub(crate) fn hand_over(tickets: &Tickets, say: &Notice) -> Option<OwnedFd> {
    let sealed = sealed_memory::write(&tickets.hand_over()?);
    sealed.map_err(|error| say(&format!("the keys of tickets cannot be handed over: {error}"))).ok()
}

/// Goes on with the keys that the process before has left.
pub(crate) fn take_over(tickets: &Tickets, sealed: OwnedFd, say: &Notice) {
    let read = sealed_memory::read(sealed).map_err(|error| error.to_string());
    if let Err(text) = read.and_then(|keys| tickets.take_over(&keys).map_err(|fault| fault.to_string())) {
        say(&format!("the keys of tickets were not taken over: {text}"));
    }
}

/// What is said when keys cannot be exchanged.
pub(super) fn stay(fault: &dyn Display) -> String {
    format!("the keys of tickets stay as they were: {fault}")
}

fn blame(path: &Path, why: &dyn Display) -> Failure {
    Failure::configuration(format!("ticket_keys: {}: {why}", path.display()))
}

fn files(folder: &Path) -> Result<Vec<KeyFile>, Failure> {
    let listed = || -> io::Result<Vec<PathBuf>> {
        if fs::metadata(folder)?.mode() & OTHERS_WRITE != 0 {
            return Err(io::Error::other("others can write to this folder: chmod o-w"));
        }
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if !entry.file_name().as_bytes().starts_with(b".") {
                paths.push(entry.path());
            }
        }
        Ok(paths)
    };
    let paths = listed().map_err(|error| blame(folder, &with_remedy(error)))?;
    if paths.len() > TICKET_FILES_MAX {
        return Err(blame(folder, &TicketFault::Count(paths.len())));
    }
    let read = |path: PathBuf| read_file(&path).map_err(|error| blame(&path, &error));
    paths.into_iter().map(read).collect()
}

/// What may be done about a folder that cannot be listed.
fn with_remedy(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    let text = "let the server's user read this folder; one that has taken the place of another since the \
                start is closed to a confined server: exchange the files in it, or restart";
    io::Error::other(format!("{error}: {text}"))
}

/// Reads a file, and nothing that would never end.
fn read_file(path: &Path) -> io::Result<KeyFile> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("this is no file"));
    }
    if about.mode() & OTHERS != 0 {
        return Err(io::Error::other("others can read or write it: chmod o-rw"));
    }
    // Of full size from the beginning: growing would leave a copy behind.
    let mut bytes = Zeroizing::new(vec![0; FILE_BYTES_MAX]);
    let mut length = 0;
    loop {
        match file.read(&mut bytes[length..])? {
            0 => break,
            count => length += count,
        }
    }
    bytes.truncate(length);
    Ok(KeyFile { changed: about.modified()?, path: path.to_path_buf(), bytes })
}
