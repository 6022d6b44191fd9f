//! Files to publish, opened so that nothing but a regular file is read.
//!
//! It must never follow a link at the end of a path, nor wait for a pipe.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, lstat, open};
use rustix::io::Errno;

/// Opens a file for reading; none if there is something else of that name, such as a folder or a pipe.
///
/// # Errors
/// The file is a symbolic link, is not there, or may not be read.
pub(super) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    // Before it is opened, for opening some devices does something.
    let found = lstat(path)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(is_link()),
        _ => return Ok(None),
    }
    // What takes the file's place meanwhile is neither followed nor waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::empty()) {
        Err(Errno::LOOP) => return Err(is_link()),
        opened => File::from(opened?),
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

fn is_link() -> io::Error {
    io::Error::other("it is a symbolic link, and those are not followed")
}
