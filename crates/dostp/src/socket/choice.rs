//! The backend that was measured to be the fastest on an interface, kept in a file of one word.
//!
//! This file only keeps and reads the choice; `bench --choose` measures it. Where the file is missing or
//! names no backend, none must ever be guessed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::options::Backend;

/// Where the choice for an interface is usually kept.
pub fn choice_file(interface: &str) -> PathBuf {
    Path::new("/var/lib/staunch").join(format!("dostp-{interface}.backend"))
}

impl Backend {
    /// The choice that a file holds; `None` if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no name of a backend.
    pub fn remembered(file: &Path) -> io::Result<Option<Self>> {
        let named = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        match fs::read_to_string(file) {
            Ok(word) => {
                let backend = word.trim().parse::<Self>();
                backend.map(Some).map_err(|error| named(format!("{}: {error}", file.display())))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(named(format!("{}: {error}", file.display()))),
        }
    }

    /// The choice that is usually kept for an interface; `None` if there is none, or it is not for this user
    /// to read: a choice makes things faster, and nothing needs it.
    ///
    /// # Errors
    /// The file cannot be read for another reason, or holds no name of a backend.
    pub fn remembered_of(interface: &str) -> io::Result<Option<Self>> {
        let file = choice_file(interface);
        match fs::File::open(&file) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
            _ => Self::remembered(&file),
        }
    }

    /// Keeps this choice in a file; its folder is made.
    ///
    /// # Errors
    /// Those of writing there.
    pub fn remember(self, file: &Path) -> io::Result<()> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, format!("{self}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_kept_and_nonsense_is_named() {
        let folder = std::env::temp_dir().join(format!("staunch-choice-{}", std::process::id()));
        let file = folder.join("eth1.backend");
        assert_eq!(Backend::remembered(&file).unwrap(), None);
        for backend in Backend::ALL {
            backend.remember(&file).unwrap();
            assert_eq!(Backend::remembered(&file).unwrap(), Some(backend));
        }
        fs::write(&file, "pigeon\n").unwrap();
        let error = Backend::remembered(&file).unwrap_err().to_string();
        assert!(error.contains("eth1.backend: no backend is called `pigeon`"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
