//! The program that runs here, as it can be started again: where it was found, and its words.
//!
//! It must never follow a link: an upgrade may consist in pointing it elsewhere.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The program as it was started: its file and its words.
#[derive(Debug)]
pub(super) struct Program {
    /// Where it was found when it was started.
    pub(super) path: PathBuf,
    /// Its words, its own name first.
    pub(super) words: Vec<OsString>,
}

impl Program {
    /// The one of this process. Only at start: later the working directory may be another.
    pub(super) fn of_this_process() -> Self {
        let words: Vec<OsString> = env::args_os().collect();
        let name = words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let own = env::current_exe().unwrap_or_default();
        Self { path: find(name, env::var_os("PATH").as_deref(), &own), words }
    }
}

/// Where a name leads to, as a shell would find it, provided that it leads to this program.
fn find(name: &OsStr, folders: Option<&OsStr>, own: &Path) -> PathBuf {
    let is_own = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == own);
    if name.as_encoded_bytes().contains(&b'/') {
        return std::path::absolute(name).ok().filter(is_own).unwrap_or_else(|| own.to_owned());
    }
    let folders = env::split_paths(folders.unwrap_or_default());
    folders.map(|folder| folder.join(name)).find(is_own).unwrap_or_else(|| own.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_kept_and_a_lie_is_not_believed() {
        let folder = env::temp_dir().join(format!("staunch-program-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let own = env::current_exe().unwrap();
        let link = folder.join("server");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let path = Some(folder.as_os_str());
        let found = |name: &OsStr| find(name, path, &own);
        let results = [
            found(link.as_os_str()),
            found(OsStr::new("server")),
            found(OsStr::new("sh")),
            found(OsStr::new("/bin/sh")),
            found(OsStr::new("")),
        ];
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(results, [link.clone(), link, own.clone(), own.clone(), own]);
    }
}
