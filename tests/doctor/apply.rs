//! Changing settings, and taking it back: on recorded hosts only.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::recorded::{HOSTS, Host};

const FILE: &str = "etc/sysctl.d/60-staunch.conf";
const SOMAXCONN: &str = "proc/sys/net/core/somaxconn";

fn contents(host: &Host) -> BTreeMap<PathBuf, String> {
    let read = |path: PathBuf| {
        let text =
            fs::read_to_string(&path).expect("a file").split_whitespace().collect::<Vec<_>>().join(" ");
        (path, text)
    };
    host.files().into_iter().map(read).collect()
}

#[test]
fn what_is_applied_is_shown_set_and_undone() {
    for (name, _) in HOSTS {
        let host = Host::new(name);
        let before = contents(&host);
        let applied = host.doctor(&["--apply", "--yes"]);
        assert_eq!(applied.status.code(), Some(0), "{name}\n{}", applied.stderr);
        if applied.stdout.starts_with("nothing to set") {
            assert_eq!(*name, "big-server");
            continue;
        }
        let file = host.read(FILE);
        for line in file.lines() {
            assert!(applied.stdout.contains(&format!("+{line}\n")), "{line}\n{}", applied.stdout);
        }
        for (setting, value) in
            file.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "))
        {
            assert_eq!(host.read(&format!("proc/sys/{}", setting.replace('.', "/"))), value, "{setting}");
        }
        let again = host.doctor(&["--apply", "--yes"]);
        assert_eq!(again.stdout, "nothing to set: what can be set is right\n", "{name}");
        let undone = host.doctor(&["--undo", "--yes"]);
        assert_eq!(undone.status.code(), Some(0), "{name}\n{}", undone.stderr);
        assert_eq!(contents(&host), before, "{name}");
    }
}

#[test]
fn what_was_at_first_is_kept_over_several_times() {
    let host = Host::new("container");
    host.doctor(&["--apply", "--yes"]);
    host.write(SOMAXCONN, "200\n");
    let second = host.doctor(&["--apply", "--yes"]);
    assert!(second.stdout.starts_with("set 1 settings"), "{}", second.stdout);
    assert!(host.read(FILE).contains("# was net.core.somaxconn = 128\nnet.core.somaxconn = 4096\n"));
    host.doctor(&["--undo", "--yes"]);
    assert_eq!(host.read(SOMAXCONN), "128");
}

#[test]
fn what_somebody_set_since_is_left_alone() {
    let host = Host::new("container");
    host.doctor(&["--apply", "--yes"]);
    host.write(SOMAXCONN, "9999\n");
    let undone = host.doctor(&["--undo", "--yes"]);
    assert!(undone.stdout.contains("left alone net.core.somaxconn: is 9999"), "{}", undone.stdout);
    assert_eq!(host.read(SOMAXCONN), "9999\n");
}

#[test]
fn without_a_terminal_nothing_changes_unless_agreed_to() {
    let host = Host::new("container");
    let before = contents(&host);
    let refused = host.doctor(&["--apply"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stdout.contains("+net.core.somaxconn = 4096"), "{}", refused.stdout);
    assert!(refused.stderr.contains("--yes agrees"), "{}", refused.stderr);
    assert_eq!(contents(&host), before);
}

#[test]
fn a_failure_leaves_everything_as_it_was() {
    let host = Host::new("ancient");
    // A file where the folder of the settings must stand.
    host.write("etc/sysctl.d", "in the way");
    let before = contents(&host);
    let failed = host.doctor(&["--apply", "--yes"]);
    assert_eq!(failed.status.code(), Some(1), "{}", failed.stdout);
    assert!(failed.stderr.contains("60-staunch.conf"), "{}", failed.stderr);
    assert_eq!(contents(&host), before);
}

#[test]
fn a_file_of_somebody_else_is_not_overwritten() {
    let host = Host::new("container");
    let theirs = "net.core.somaxconn = 1\n";
    host.write(FILE, theirs);
    for arguments in [["--apply", "--yes"], ["--undo", "--yes"]] {
        let refused = host.doctor(&arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        assert!(refused.stderr.contains("60-staunch.conf:1:"), "{}", refused.stderr);
        assert_eq!(host.read(FILE), theirs);
    }
}

#[test]
fn there_is_nothing_to_undo_where_nothing_was_applied() {
    let refused = Host::new("container").doctor(&["--undo", "--yes"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("there is no such file"), "{}", refused.stderr);
}

#[test]
fn the_file_may_stand_elsewhere() {
    let host = Host::new("container");
    let file = host.root().join("elsewhere/staunch.conf");
    let path = file.to_str().expect("a path");
    assert_eq!(host.doctor(&["--apply", "--yes", "--file", path]).status.code(), Some(0));
    assert!(file.exists() && !host.root().join(FILE).exists());
    assert_eq!(host.doctor(&["--undo", "--yes", "--file", path]).status.code(), Some(0));
    assert!(!file.exists());
}
