//! The server within its sandbox: it serves, it says how it is confined, and the kernel says the same.
use std::process::Command;

use staunch_tests::house::waiting::until;
use staunch_tests::process::{Server, binary, finish, serve};

use crate::world::{confined, get, is_whole, said, status, tree};

/// Whether the tests themselves run under a filter, as in most containers.
fn is_filtered() -> bool {
    status(std::process::id(), "Seccomp") != "0"
}

#[test]
fn every_thread_is_confined_and_serves_on_both_engines() {
    if !is_whole() {
        return;
    }
    for io in ["epoll", "uring"] {
        let tree = tree();
        let mut command = serve(tree.root());
        let server = Server::spawn(command.args(["--io", io, "--sandbox", "on", "--listing", "on"]));
        let server = server.unwrap_or_else(|said| panic!("{said}"));
        let line = said(&server, "sandbox");
        let beside = tree.root().parent().expect("a folder").display().to_string();
        assert!(line.starts_with("landlock (ABI ") && line.contains(") + seccomp; "), "{line}");
        assert!(line.contains(&format!("{beside} (read)")), "{line}");
        assert_eq!(get(server.address(), "/a.txt"), (200, b"hello, world\n".to_vec()));
        assert_eq!(status(server.process_id(), "Seccomp"), "2");
        assert_eq!(status(server.process_id(), "NoNewPrivs"), "1");
    }
}

#[test]
fn changes_are_seen_and_links_out_are_not_followed() {
    let outer = tree();
    let tree = tree();
    std::os::unix::fs::symlink(outer.root(), tree.root().join("out")).expect("a link");
    let server = Server::start(tree.root(), &[]).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(get(server.address(), "/a.txt").0, 200);
    std::fs::write(tree.root().join("a.txt"), "changed").expect("our own file");
    until("the change is served", || get(server.address(), "/a.txt").1 == b"changed");
    assert_eq!(get(server.address(), "/out/a.txt").0, 404);
}

#[test]
fn what_the_settings_name_may_be_reached() {
    if !is_whole() {
        return;
    }
    let tree = tree();
    let outer = tree.root().parent().expect("a folder");
    for folder in ["etc", "log", "run"] {
        std::fs::create_dir_all(outer.join(folder)).expect("a folder");
    }
    let file = outer.join("etc/staunch.toml");
    let (log, number) = (outer.join("log/access.log"), outer.join("run/staunch.pid"));
    std::fs::create_dir_all(outer.join("store/media")).expect("a folder");
    std::fs::write(outer.join("store/media/a.txt"), "beside").expect("our own file");
    let beside = format!("[[path]]\nmatch = '/media/*'\nroot = {:?}\n", outer.join("store/media"));
    let text = format!("root = {:?}\naccess_log = {log:?}\npid_file = {number:?}\n{beside}", tree.root());
    std::fs::write(&file, text).expect("our own file");
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", "127.0.0.1:0", "--workers", "1", "--sandbox", "on", "--config"]);
    let server = Server::spawn(command.arg(&file)).unwrap_or_else(|said| panic!("{said}"));
    let line = said(&server, "sandbox");
    for (folder, right) in [("etc", "read"), ("store", "read"), ("log", "write"), ("run", "write")] {
        let expected = format!("{} ({right})", outer.join(folder).display());
        assert!(line.contains(&expected), "{expected} is not in: {line}");
    }
    assert_eq!(get(server.address(), "/media/a.txt"), (200, b"beside".to_vec()));
}

#[test]
fn off_leaves_everything_as_it_is() {
    let tree = tree();
    let server = Server::start(tree.root(), &["--sandbox", "off"]).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(said(&server, "sandbox"), "off");
    assert_eq!(get(server.address(), "/a.txt").0, 200);
    if !is_filtered() {
        assert_eq!(status(server.process_id(), "Seccomp"), "0");
    }
}

#[test]
fn what_the_kernel_lacks_is_named_and_only_insisting_on_it_is_an_error() {
    if !is_whole() {
        return;
    }
    for (what, name, rest) in [
        ("landlock", "this kernel has no Landlock", "seccomp; "),
        ("seccomp", "no filter of system calls", "landlock ("),
    ] {
        let tree = tree();
        let command = |sandbox| {
            let mut command = Command::new(confined());
            command.args(["without", what]).arg(binary()).arg("serve").arg(tree.root());
            command.args([
                "--listen",
                "127.0.0.1:0",
                "--workers",
                "1",
                "--io",
                "epoll",
                "--sandbox",
                sandbox,
            ]);
            command
        };
        let refused = finish(&mut command("on"));
        assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
        assert!(
            refused.stderr.contains(name) && refused.stderr.contains("--sandbox auto"),
            "{}",
            refused.stderr
        );
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        let server = Server::spawn(&mut command("auto")).unwrap_or_else(|said| panic!("{said}"));
        let line = said(&server, "sandbox");
        assert!(line.starts_with(rest) && line.contains(name), "{line}");
        assert_eq!(get(server.address(), "/a.txt").0, 200);
    }
}
