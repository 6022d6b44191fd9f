//! `--user`: another user for good, or a sentence that says why not.
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use staunch_tests::house::waiting::until;
use staunch_tests::process::{Finished, Server, binary, finish, is_installed, serve};

use crate::world::{get, is_root, said, status, tree};

fn served_by(root: &Path, user: &str) -> Finished {
    finish(serve(root).args(["--user", user]))
}

#[test]
fn every_thread_is_another_user_without_capabilities() {
    if !is_root() {
        return;
    }
    for (user, group, io) in [("nobody", "65534", "epoll"), ("65534:17", "17", "uring")] {
        let tree = tree();
        let server = Server::spawn(serve(tree.root()).args(["--user", user, "--io", io]));
        let server = server.unwrap_or_else(|said| panic!("{said}"));
        assert_eq!(get(server.address(), "/a.txt").0, 200);
        let process = server.process_id();
        assert_eq!(status(process, "Uid"), "65534 65534 65534 65534");
        assert_eq!(status(process, "Gid"), [group; 4].join(" "));
        assert!(!status(process, "Groups").split(' ').any(|group| group == "0"));
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(status(process, set), "0000000000000000", "{set}");
        }
        assert_eq!(status(process, "NoNewPrivs"), "1");
    }
}

#[test]
fn ports_are_opened_before_and_files_are_read_as_the_user() {
    if !is_root() {
        return;
    }
    let tree = tree();
    let secret = tree.root().join("secret.txt");
    std::fs::write(&secret, "not for nobody").expect("our own file");
    set_permissions(&secret, Permissions::from_mode(0o600)).expect("our own file");
    let mut command = Command::new(binary());
    command.arg("serve").arg(tree.root()).args(["--workers", "1", "--user", "nobody"]);
    // A port below 1024 that nobody uses, so that only root can have opened it.
    let server = Server::spawn(command.args(["--listen", "127.97.31.1:611"]));
    let server = server.unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(get(server.address(), "/a.txt").0, 200);
    assert_eq!(get(server.address(), "/secret.txt").0, 403);
}

#[test]
fn logs_are_made_by_the_user_who_will_open_them_again() {
    if !is_root() {
        return;
    }
    let tree = tree();
    let folder = tree.root().parent().expect("a folder").join("logs");
    std::fs::create_dir(&folder).expect("a folder");
    std::os::unix::fs::chown(&folder, Some(65534), None).expect("our own folder");
    let log = folder.join("access.log");
    let mut command = serve(tree.root());
    command.args(["--user", "nobody", "--access-log"]).arg(&log);
    let server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(get(server.address(), "/a.txt").0, 200);
    until("the line is written", || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("/a.txt")));
    assert_eq!(std::fs::metadata(&log).expect("a log").uid(), 65534);
}

#[test]
fn a_site_that_the_user_cannot_read_is_named() {
    if !is_root() {
        return;
    }
    let tree = tree();
    set_permissions(tree.root(), Permissions::from_mode(0o700)).expect("our own folder");
    let finished = served_by(tree.root(), "nobody");
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    let expected = format!("--user nobody cannot read {}", tree.root().display());
    assert!(finished.stderr.contains(&expected), "{}", finished.stderr);
}

#[test]
fn who_is_not_root_is_told_the_way_out() {
    if !is_root() || !is_installed("setpriv") {
        return;
    }
    let tree = tree();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(binary());
    command.arg("serve").arg(tree.root()).args(["--listen", "127.0.0.1:0"]);
    let refused = finish(command.args(["--user", "daemon"]));
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("only root can become user daemon"), "{}", refused.stderr);
    assert!(refused.stderr.contains("User="), "{}", refused.stderr);
}

/// To be started as the user asked for is as good, as a process is that another one was upgraded to.
#[test]
fn who_is_that_user_already_stays_it() {
    if !is_root() || !is_installed("setpriv") {
        return;
    }
    let tree = tree();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(binary());
    command.arg("serve").arg(tree.root()).args(["--listen", "127.0.0.1:0", "--workers", "1"]);
    let server = Server::spawn(command.args(["--user", "nobody"])).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(get(server.address(), "/a.txt").0, 200);
    assert_eq!(status(server.process_id(), "Uid"), "65534 65534 65534 65534");
}

#[test]
fn nobody_of_that_name_is_an_error_of_the_settings() {
    let tree = tree();
    for (user, expected) in [("nosuchuser", "there is no user nosuchuser"), ("root", "leave `user` out")] {
        let finished = served_by(tree.root(), user);
        assert_eq!(finished.status.code(), Some(78), "{}", finished.stderr);
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
        let tested = finish(serve(tree.root()).args(["--user", user, "-t"]));
        assert_eq!(tested.status.code(), Some(78), "{}", tested.stderr);
        assert!(tested.stderr.contains(expected), "{}", tested.stderr);
    }
}

#[test]
fn who_serves_as_root_is_advised() {
    let tree = tree();
    if is_root() {
        let server = Server::start(tree.root(), &[]).unwrap_or_else(|said| panic!("{said}"));
        assert!(said(&server, "user").contains("--user www-data"));
    }
}
