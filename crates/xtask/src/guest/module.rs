//! Modules of `kernel/`, built for a kernel that is booted here.
//!
//! A module is built anew when one of its sources or the kernel's release has changed: its folder is named by
//! their digest. Order: `built` gives the file that the image carries.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use super::headers::{self, Headers};
use super::kernel::{Kernel, Series};

/// A module to be found in the machine as `/modules/NAME.ko`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// The folder's name in `kernel/`.
    pub(crate) name: String,
    /// A word that its sources are compiled with, as for a build in which races are wide.
    pub(crate) define: Option<String>,
    /// The words it is loaded with before the script runs. `None`: the script loads it itself.
    pub(crate) parameters: Option<String>,
}

impl FromStr for Module {
    type Err = String;

    /// `NAME`, or `NAME:WORDS` for a module that is loaded before the script runs; `NAME+DEFINE` is compiled
    /// with a word.
    fn from_str(text: &str) -> Result<Self, String> {
        let (module, parameters) = parted(text, ':');
        let (name, define) = parted(module, '+');
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if !is_name(name) || !define.as_deref().is_none_or(is_name) {
            return Err(format!("{module:?} is no name of a module: NAME, NAME+DEFINE or NAME:PARAMETERS"));
        }
        Ok(Self { name: name.to_owned(), define, parameters })
    }
}

/// What stands before a mark, and behind it if it is there.
fn parted(text: &str, mark: char) -> (&str, Option<String>) {
    text.split_once(mark).map_or((text, None), |(before, behind)| (before, Some(behind.to_owned())))
}

/// The module's file for this kernel.
///
/// # Errors
/// There is no such folder, headers cannot be had, or the compiler refuses a source (its words are given).
pub(super) fn built(
    root: &Path,
    kernel: &Kernel,
    series: Series,
    module: &Module,
) -> Result<PathBuf, String> {
    let Module { name, define, .. } = module;
    let sources = [root.join("kernel").join(name), root.join("kernel/include")];
    if !sources[0].join("Kbuild").exists() {
        return Err(format!("{}: no module (no file Kbuild)", sources[0].display()));
    }
    let headers = headers::headers(kernel, series)?;
    // Where the compiler runs in another root, the sources have to be there, too.
    let folder = match &headers.root {
        Some(root) => root.folder().join("build"),
        None => kernel.folder.join("modules"),
    };
    let digest = digest(&sources, &[&kernel.release, define.as_deref().unwrap_or_default()])?;
    let work = folder.join(format!("{name}-{digest:016x}"));
    let file = work.join(name).join(format!("{name}.ko"));
    if !file.exists() {
        let _ = fs::remove_dir_all(&work);
        for source in &sources {
            copy(source, &work.join(source.file_name().unwrap_or_default()))?;
        }
        make(&headers, &work.join(name), define.as_deref())?;
    }
    Ok(file)
}

fn make(headers: &Headers, folder: &Path, define: Option<&str>) -> Result<(), String> {
    let (mut command, seen) = match &headers.root {
        Some(root) => (root.command("make"), inside(folder, root.folder())),
        None => (Command::new("make"), folder.to_owned()),
    };
    let output = command
        .arg("-C")
        .arg(&headers.tree)
        .arg(format!("M={}", seen.display()))
        .args(["W=1", "KCFLAGS=-Werror", "modules"])
        .args(define.map(|word| format!("KCPPFLAGS=-D{word}")))
        .output()
        .map_err(|error| format!("make: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{}: not built\n{}", folder.display(), String::from_utf8_lossy(&said)))
}

/// A folder's path as programs see it whose root this is.
fn inside(folder: &Path, root: &Path) -> PathBuf {
    Path::new("/").join(folder.strip_prefix(root).unwrap_or(folder))
}

/// A digest of every file's name and bytes, and of the words it is built for.
fn digest(folders: &[PathBuf], words: &[&str]) -> Result<u64, String> {
    let mut hasher = DefaultHasher::new();
    words.iter().for_each(|word| hasher.write(word.as_bytes()));
    for folder in folders {
        for (name, path) in files(folder)? {
            hasher.write(name.as_bytes());
            hasher.write(&fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?);
        }
    }
    Ok(hasher.finish())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
    files(from)?.into_iter().try_for_each(|(name, path)| {
        fs::copy(&path, to.join(name)).map(drop).map_err(|error| format!("{}: {error}", path.display()))
    })
}

/// The plain files of a folder by name, in order.
fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(said)? {
        let entry = entry.map_err(said)?;
        if entry.file_type().map_err(said)?.is_file() {
            files.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_a_name_and_perhaps_parameters() {
        let module = |text: &str| text.parse::<Module>();
        let plain = Module { name: "kecho".into(), define: None, parameters: None };
        assert_eq!(module("kecho"), Ok(plain.clone()));
        let loaded = Module { parameters: Some("mode=ready port=80".into()), ..plain.clone() };
        assert_eq!(module("kecho:mode=ready port=80"), Ok(loaded));
        assert_eq!(module("kecho+WIDE"), Ok(Module { define: Some("WIDE".into()), ..plain }));
        for text in ["", "../x", ":a", "kecho+", "+a", "kecho+-I", "kecho+a b"] {
            assert!(module(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_digest_changes_with_a_byte_and_with_the_release() {
        let folder = std::env::temp_dir().join(format!("staunch-module-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("a.c"), "one").expect("a file");
        let of = |release| digest(std::slice::from_ref(&folder), &[release]).expect("a digest");
        let (first, other) = (of("6.1"), of("6.12"));
        assert!(first == of("6.1") && first != other);
        fs::write(folder.join("a.c"), "two").expect("a file");
        assert_ne!(first, of("6.1"));
        fs::remove_dir_all(&folder).expect("removed");
    }
}
