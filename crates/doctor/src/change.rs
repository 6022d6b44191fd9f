//! What `--apply` changes and `--undo` takes back: sysctls, and the file that sets them at the next start.
//!
//! It owns that file. It must never write a sysctl that no finding named, nor forget what a value was
//! before. Order: [`SettingChange::of`], show `difference`, ask, `apply`. The kernel is told first, the file
//! is written after; when anything fails, what was written is put back.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use similar::TextDiff;

use crate::finding::Finding;
use crate::host::{Host, sysctl_path};

/// Where the file stands, beneath the root.
pub const DEFAULT_FILE: &str = "etc/sysctl.d/60-staunch.conf";

const HEAD: &str = "# Written by `staunch doctor --apply`.\n\
    # `staunch doctor --undo` puts back what was and removes this file.";

/// A setting of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    name: String,
    /// The value before the first `--apply`.
    was: String,
    value: String,
}

/// What is to be changed.
#[derive(Debug)]
pub struct SettingChange {
    file: PathBuf,
    text_before: String,
    text_after: String,
    /// Name, value now, value to be.
    writes: Vec<(String, String, String)>,
}

/// What `undo` did.
#[derive(Debug, PartialEq, Eq)]
pub struct Undone {
    /// Lines `NAME = VALUE` that were put back.
    pub restored: Vec<String>,
    /// Settings left as they are, with the reason.
    pub left: Vec<String>,
}

impl SettingChange {
    /// What the findings would change. `None` if they name nothing to set.
    ///
    /// # Errors
    /// When the file is there and cannot be read, or holds what `--apply` did not write.
    pub fn of(host: &Host, findings: &[Finding], file: &Path) -> Result<Option<Self>, String> {
        let writes: Vec<(String, String, String)> = findings
            .iter()
            .filter_map(|found| Some((found.name.clone(), host.sysctl(&found.name)?, found.sysctl.clone()?)))
            .collect();
        if writes.is_empty() {
            return Ok(None);
        }
        let text_before = read(file)?;
        let mut settings = parse(file, &text_before)?;
        for (name, now, next) in &writes {
            match settings.iter_mut().find(|setting| setting.name == *name) {
                Some(setting) => setting.value.clone_from(next),
                None => {
                    settings.push(Setting { name: name.clone(), was: now.clone(), value: next.clone() });
                }
            }
        }
        Ok(Some(Self { file: file.into(), text_after: render(&settings), text_before, writes }))
    }

    /// The difference of the file, unified.
    pub fn difference(&self) -> String {
        let name = self.file.display().to_string();
        TextDiff::from_lines(&self.text_before, &self.text_after)
            .unified_diff()
            .header(&name, &name)
            .to_string()
    }

    /// How many sysctls are set.
    pub fn count(&self) -> usize {
        self.writes.len()
    }

    /// Tells the kernel, then writes the file.
    ///
    /// # Errors
    /// What could not be written and what is needed for it. Then nothing has changed.
    pub fn apply(&self, host: &Host) -> Result<(), String> {
        for (at, (name, _, next)) in self.writes.iter().enumerate() {
            if let Err(error) = set(host, name, next) {
                self.put_back(host, at);
                return Err(format!("{error}; nothing has been changed"));
            }
        }
        write_file(&self.file, &self.text_after).map_err(|error| {
            self.put_back(host, self.writes.len());
            format!("{}: {}; nothing has been changed", self.file.display(), why(&error))
        })
    }

    /// Puts back the first `count` sysctls. One that cannot be put back was written a moment ago, so there is
    /// nobody left to tell more than the error that led here.
    fn put_back(&self, host: &Host, count: usize) {
        for (name, now, _) in &self.writes[..count] {
            let _ = set(host, name, now);
        }
    }
}

/// Puts back what the file says that was, unless somebody has set it since, and removes the file.
///
/// # Errors
/// When there is no such file, it was not written by `--apply`, or a value cannot be written: then the file
/// stays.
pub fn undo(host: &Host, file: &Path) -> Result<Undone, String> {
    if !file.exists() {
        return Err(format!(
            "{}: there is no such file: nothing was applied, or it was undone",
            file.display()
        ));
    }
    let mut undone = Undone { restored: Vec::new(), left: Vec::new() };
    for setting in parse(file, &read(file)?)? {
        match host.sysctl(&setting.name) {
            None => undone.left.push(format!("{}: this kernel has it no more", setting.name)),
            Some(now) if now == setting.was => {}
            Some(now) if now != setting.value => {
                undone.left.push(format!("{}: is {now}, set by somebody else since", setting.name));
            }
            Some(_) => {
                set(host, &setting.name, &setting.was)
                    .map_err(|error| format!("{error}; {} stays: run it again", file.display()))?;
                undone.restored.push(format!("{} = {}", setting.name, setting.was));
            }
        }
    }
    fs::remove_file(file).map_err(|error| format!("{}: {}", file.display(), why(&error)))?;
    Ok(undone)
}

fn set(host: &Host, name: &str, value: &str) -> Result<(), String> {
    fs::write(host.path(&sysctl_path(name)), value).map_err(|error| format!("{name}: {}", why(&error)))
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            "permission denied: this needs root (for net.* CAP_NET_ADMIN is enough): run it with sudo".into()
        }
        ErrorKind::ReadOnlyFilesystem => {
            "read-only: in a container settings are made on the host, or when the container is started".into()
        }
        _ => error.to_string(),
    }
}

fn read(file: &Path) -> Result<String, String> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("{}: {}", file.display(), why(&error))),
    }
}

fn render(settings: &[Setting]) -> String {
    let mut text = format!("{HEAD}\n");
    for Setting { name, was, value } in settings {
        text.push_str(&format!("# was {name} = {was}\n{name} = {value}\n"));
    }
    text
}

fn parse(file: &Path, text: &str) -> Result<Vec<Setting>, String> {
    let refused = |number: usize, fault: &str| {
        format!(
            "{}:{number}: {fault}; this file is not as `--apply` wrote it: move it away first",
            file.display()
        )
    };
    let mut settings = Vec::new();
    let mut was: Option<(&str, &str)> = None;
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
        if let Some(before) = line.strip_prefix("# was ") {
            was = before.split_once(" = ");
        } else if let Some((name, value)) = line.split_once('=') {
            let (name, value) = (name.trim(), value.trim());
            match was.take().filter(|(before, _)| *before == name) {
                Some((_, was)) => {
                    settings.push(Setting { name: name.into(), was: was.into(), value: value.into() });
                }
                None => return Err(refused(number, "no line above says what was before")),
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            return Err(refused(number, "neither comment nor setting"));
        }
    }
    Ok(settings)
}

/// Writes beside the file and renames, so that there is never half of one.
fn write_file(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, file));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
