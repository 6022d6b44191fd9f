//! Looks at the files and folders that the settings name: whether the server could use them.
//!
//! It asks and never changes anything: no file is created, opened for writing or cut.

use std::path::{Path, PathBuf};

use rustix::fs::Access;
use staunch_config::groups::{Content, PathRule};
use staunch_config::syntax::text::Output;
use staunch_config::{Config, File};
use staunch_confine::Identity;

/// Everything that is not as the settings want it, in sentences with places.
pub(crate) fn faults(config: &Config, file: Option<&File>) -> Vec<String> {
    let mut faults = Vec::new();
    for (index, site) in config.sites.iter().enumerate() {
        let section = config.section_of_site(index);
        let mut blame = |key: &str, text: String| faults.push(config.blame(section, key, &text, file));
        of_site(&site.content, &mut blame);
        for (index, rule) in site.paths.iter().enumerate() {
            let section = section + 1 + index;
            let mut blame = |key: &str, text: String| faults.push(config.blame(section, key, &text, file));
            of_rule(rule, &mut blame);
        }
    }
    let mut blame = |key: &str, text: String| faults.push(config.blame(0, key, &text, file));
    of_process(config, &mut blame);
    faults
}

type Blame<'a> = &'a mut dyn FnMut(&str, String);

fn of_site(content: &Content, blame: Blame<'_>) {
    if let Err(text) = folder(&content.root) {
        blame("root", text);
        return;
    }
    let below = |path: &str| content.root.join(path.trim_start_matches('/'));
    for (_, path) in &content.error_pages {
        if let Err(text) = readable(&below(path)) {
            blame("error_pages", text);
        }
    }
    if let Some(Err(text)) = content.fallback.as_deref().map(|path| readable(&below(path))) {
        blame("fallback", text);
    }
}

fn of_rule(rule: &PathRule, blame: Blame<'_>) {
    let Some(file) = rule.basic_auth.iter().flatten().find_map(|auth| auth.users_file.as_ref()) else {
        return;
    };
    match std::fs::read_to_string(file) {
        Err(error) => blame("basic_auth", format!("{}: {}", file.display(), plain(&error))),
        Ok(text) => {
            if let Err(text) = staunch_config::syntax::web::users(&text) {
                blame("basic_auth", format!("{}:{text}", file.display()));
            }
        }
    }
}

fn of_process(config: &Config, blame: Blame<'_>) {
    let access_log = match &config.logs.access_log {
        Some(Output::File(path)) => Some(path),
        _ => None,
    };
    let files: [(&str, Option<&PathBuf>); 3] = [
        ("access_log", access_log),
        ("error_log", config.logs.error_log.as_ref()),
        ("pid_file", config.process.pid_file.as_ref()),
    ];
    for (key, path) in files {
        if let Some(Err(text)) = path.map(|path| writable(path)) {
            blame(key, text);
        }
    }
    if let Some(Err(unknown)) = config.process.user.as_ref().map(|name| Identity::find(&name.to_string())) {
        blame("user", unknown.to_string());
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

/// What the system says, without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}
