//! Looks at the files and folders that the settings name: whether the server could use them.
//!
//! It asks and never changes anything: no file is created, opened for writing or cut. It looks at what could
//! be read of the settings, so that a mistake elsewhere hides nothing.

use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::Access;
use staunch_config::node::{Node, ValueKind};
use staunch_config::{Reading, Section};
use staunch_confine::Identity;
use staunch_netio::named_file::read_text;
use staunch_server::PAGE_STATUSES;
use staunch_server::limits::USERS_FILE_BYTES_MAX;

/// Blames every value that is not as the system has it.
pub(crate) fn look(reading: &mut Reading) {
    let mut faults = Vec::new();
    for (number, section) in reading.sections.iter().enumerate() {
        let mut blame = |key: &'static str, text: String| faults.push((number, key, text));
        match section.title.as_str() {
            "" => {
                of_process(section, &mut blame);
                of_site(section, &branches(&reading.sections[number + 1..]), &mut blame);
            }
            "site" => {
                logs(section, &mut blame);
                of_site(section, &branches(&reading.sections[number + 1..]), &mut blame);
            }
            _ => of_rule(section, &mut blame),
        }
    }
    faults.into_iter().for_each(|(number, key, text)| reading.blame(number, key, text));
}

type Blame<'a> = &'a mut dyn FnMut(&'static str, String);

/// The value of a key as it would be written.
fn value<'a>(section: &'a Section, key: &str) -> Option<&'a Node> {
    section.entries.iter().find(|entry| entry.key.name == key).map(|entry| &entry.value)
}

/// Values in the place of a file that name none.
const NO_FILES: [&str; 4] = ["off", "-", "/dev/stdout", "/dev/stderr"];

/// A text that names a file or folder.
fn text(node: Option<&Node>) -> Option<&str> {
    match &node?.kind {
        ValueKind::Text(text) if !NO_FILES.contains(&text.as_str()) => Some(text),
        _ => None,
    }
}

/// The paths of a site below which another folder is served, with the slash at their end; given what follows
/// the site.
fn branches(following: &[Section]) -> Vec<&str> {
    let rules = following.iter().take_while(|section| section.title.ends_with("path"));
    let with_folder = rules.filter(|rule| text(value(rule, "root")).is_some_and(|root| root != "inherit"));
    with_folder.filter_map(|rule| text(value(rule, "match"))?.strip_suffix('*')).collect()
}

fn of_site(section: &Section, branches: &[&str], blame: Blame<'_>) {
    let Some(root) = text(value(section, "root")).map(Path::new) else { return };
    if let Err(text) = folder(root) {
        let counted_from = std::env::current_dir().ok().filter(|_| root.is_relative());
        let counted_from = counted_from.map_or(String::new(), |here| format!(" (from {})", here.display()));
        blame("root", text + &counted_from);
        return;
    }
    let is_of_root = |path: &&str| !branches.iter().any(|branch| path.starts_with(branch));
    let below = |path: &str| root.join(path.trim_start_matches('/'));
    if let Some(ValueKind::Table(pages)) = value(section, "error_pages").map(|node| &node.kind) {
        for (status, path) in pages {
            if let Err(text) = has_page(&status.text) {
                blame("error_pages", text);
            }
            if let Some(Err(text)) = text(Some(path)).filter(is_of_root).map(|path| readable(&below(path))) {
                blame("error_pages", text);
            }
        }
    }
    if let Some(Err(text)) =
        text(value(section, "fallback")).filter(is_of_root).map(|path| readable(&below(path)))
    {
        blame("fallback", text);
    }
}

/// Whether answers of a status may have a page of the operator's.
fn has_page(status: &str) -> Result<(), String> {
    match status.parse::<u16>() {
        Ok(code) if !PAGE_STATUSES.contains(&code) => {
            Err(format!("{code} has no page here; those are {PAGE_STATUSES:?}"))
        }
        _ => Ok(()),
    }
}

fn of_rule(section: &Section, blame: Blame<'_>) {
    let Some(ValueKind::Table(auth)) = value(section, "basic_auth").map(|node| &node.kind) else { return };
    let file = auth.iter().find(|(name, _)| name.text == "users_file").map(|(_, file)| file);
    let Some(file) = text(file) else { return };
    match read_text(Path::new(file), USERS_FILE_BYTES_MAX) {
        Err(error) => blame("basic_auth", format!("{file}: {}", plain(&error))),
        Ok(text) => {
            if let Err(text) = staunch_config::syntax::web::users(&text) {
                blame("basic_auth", format!("{file}:{text}"));
            }
        }
    }
}

fn of_process(section: &Section, blame: Blame<'_>) {
    logs(section, blame);
    if let Some(Err(unknown)) = text(value(section, "user")).map(Identity::find) {
        blame("user", unknown.to_string());
    }
}

/// Files that are written, as far as a section names some.
fn logs(section: &Section, blame: Blame<'_>) {
    for key in ["access_log", "error_log", "pid_file"] {
        let look = |place: &str| match syslog(place).filter(|_| key == "access_log") {
            Some(socket) => service(Path::new(socket)),
            None => writable(Path::new(place)),
        };
        if let Some(Err(text)) = text(value(section, key)).map(look) {
            blame(key, text);
        }
    }
}

/// The socket of the service that lines go to, if they go to one.
fn syslog(place: &str) -> Option<&str> {
    let rest = place.strip_prefix("syslog")?;
    if rest.is_empty() { Some("/dev/log") } else { rest.strip_prefix(':') }
}

fn service(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(found) if !found.file_type().is_socket() => Err(format!("{}: not a socket", path.display())),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("no syslog service listens at {}: {}", path.display(), plain(&error))),
    }
}

fn folder(path: &Path) -> Result<(), String> {
    match std::fs::read_dir(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{}: {}", path.display(), plain(&error))),
    }
}

fn readable(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(format!("{}: not a file", path.display())),
        Ok(_) => access(path, Access::READ_OK),
        Err(error) => Err(format!("{}: {}", path.display(), plain(&error))),
    }
}

/// Whether a file could be written to, or made where it is not yet.
fn writable(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(format!("{}: a folder, not a file", path.display())),
        Ok(_) => access(path, Access::WRITE_OK),
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            access(folder.unwrap_or(Path::new(".")), Access::WRITE_OK | Access::EXEC_OK)
        }
    }
}

fn access(path: &Path, wanted: Access) -> Result<(), String> {
    rustix::fs::access(path, wanted)
        .map_err(|errno| format!("{}: {}", path.display(), plain(&std::io::Error::from(errno))))
}

/// The words of the system for an error, without its number, for the middle of a sentence.
pub(super) fn plain(error: &std::io::Error) -> String {
    let mut text = error.to_string();
    text.truncate(text.find(" (os error").unwrap_or(text.len()));
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    text
}
