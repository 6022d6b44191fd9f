//! Files that the file of settings includes: which they are, and what stands in them.
//!
//! This module must never judge the text of a file. Each file is read once, so nothing leads in a circle,
//! and all together have a bound: whatever a name leads to, a server that reads them again goes on.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use staunch_config::File;
use staunch_netio::named_file::read_text;

use super::places::plain;
use crate::limits::{INCLUDED_BYTES_MAX, SETTINGS_BYTES_MAX};

/// More files than this nobody keeps by hand: each holds a site at least, which has threads' work and memory.
const FILES_MAX: usize = 1000;

/// Reads the files that a file of this name includes.
///
/// # Errors
/// All faults, each in a line with its place.
pub(super) fn read(file: &File, name: &Path) -> Result<Vec<File>, String> {
    let folder = name.parent().unwrap_or(Path::new(""));
    let mut seen = Seen::new(name);
    let (mut files, mut faults) = (Vec::new(), Vec::new());
    for (pattern, place) in file.includes() {
        let mut blame = |text: &str| faults.push(file.sentence(place, &format!("include: {text}")));
        let names = match names(&folder.join(&pattern)) {
            Ok(names) => names,
            Err(text) => {
                blame(&text);
                continue;
            }
        };
        if files.len() + names.len() > FILES_MAX {
            blame(&format!("more than {FILES_MAX} files"));
            continue;
        }
        for name in names {
            match seen.read(&name) {
                Ok(file) => files.push(file),
                Err(text) => blame(&text),
            }
        }
    }
    if faults.is_empty() { Ok(files) } else { Err(faults.join("\n")) }
}

/// The files that were read so far.
struct Seen {
    /// The names by which files were found, by where they are.
    names: HashMap<PathBuf, PathBuf>,
    left_bytes: usize,
}

impl Seen {
    fn new(main: &Path) -> Self {
        let names = main.canonicalize().map(|place| (place, main.to_path_buf()));
        Self { names: names.into_iter().collect(), left_bytes: INCLUDED_BYTES_MAX }
    }

    /// Reads a file that was not read yet.
    fn read(&mut self, name: &Path) -> Result<File, String> {
        let shown = name.display();
        let fault = |error: std::io::Error| format!("{shown}: {}", plain(&error));
        match self.names.entry(name.canonicalize().map_err(fault)?) {
            Entry::Occupied(other) if other.get() == name => {
                return Err(format!("{shown}: this file is read already"));
            }
            Entry::Occupied(other) => {
                let other = other.get().display();
                return Err(format!("{shown}: this is the file {other}, which is read already"));
            }
            Entry::Vacant(place) => place.insert(name.to_path_buf()),
        };
        let text = read_text(name, SETTINGS_BYTES_MAX).map_err(fault)?;
        self.left_bytes = self.left_bytes.checked_sub(text.len()).ok_or_else(|| {
            format!("{shown}: with this one, included files have more than {INCLUDED_BYTES_MAX} bytes")
        })?;
        Ok(File::new(shown.to_string(), text))
    }
}

/// The files that a name stands for, in their order: one, or all that a star makes it match.
fn names(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let (folder, name) = match (pattern.parent(), pattern.file_name().and_then(|name| name.to_str())) {
        (Some(folder), Some(name)) if !folder.to_string_lossy().contains('*') => (folder, name),
        _ => return Err(format!("{}: a star may stand in the name of the file alone", pattern.display())),
    };
    if !name.contains('*') {
        return Ok(vec![pattern.to_path_buf()]);
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {}", folder.display(), plain(&error)))?;
    let is_meant = |found: &String| !found.starts_with('.') && matches(name, found);
    let found = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).filter(is_meant);
    let found = found.map(|name| pattern.with_file_name(name));
    let mut found: Vec<PathBuf> = found.filter(|path| !path.is_dir()).collect();
    found.sort_unstable();
    Ok(found)
}

/// Whether a name is that of a pattern, whose stars stand for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(place) = rest.find(piece) else { return false };
        rest = &rest[place + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*.toml", "a.toml", true),
            ("*.toml", ".toml", true),
            ("*.toml", "a.toml~", false),
            ("*.toml", "a.toml.dpkg-old", false),
            ("site-*-*.toml", "site-a-b.toml", true),
            ("site-*-*.toml", "site-a.toml", false),
            ("*", "anything", true),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a.toml", "a.toml", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
