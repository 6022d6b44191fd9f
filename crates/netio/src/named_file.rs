//! Files that settings name, read whole: regular files up to a bound, at start and while the server runs.
//!
//! This module must never wait for a file's other end, nor hold more of it than its caller allows: a pipe
//! without a writer and `/dev/zero` would be the end of a server that only looks at its settings again.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// Room behind what is read of a file, so that its end is found without growing.
const ROOM_BYTES: usize = 64;
/// A pipe that says nothing for so long is given up.
const SILENCE_S: i64 = 30;
/// Read of a pipe at once: a quarter of what it holds unless told otherwise (pipe(7)).
const PIECE_BYTES: usize = 16 * 1024;

/// Reads a regular file of at most so many bytes.
///
/// # Errors
/// The file cannot be opened or read, is no regular file, or longer.
pub fn read_file(path: &Path, most_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_file_into(path, most_bytes, &mut bytes)?;
    Ok(bytes)
}

/// As [`read_file`], behind what is in a buffer, which is grown once alone: for secrets, whose buffer wipes
/// itself.
///
/// # Errors
/// As [`read_file`]. Then the buffer may have a part of the file.
pub fn read_file_into(path: &Path, most_bytes: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
    let (mut file, kind, length_bytes) = open(path)?;
    if kind != FileType::RegularFile {
        return Err(no_file(kind));
    }
    let length = usize::try_from(length_bytes).unwrap_or(usize::MAX);
    if length > most_bytes {
        return Err(too_long(most_bytes));
    }
    bytes.try_reserve_exact(length.saturating_add(ROOM_BYTES))?;
    let before = bytes.len();
    // A byte above the bound tells that the file has grown.
    (&mut file).take((most_bytes as u64).saturating_add(1)).read_to_end(bytes)?;
    if bytes.len() - before > most_bytes { Err(too_long(most_bytes)) } else { Ok(()) }
}

/// Reads a text from a regular file of at most so many bytes.
///
/// # Errors
/// As [`read_file`], or a line is not UTF-8.
pub fn read_text(path: &Path, most_bytes: usize) -> io::Result<String> {
    text_of(read_file(path, most_bytes)?)
}

/// As [`read_text`], from a pipe or a terminal too (`/dev/stdin`, a shell's `<(...)`): for a file that is
/// handed over by whoever starts a program.
///
/// # Errors
/// As [`read_text`], or nothing comes for long.
pub fn read_handed_text(path: &Path, most_bytes: usize) -> io::Result<String> {
    let (mut file, kind, _) = open(path)?;
    match kind {
        FileType::RegularFile => return read_text(path, most_bytes),
        FileType::Fifo | FileType::CharacterDevice => {}
        kind => return Err(no_file(kind)),
    }
    let mut bytes = Vec::new();
    let mut piece = [0; PIECE_BYTES];
    loop {
        wait(&file)?;
        match file.read(&mut piece) {
            Ok(0) => return text_of(bytes),
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        if bytes.len() > most_bytes {
            return Err(too_long(most_bytes));
        }
    }
}

/// Opens a file without waiting, and tells its kind and length.
fn open(path: &Path) -> io::Result<(File, FileType, u64)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let about = rustix::fs::fstat(&file)?;
    let length_bytes = u64::try_from(about.st_size).unwrap_or(0);
    Ok((file.into(), FileType::from_raw_mode(about.st_mode), length_bytes))
}

/// Waits until something can be read, or the other end is closed.
fn wait(file: &File) -> io::Result<()> {
    let silence = Timespec { tv_sec: SILENCE_S, tv_nsec: 0 };
    loop {
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&silence)) {
            Ok(0) => return Err(io::Error::other(format!("nothing came by this pipe for {SILENCE_S} s"))),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let right = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = right.iter().filter(|byte| **byte == b'\n').count() + 1;
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is not UTF-8: save it as UTF-8"))
    })
}

fn no_file(kind: FileType) -> io::Error {
    io::Error::other(match kind {
        FileType::Directory => "this is no file, but a folder",
        FileType::Fifo => "this is no file, but a pipe",
        FileType::CharacterDevice | FileType::BlockDevice => "this is no file, but a device",
        _ => "this is no file",
    })
}

fn too_long(most_bytes: usize) -> io::Error {
    io::Error::other(format!("it is longer than {most_bytes} bytes"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::path::PathBuf;

    use super::*;

    /// A folder of our own, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("named-file-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn with(&self, name: &str, bytes: &[u8]) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn regular_files_up_to_the_bound() {
        let folder = Folder::new("bound");
        let path = folder.with("a", b"12345");
        assert_eq!(read_file(&path, 5).unwrap(), b"12345");
        assert_eq!(read_handed_text(&path, 5).unwrap(), "12345");
        let said = read_file(&path, 4).unwrap_err().to_string();
        assert_eq!(said, "it is longer than 4 bytes");
        let mut bytes = b"0".to_vec();
        read_file_into(&path, 5, &mut bytes).unwrap();
        assert_eq!(bytes, b"012345");
        // A file of /proc has no length by its inode.
        assert!(!read_file(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
        assert!(read_file(Path::new("/proc/self/status"), 8).is_err());
        assert_eq!(read_text(&folder.0.join("b"), 5).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn pipes_and_devices_are_no_files() {
        let folder = Folder::new("kinds");
        let pipe = folder.0.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let zero = folder.0.join("zero");
        std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
        for (path, what) in [(&pipe, "pipe"), (&zero, "device"), (&folder.0, "folder")] {
            let said = read_text(path, 9).unwrap_err().to_string();
            assert_eq!(said, format!("this is no file, but a {what}"));
        }
        assert!(read_handed_text(&zero, 9).unwrap_err().to_string().starts_with("it is longer"));
        assert_eq!(read_handed_text(Path::new("/dev/null"), 9).unwrap(), "");
    }

    #[test]
    fn a_pipe_that_is_handed_over_is_read_to_its_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        let writing = std::thread::spawn(move || {
            (0..1000).for_each(|_| writer.write_all(&[b'a'; 100]).unwrap());
        });
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        assert_eq!(read_handed_text(&path, 100_000).unwrap().len(), 100_000);
        writing.join().unwrap();
    }

    #[test]
    fn the_first_line_that_is_no_text_is_named() {
        let folder = Folder::new("text");
        let path = folder.with("a", b"one\ntwo\n\xff\n");
        assert_eq!(read_text(&path, 99).unwrap_err().to_string(), "line 3 is not UTF-8: save it as UTF-8");
    }
}
