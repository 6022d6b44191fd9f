//! The tree of files a conversation is about, in a temporary folder that is deleted at the end.
//!
//! It must never write outside its own folder. Order: [`Tree::new`], any number of [`Tree::apply`], drop.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::conversation::{Change, Content};

/// Modification time of every file that is given no other: Tue, 02 Jan 2024 03:04:05 GMT.
pub const MODIFIED_UNIX_S: i64 = 1_704_164_645;

/// A served folder.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// A new empty folder.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("staunch-tests-{}-{number}", std::process::id()));
        let root = root.join("root");
        fs::create_dir_all(&root)?;
        Ok(Self { root })
    }

    /// A new folder with these changes made, or with the standard tree if there are none.
    ///
    /// # Errors
    /// What the system says.
    pub fn with(changes: &[Change]) -> io::Result<Self> {
        let tree = Self::new()?;
        let standard;
        let changes = if changes.is_empty() {
            standard = standard_changes();
            &standard
        } else {
            changes
        };
        for change in changes {
            tree.apply(change)?;
        }
        Ok(tree)
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes one change.
    ///
    /// # Errors
    /// What the system says.
    pub fn apply(&self, change: &Change) -> io::Result<()> {
        match change {
            Change::File { path, content } => {
                let path = self.ready(path)?;
                fs::write(&path, bytes_of(content))?;
                if let Content::Sparse(length_bytes) = content {
                    OpenOptions::new().write(true).open(&path)?.set_len(*length_bytes)?;
                }
                set_modified(&path, MODIFIED_UNIX_S)
            }
            Change::Append { path, content } => {
                OpenOptions::new().append(true).open(self.root.join(path))?.write_all(&bytes_of(content))
            }
            Change::Folder(path) => fs::create_dir_all(self.root.join(path)),
            Change::Link { path, target } => std::os::unix::fs::symlink(target, self.ready(path)?),
            Change::Fifo(path) => self.fifo(path),
            Change::Delete(path) => {
                let path = self.root.join(path);
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
            }
            Change::Rename { from, to } => fs::rename(self.root.join(from), self.ready(to)?),
            Change::Truncate { path, length_bytes } => {
                OpenOptions::new().write(true).open(self.root.join(path))?.set_len(*length_bytes)
            }
            Change::Modified { path, unix_s } => set_modified(&self.root.join(path), *unix_s),
        }
    }

    /// Makes a pipe with a name.
    ///
    /// # Errors
    /// The errors of mknod(2).
    pub fn fifo(&self, path: &str) -> io::Result<()> {
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        let fifo = rustix::fs::FileType::Fifo;
        Ok(rustix::fs::mknodat(rustix::fs::CWD, self.ready(path)?, fifo, mode, 0)?)
    }

    fn ready(&self, path: &str) -> io::Result<PathBuf> {
        let path = self.root.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(path)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some(parent) = self.root.parent() {
            let _ = fs::remove_dir_all(parent);
        }
    }
}

/// The bytes of a content; a hole has none.
pub fn bytes_of(content: &Content) -> Vec<u8> {
    match content {
        Content::Bytes(bytes) => bytes.clone(),
        Content::Repeat(count, text) => text.repeat(*count as usize),
        Content::Pattern(length) => (0..*length).map(pattern_byte).collect(),
        Content::Sparse(_) => Vec::new(),
    }
}

/// The byte of the pattern at an offset.
pub fn pattern_byte(offset_bytes: u64) -> u8 {
    (offset_bytes.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// The changes that build the standard tree (`tests/wire/README.md` lists it).
pub fn standard_changes() -> Vec<Change> {
    let file = |path: &str, content| Change::File { path: path.to_owned(), content };
    let text = |text: &str| Content::Bytes(text.as_bytes().to_vec());
    let link = |path: &str, target: &str| Change::Link { path: path.to_owned(), target: target.to_owned() };
    vec![
        file("index.html", text("<!doctype html><title>Home</title>\n")),
        file("a.txt", text("hello, world\n")),
        file("empty.txt", text("")),
        file("page.html", Content::Repeat(200, b"<p>All rivers run into the sea.</p>\n".to_vec())),
        file("big.bin", Content::Pattern(3_000_000)),
        file("picture.png", Content::Pattern(2000)),
        file("sub/index.html", text("<!doctype html><title>Sub</title>\n")),
        file("sub/b.txt", text("below\n")),
        file("bare/c.txt", text("no index here\n")),
        file(".hidden", text("hidden\n")),
        file(".git/config", text("hidden\n")),
        file(".well-known/security.txt", text("Contact: mailto:a@example.org\n")),
        file("with space.txt", text("spaced\n")),
        file("gr\u{fc}\u{df}e.txt", text("umlauts\n")),
        file("100%.txt", text("percent\n")),
        file("%2e.txt", text("written with a percent\n")),
        file("a+b.txt", text("plus\n")),
        link("inside.txt", "a.txt"),
        link("outside.txt", "/etc/hostname"),
        link("parent.txt", "../secret.txt"),
        link("broken.txt", "nothing"),
        file("../secret.txt", text("secret\n")),
        Change::Fifo("pipe".to_owned()),
    ]
}

fn set_modified(path: &Path, unix_s: i64) -> io::Result<()> {
    let since = Duration::from_secs(unix_s.unsigned_abs());
    let time = if unix_s < 0 { SystemTime::UNIX_EPOCH - since } else { SystemTime::UNIX_EPOCH + since };
    File::options().write(true).open(path)?.set_times(FileTimes::new().set_modified(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_tree_is_built_and_deleted() {
        let tree = Tree::with(&[]).expect("a tree");
        let root = tree.root().to_owned();
        assert_eq!(fs::read(root.join("a.txt")).expect("a file"), b"hello, world\n");
        assert_eq!(fs::metadata(root.join("big.bin")).expect("a file").len(), 3_000_000);
        drop(tree);
        assert!(!root.exists());
    }

    #[test]
    fn no_shift_maps_the_pattern_onto_itself() {
        let bytes = bytes_of(&Content::Pattern(2000));
        for shift in 1..1000 {
            assert_ne!(bytes[..100], bytes[shift..shift + 100], "{shift}");
        }
    }
}
