//! The page of the documentation that lists every check, made from the checks themselves.
//!
//! It must never depend on a host: rules stand there, not values.

use std::fmt::Write as _;

use crate::check::Judge;
use crate::checks::GROUPS;

const HEAD: &str = "\
# Settings of the host

What `staunch doctor` looks at, what is right, and why. The page is made from the checks themselves, and
a test compares the two: `cargo run -p staunch-doctor --example host_settings_page >
docs/host-settings.md`. How to use the command stands in
[operations.md](operations.md#the-hosts-settings).

Where a rule speaks of the connections of the host's size it means one for each 16 KiB of memory, at
least 65536 and at most 1048576. *Yang 2008* is Yang Jian's article on the web server behind Sina's live
sports, whose list of kernel settings was copied for years: each of them is here, with what has become
of it. Paths below `Documentation/` are those of the kernel's source.

**matters** costs requests or connections as it is, **advice** would be better otherwise, **ok** is
right, **unknown** cannot be read or understood, **not here** is what this host does not have. What is
marked with `*` can be set by `--apply`.
";

/// The whole page as Markdown.
pub fn page() -> String {
    let mut page = String::from(HEAD);
    for (group, checks) in GROUPS {
        let title = group[..1].to_uppercase() + &group[1..];
        let _ =
            write!(page, "\n## {title}\n\n| setting | right | what it does | source |\n|---|---|---|---|\n");
        for check in *checks {
            let name = check.name;
            let can_be_set = matches!(check.judge, Judge::Number(_) | Judge::Sysctl(_));
            let star = if can_be_set { " *" } else { "" };
            let _ =
                writeln!(page, "| `{name}`{star} | {} | {} | {} |", check.rule, check.reason, check.source);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_page_in_the_documentation_is_this_one() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/host-settings.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == page(), "docs/host-settings.md is out of date; its head says how to make it anew");
    }

    #[test]
    fn every_check_has_a_name_of_its_own_and_all_its_texts() {
        let mut names = HashSet::new();
        for check in GROUPS.iter().flat_map(|(_, checks)| checks.iter()) {
            assert!(names.insert(check.name), "{}", check.name);
            for text in [check.name, check.rule, check.reason, check.source] {
                assert!(
                    !text.is_empty() && !text.contains(['\n', '|']) && !text.contains("  "),
                    "{}",
                    check.name
                );
            }
        }
    }

    /// What protects the host is out of reach of `--apply`: nothing of the kernel itself, of BPF, of users.
    #[test]
    fn what_can_be_set_is_about_the_network_files_and_swapping() {
        let checks = GROUPS.iter().flat_map(|(_, checks)| checks.iter());
        for check in checks.filter(|check| matches!(check.judge, Judge::Number(_) | Judge::Sysctl(_))) {
            let known = ["net.", "fs.file-max", "fs.nr_open", "fs.inotify.", "vm.swappiness"];
            assert!(known.iter().any(|prefix| check.name.starts_with(prefix)), "{}", check.name);
            assert!(
                !["net.core.bpf_jit", "net.ipv4.tcp_sack"]
                    .iter()
                    .any(|prefix| check.name.starts_with(prefix))
            );
        }
    }
}
