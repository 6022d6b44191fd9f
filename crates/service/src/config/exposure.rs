//! Folders of the system, which nobody means to publish: they are served only by who says so.
//!
//! It asks where a name leads, and never opens anything.

use std::path::Path;

use staunch_config::Reading;
use staunch_config::node::ValueKind;

/// Folders that are refused themselves. What is beneath may be meant: `/var/www`, a site in somebody's home.
const THEMSELVES: [&str; 4] = ["/", "/home", "/root", "/var"];

/// Folders that are refused with all that is in them.
const WHOLE: [&str; 5] = ["/boot", "/dev", "/etc", "/proc", "/sys"];

/// What is beneath one of these and only a place in memory, where sites are put.
const MEANT: &str = "/dev/shm";

/// Blames each root that is a folder of the system, unless `root_anyway` of its site is on.
pub(crate) fn look(reading: &mut Reading) {
    let mut faults = Vec::new();
    let mut is_allowed = false;
    for (number, section) in reading.sections.iter().enumerate() {
        let value = |name: &str| {
            section.entries.iter().find(|entry| entry.key.name == name).map(|entry| &entry.value.kind)
        };
        // Folders of paths stand behind the site that says so.
        if !section.title.ends_with("path") {
            is_allowed = value("root_anyway") == Some(&ValueKind::Switch(true));
        }
        let Some(ValueKind::Text(root)) = value("root") else { continue };
        // A folder that is not there is blamed for that.
        let Ok(folder) = Path::new(root).canonicalize() else { continue };
        if is_of_system(&folder) && !is_allowed {
            faults.push((number, refusal(root, &folder)));
        }
    }
    faults.into_iter().for_each(|(number, text)| reading.blame(number, "root", text));
}

/// Whether a folder, named without links, is one of the system.
fn is_of_system(folder: &Path) -> bool {
    let is_meant = folder.starts_with(MEANT) && folder != Path::new(MEANT);
    let is_beneath = WHOLE.iter().any(|whole| folder.starts_with(whole));
    THEMSELVES.iter().any(|own| folder == Path::new(own)) || (is_beneath && !is_meant)
}

fn refusal(root: &str, folder: &Path) -> String {
    let what = match folder.display().to_string() {
        folder if folder == root => format!("{folder} is a folder of the system"),
        folder => format!("{root} is {folder}, which is one of the system"),
    };
    format!(
        "{what}, and everybody could read what is in it: name the folder to serve, or say root_anyway \
         (--root-anyway) as well"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_system() {
        for (folder, expected) in [
            ("/", true),
            ("/etc", true),
            ("/etc/nginx", true),
            ("/etcetera", false),
            ("/home", true),
            // tidy: allow(machine-path): a folder of no machine, in a table of names
            ("/home/anna", false),
            ("/root", true),
            // tidy: allow(machine-path): a folder of no machine, in a table of names
            ("/root/site", false),
            ("/var", true),
            ("/var/www", false),
            ("/proc/self/root", true),
            ("/sys/kernel", true),
            ("/boot/grub", true),
            ("/dev", true),
            ("/dev/shm", true),
            ("/dev/shm/site", false),
            ("/srv", false),
            ("/tmp", false),
        ] {
            assert_eq!(is_of_system(Path::new(folder)), expected, "{folder}");
        }
    }

    #[test]
    fn a_refusal_names_where_a_name_leads() {
        let words = ", and everybody could read what is in it: name the folder to serve, or say root_anyway \
                     (--root-anyway) as well";
        assert_eq!(refusal("/etc", Path::new("/etc")), format!("/etc is a folder of the system{words}"));
        assert_eq!(refusal(".", Path::new("/")), format!(". is /, which is one of the system{words}"));
    }
}
