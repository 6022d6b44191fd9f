//! Files to publish, opened so that nothing but a regular file is read.
//!
//! It must never follow a link at the end of a path, nor wait for a pipe.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Opens a file of a folder for reading; none if there is something else of that name, such as a folder or a
/// pipe.
///
/// # Errors
/// It is a symbolic link, is not there, or may not be read.
pub(super) fn open_regular(folder: impl AsFd, name: impl Arg + Copy) -> io::Result<Option<File>> {
    // Before it is opened, for opening some devices does something.
    let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(is_link()),
        _ => return Ok(None),
    }
    // What takes the file's place meanwhile is neither followed nor waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::LOOP) => return Err(is_link()),
        opened => File::from(opened?),
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

fn is_link() -> io::Error {
    io::Error::other("it is a symbolic link, and those are not followed")
}
