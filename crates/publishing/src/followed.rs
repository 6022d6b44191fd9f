//! A file that grows, and may be replaced or cut, as a source of lines: what `tail -F` reads.
//!
//! It owns the place up to which the file was read. It must never give a line twice, nor a part of a line
//! that its writer may still finish; nor follow a link, for who may write into the folder could have lines of
//! any file published that this process may read.

use std::fs::{File, Metadata};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

use super::regular::open_regular;

/// Longest wait between two looks at the file. Where inotify tells of no change, as on network file systems,
/// lines come this late.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A file that is followed, line by line, as `tail -F` does.
pub(super) struct Followed {
    path: PathBuf,
    line_bytes_max: u64,
    open: Option<Opened>,
    /// Bytes of a line whose end is not written yet.
    line: Vec<u8>,
    /// inotify on the file's folder; none where it cannot be had.
    watch: Option<OwnedFd>,
}

struct Opened {
    reader: BufReader<File>,
    /// Device and inode number, which differ in another file of the same name.
    identity: (u64, u64),
    /// Bytes read so far: a file that is shorter was cut.
    read_bytes: u64,
}

/// What happened to the file since it was read to its end.
enum Found {
    Same,
    Cut,
    Replaced,
}

impl Followed {
    /// Follows a file: from its beginning, or with `from_end` from its present end. A file that is not there
    /// yet is read from its beginning.
    ///
    /// # Errors
    /// The file is there, and cannot be read.
    pub(super) fn new(path: &Path, from_end: bool, line_bytes_max: u64) -> io::Result<Self> {
        let path = path.to_owned();
        let watch = watch(&path).ok();
        let mut followed = Self { path, line_bytes_max, open: None, line: Vec::new(), watch };
        followed.open()?;
        if let Some(open) = followed.open.as_mut().filter(|_| from_end) {
            open.read_bytes = open.reader.seek(SeekFrom::End(0))?;
        }
        Ok(followed)
    }

    /// Whether the file is there and open.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The next line without its end, however long it takes to come.
    ///
    /// # Errors
    /// The file cannot be read, or a line is too long.
    pub(super) fn next(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(line) = self.next_there()? {
                return Ok(line);
            }
            self.wait();
        }
    }

    /// The next line, if it is there.
    fn next_there(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(line) = self.read()? {
                return Ok(Some(line));
            }
            match self.look()? {
                Found::Same if self.open.is_some() => return Ok(None),
                Found::Same => {
                    self.open()?;
                    if self.open.is_none() {
                        return Ok(None);
                    }
                }
                Found::Cut => {
                    self.line.clear();
                    if let Some(open) = &mut self.open {
                        open.read_bytes = 0;
                        open.reader.seek(SeekFrom::Start(0))?;
                    }
                }
                Found::Replaced => {
                    // The old file may have grown between the last read and this look.
                    let last = self.read()?;
                    if last.is_none() {
                        self.open = None;
                    }
                    let last = last.or_else(|| Some(std::mem::take(&mut self.line)));
                    if let Some(line) = last.filter(|line| self.open.is_some() || !line.is_empty()) {
                        return Ok(Some(line));
                    }
                }
            }
        }
    }

    /// The next whole line of the file that is open.
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(open) = &mut self.open else { return Ok(None) };
        let left = (self.line_bytes_max + 1).saturating_sub(self.line.len() as u64);
        let count = (&mut open.reader).take(left).read_until(b'\n', &mut self.line)?;
        open.read_bytes += count as u64;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            return Ok(Some(std::mem::take(&mut self.line)));
        }
        match self.line.len() as u64 > self.line_bytes_max {
            true => Err(io::Error::other(format!("a line has more than {} bytes", self.line_bytes_max))),
            false => Ok(None),
        }
    }

    /// Compares the file of that name with the one that is open.
    fn look(&self) -> io::Result<Found> {
        let Some(open) = &self.open else { return Ok(Found::Same) };
        let found = match std::fs::symlink_metadata(&self.path) {
            // The file was renamed or removed, and its writer may still add to it until there is a new one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Same),
            found => found?,
        };
        Ok(match (identity(&found) == open.identity, found.len() < open.read_bytes) {
            (false, _) => Found::Replaced,
            (true, true) => Found::Cut,
            (true, false) => Found::Same,
        })
    }

    /// Opens the file that has the name now; without one nothing is open.
    fn open(&mut self) -> io::Result<()> {
        let file = match open_regular(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        let no_file = "it is no regular file; what a pipe brings is read from standard input";
        let file = file.ok_or_else(|| io::Error::other(no_file))?;
        let identity = identity(&file.metadata()?);
        self.open = Some(Opened { reader: BufReader::new(file), identity, read_bytes: 0 });
        Ok(())
    }

    /// Waits until something changes in the folder, at most `LOOK`.
    fn wait(&self) {
        let watched = self.watch.as_ref().map(|watch| PollFd::new(watch, PollFlags::IN));
        // A failed poll only ends the wait early: the file is looked at after every wait.
        let _ = poll(&mut watched.into_iter().collect::<Vec<_>>(), Some(&LOOK));
        let mut told = [0; 4096];
        let Some(watch) = &self.watch else { return };
        while rustix::io::read(watch, &mut told).is_ok_and(|count| count > 0) {}
    }
}

fn identity(of: &Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}

/// Watches the folder of a file by inotify: any change in it is a reason to look.
fn watch(path: &Path) -> io::Result<OwnedFd> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    let changes = inotify::WatchFlags::MODIFY
        | inotify::WatchFlags::CREATE
        | inotify::WatchFlags::MOVED_TO
        | inotify::WatchFlags::DELETE;
    inotify::add_watch(&watch, folder, changes)?;
    Ok(watch)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// A folder with a file that is written, replaced and cut; removed at the end.
    struct Written(PathBuf);

    impl Written {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("staunch-follow-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn path(&self) -> PathBuf {
            self.0.join("log")
        }

        fn append(&self, text: &str) {
            let mut file = File::options().create(true).append(true).open(self.path()).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        fn follow(&self, from_end: bool) -> Followed {
            Followed::new(&self.path(), from_end, 8).unwrap()
        }
    }

    impl Drop for Written {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// All lines that can be read now.
    fn lines(followed: &mut Followed) -> Vec<String> {
        let next = || followed.next_there().unwrap();
        std::iter::from_fn(next).map(|line| String::from_utf8(line).unwrap()).collect()
    }

    #[test]
    fn lines_come_when_they_are_whole() {
        let file = Written::new("grows");
        file.append("old\n");
        let (mut all, mut new) = (file.follow(false), file.follow(true));
        assert_eq!((lines(&mut all), lines(&mut new)), (vec!["old".to_owned()], vec![]));
        file.append("a\n\nb");
        assert_eq!(
            (lines(&mut all), lines(&mut new)),
            (vec!["a".into(), "".into()], vec!["a".into(), "".into()])
        );
        file.append("c\n");
        assert_eq!((lines(&mut all), lines(&mut new)), (vec!["bc".to_owned()], vec!["bc".to_owned()]));
    }

    #[test]
    fn a_file_is_waited_for_and_read_from_its_beginning() {
        let file = Written::new("absent");
        let mut followed = file.follow(true);
        assert!(!followed.is_open());
        assert!(lines(&mut followed).is_empty());
        let path = file.path();
        let writer = std::thread::spawn(move || std::fs::write(path, "first\n").unwrap());
        assert_eq!(followed.next().unwrap(), b"first");
        writer.join().unwrap();
    }

    #[test]
    fn a_file_that_is_replaced_is_read_to_its_end_before_the_new_one() {
        let file = Written::new("replaced");
        file.append("a\n");
        let mut followed = file.follow(true);
        file.append("b\n");
        let moved = file.0.join("log.1");
        std::fs::rename(file.path(), &moved).unwrap();
        assert_eq!(lines(&mut followed), ["b"], "there is no new one yet");
        let mut late = File::options().append(true).open(&moved).unwrap();
        late.write_all(b"late\nlast").unwrap();
        file.append("new\n");
        assert_eq!(lines(&mut followed), ["late", "last", "new"]);
    }

    #[test]
    fn a_file_that_is_cut_is_read_from_its_beginning() {
        let file = Written::new("cut");
        file.append("a\nb\nhal");
        let mut followed = file.follow(false);
        assert_eq!(lines(&mut followed), ["a", "b"]);
        std::fs::write(file.path(), "c\n").unwrap();
        assert_eq!(lines(&mut followed), ["c"]);
    }

    #[test]
    fn a_link_is_not_followed_also_where_it_takes_the_place_of_the_file() {
        let file = Written::new("link");
        let secret = file.0.join("secret");
        std::fs::write(&secret, "secret\n").unwrap();
        file.append("a\n");
        let mut followed = file.follow(false);
        assert_eq!(lines(&mut followed), ["a"]);
        std::fs::remove_file(file.path()).unwrap();
        std::os::unix::fs::symlink(&secret, file.path()).unwrap();
        let told = "it is a symbolic link, and those are not followed";
        let next = std::iter::repeat_with(|| followed.next_there()).find_map(Result::err).unwrap();
        assert_eq!(next.to_string(), told);
        let fault = Followed::new(&file.path(), false, 8).err().unwrap();
        assert_eq!(fault.to_string(), told);
        let fault = Followed::new(Path::new("/dev/null"), false, 8).err().unwrap().to_string();
        assert!(fault.starts_with("it is no regular file"), "{fault}");
    }

    #[test]
    fn a_line_is_bounded() {
        let file = Written::new("long");
        file.append("12345678\n123456789\n");
        let mut followed = file.follow(false);
        assert_eq!(followed.next().unwrap(), b"12345678");
        let fault = followed.next().unwrap_err().to_string();
        assert_eq!(fault, "a line has more than 8 bytes");
    }
}
