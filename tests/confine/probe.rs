//! What is possible within: everything a server does, and nothing that it does not.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use staunch_tests::tree::Tree;

use crate::world::{confined, is_root, is_whole, tree};

const POSSIBLE: &[&str] = &[
    "read the site",
    "read beside the site",
    "list the site",
    "open beneath",
    "watch the site",
    "write the log",
    "rename the log",
    "append to the log",
    "remove the old log",
    "listen",
    "know its own name",
    "speak to the service manager",
    "start a thread",
    "know the processors",
    "read the kernel's counters",
    "raise limits",
    "use epoll",
    "run its own program",
];

const IMPOSSIBLE: &[&str] = &[
    "read /etc/shadow",
    "list /",
    "write into the site",
    "write the file served",
    "link out of the site",
    "make a folder for logs",
    "connect",
    "connect by MPTCP",
    "connect by sendto",
    "connect by sendmsg",
    "connect by sendmmsg",
    "run a shell",
    "trace",
    "signal the parent",
    "change the root folder",
    "be root again",
    "see all packets",
    "forge packets",
    "send datagrams",
];

/// A tree with a link that leads out of it, and a place for a log.
fn place() -> (Tree, PathBuf) {
    let tree = tree();
    std::os::unix::fs::symlink("/etc/hostname", tree.root().join("out")).expect("a link");
    let log = tree.root().parent().expect("a folder").join("logs/access.log");
    std::fs::create_dir_all(log.parent().expect("a folder")).expect("a folder");
    (tree, log)
}

fn run(arguments: &[&str], paths: [&Path; 2]) -> Command {
    let mut command = Command::new(confined());
    command.args(arguments).args(paths);
    command
}

/// What the probe said of each thing it tried.
fn told(command: &mut Command) -> HashMap<String, String> {
    let output = command.output().expect("our own program");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{complaint}");
    let text = String::from_utf8(output.stdout).expect("text");
    let pairs = text.lines().filter_map(|line| line.split_once(": "));
    pairs.map(|(what, said)| (what.to_owned(), said.to_owned())).collect()
}

#[test]
fn a_server_can_do_all_it_does_and_nothing_else() {
    if !is_whole() {
        return;
    }
    let (tree, log) = place();
    let told = told(&mut run(&["probe", "on"], [tree.root(), &log]));
    for what in POSSIBLE {
        assert_eq!(told.get(*what).map(String::as_str), Some("ok"), "{what}");
    }
    for what in IMPOSSIBLE {
        let said = told.get(*what).unwrap_or_else(|| panic!("{what} was not tried"));
        assert!(
            said.contains("ermission denied") || said.contains("not permitted") || said.contains("EPERM"),
            "{what}: {said}"
        );
    }
    assert_eq!(told.len(), POSSIBLE.len() + IMPOSSIBLE.len() + 1, "{told:?}");
    if staunch_netio::uring::probe().is_ok() {
        assert_eq!(told["use io_uring"], "ok");
    }
}

/// Of what a ring does no filter sees anything: a server that needs none, and is to be confined wholly, can
/// make none.
#[test]
fn without_rings_none_can_be_made() {
    if !is_whole() {
        return;
    }
    let (tree, log) = place();
    let told = told(&mut run(&["probe", "ringless"], [tree.root(), &log]));
    assert!(told["use io_uring"].contains("io_uring_setup is forbidden"), "{}", told["use io_uring"]);
    for what in POSSIBLE {
        assert_eq!(told.get(*what).map(String::as_str), Some("ok"), "{what}");
    }
}

/// Nothing but the sandbox stood in the way of what root may do. Without capabilities, as in a container,
/// some of it is impossible to root as well.
#[test]
fn all_of_that_is_possible_to_root_without_a_sandbox() {
    if !is_root() {
        return;
    }
    let (tree, log) = place();
    let told = told(&mut run(&["probe", "off"], [tree.root(), &log]));
    let capable = ["see all packets", "forge packets", "change the root folder"];
    let lacking = match std::fs::read_to_string("/proc/sys/net/mptcp/enabled") {
        Ok(enabled) if enabled.trim() == "1" => "nothing",
        _ => "connect by MPTCP",
    };
    for what in IMPOSSIBLE.iter().filter(|what| !capable.contains(what) && **what != lacking) {
        assert_eq!(told.get(*what).map(String::as_str), Some("ok"), "{what}");
    }
}

/// Sixteen layers of Landlock are all the kernel allows: more upgrades than that need no further ones.
#[test]
fn twenty_upgrades_are_confined_once() {
    if !is_whole() {
        return;
    }
    let (tree, log) = place();
    let first = told(&mut run(&["chain", "0", "-"], [tree.root(), &log]));
    let last = told(&mut run(&["chain", "20", "-"], [tree.root(), &log]));
    assert_eq!(first["filters"], last["filters"]);
}

/// The user database is not among the files of a server, so who has become somebody hands on who that is.
#[test]
fn an_upgrade_stays_the_user_it_was() {
    if !is_whole() || !is_root() {
        return;
    }
    let (tree, log) = place();
    assert_eq!(told(&mut run(&["chain", "2", "nobody"], [tree.root(), &log]))["user"], "65534");
}

/// A process that is told it was born confined looks whether that is so.
#[test]
fn a_word_in_the_environment_confines_nobody() {
    if !is_whole() {
        return;
    }
    let (tree, log) = place();
    let own = told(&mut run(&["chain", "0", "-"], [tree.root(), &log]));
    let mut lying = run(&["probe", "on"], [tree.root(), &log]);
    lying.env(staunch_confine::INHERITED, &own["environment"]);
    let told = told(&mut lying);
    for what in ["read /etc/shadow", "connect", "change the root folder"] {
        assert_ne!(told[what], "ok", "{what}");
    }
}
