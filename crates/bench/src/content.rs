//! The files that are served: made once under `target/bench`, the same bytes on every machine.
//!
//! It owns those folders. It must never touch a file outside them. No file is sparse or compresses well: both
//! would be dishonest.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Size of the big file.
pub(super) const BIG_BYTES: u64 = 1 << 30;
/// How many files the tree has.
pub(super) const TREE_FILES: u32 = 100_000;
const TREE_FOLDER_FILES: u32 = 1000;

/// A stream of bytes that is the same for the same seed (the splitmix64 generator).
#[derive(Debug, Clone)]
pub(super) struct Bytes {
    state: u64,
}

impl Bytes {
    /// A stream for a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number of the stream.
    pub(super) fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.state;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// The next bytes, any value.
    pub(super) fn binary(&mut self, length: usize) -> Vec<u8> {
        let words = (0..length.div_ceil(8)).flat_map(|_| self.next_number().to_le_bytes());
        words.take(length).collect()
    }

    /// The next bytes, letters and digits and a line's end every 64.
    pub(super) fn text(&mut self, length: usize) -> Vec<u8> {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let bytes = self.binary(length).into_iter().enumerate();
        bytes
            .map(|(index, byte)| if index % 64 == 63 { b'\n' } else { ALPHABET[usize::from(byte % 64)] })
            .collect()
    }
}

/// Makes sure that the folder has a text file of this size, and gives its bytes.
///
/// # Errors
/// The file cannot be written.
pub(super) fn small_file(folder: &Path, name: &str, size_bytes: usize) -> Result<Vec<u8>, String> {
    let body = Bytes::new(size_bytes as u64).text(size_bytes);
    create_folder(folder)?;
    write(&folder.join(name), &body)?;
    Ok(body)
}

/// Makes sure that the big file exists, and reads it once so that it stands in the page cache.
///
/// # Errors
/// The file cannot be written or read.
pub(super) fn big_file(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    if fs::metadata(&path).map_or(0, |metadata| metadata.len()) != BIG_BYTES {
        create_folder(folder)?;
        let text = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&path).map_err(text)?);
        let mut stream = Bytes::new(BIG_BYTES);
        for _ in 0..BIG_BYTES >> 20 {
            file.write_all(&stream.binary(1 << 20)).map_err(text)?;
        }
        file.into_inner().map_err(|error| error.to_string())?.sync_all().map_err(text)?;
    }
    let mut file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    std::io::copy(&mut file, &mut std::io::sink()).map_err(|error| error.to_string())?;
    Ok(path)
}

/// Makes sure that the tree of 100 000 files of 100 bytes to 8 KiB exists under `folder`.
///
/// # Errors
/// A file cannot be written.
pub(super) fn tree(folder: &Path) -> Result<(), String> {
    let complete = folder.with_extension("complete");
    if complete.exists() {
        return Ok(());
    }
    for number in 0..TREE_FILES {
        let path = folder.join(&tree_path(number)[1..]);
        if number % TREE_FOLDER_FILES == 0 {
            create_folder(path.parent().unwrap_or(folder))?;
        }
        write(&path, &tree_body(number, 0))?;
    }
    write(&complete, b"")
}

/// URL path of a file of the tree, numbered from 0.
pub(super) fn tree_path(number: u32) -> String {
    format!("/{:03}/{:03}.txt", number / TREE_FOLDER_FILES, number % TREE_FOLDER_FILES)
}

/// Content of a file of the tree in one of its versions. Version 0 is on the disk at first.
pub(super) fn tree_body(number: u32, version: u32) -> Vec<u8> {
    let mut stream = Bytes::new(u64::from(number) | u64::from(version) << 32);
    let size_bytes = 100 + stream.next_number() % (8192 - 100);
    stream.text(size_bytes as usize)
}

/// Replaces a file of the tree by another version, as editors and deployments do: written beside, then
/// renamed.
///
/// # Errors
/// The file cannot be written or renamed.
pub(super) fn replace(folder: &Path, number: u32, version: u32) -> Result<(), String> {
    let path = folder.join(&tree_path(number)[1..]);
    let beside = path.with_extension("new");
    write(&beside, &tree_body(number, version))?;
    fs::rename(&beside, &path).map_err(|error| format!("{}: {error}", path.display()))
}

fn create_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn write(path: &Path, body: &[u8]) -> Result<(), String> {
    fs::write(path, body).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_repeatable_and_differ_by_version() {
        assert_eq!(tree_body(7, 0), tree_body(7, 0));
        assert_ne!(tree_body(7, 0), tree_body(7, 1));
        assert_ne!(tree_body(7, 0), tree_body(8, 0));
        for number in 0..200 {
            assert!((100..8192).contains(&tree_body(number, 0).len()));
        }
        assert_eq!(tree_path(99_999), "/099/999.txt");
    }
}
