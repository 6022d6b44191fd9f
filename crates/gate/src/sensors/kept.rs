//! A file of the kernel's that is kept open, and read anew from its beginning each time.
//!
//! It owns the descriptor and a buffer. It must never keep what it read: the file says something else each
//! time.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// An open file of the kernel's.
pub(super) struct Kept {
    file: File,
    buffer: Vec<u8>,
}

impl Kept {
    /// Opens it; of its text the first so many bytes are wanted.
    ///
    /// # Errors
    /// The file and why, in a few words.
    pub(super) fn open(path: &Path, bytes: usize) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { file, buffer: vec![0; bytes] })
    }

    /// Its whole lines; nothing when it cannot be read or has none.
    pub(super) fn read(&mut self) -> Option<&str> {
        self.read_to(b'\n')
    }

    /// Its whole words, of a file that has no lines.
    pub(super) fn read_words(&mut self) -> Option<&str> {
        self.read_to(b' ')
    }

    /// Up to the last of these bytes: what is behind it may have been cut off.
    fn read_to(&mut self, last: u8) -> Option<&str> {
        let length = self.file.read_at(&mut self.buffer, 0).ok()?;
        let text = &self.buffer[..length];
        let end = text.iter().rposition(|&byte| byte == last)? + 1;
        std::str::from_utf8(&text[..end]).ok()
    }
}

/// The numbers in a text; what is none is passed over.
pub(super) fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok())
}

/// The number behind a word, in a text of words and numbers in turn.
pub(super) fn number_after(text: &str, name: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace();
    words.find(|word| *word == name)?;
    words.next()?.parse().ok()
}
