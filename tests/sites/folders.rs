//! Folders of paths, as they come, change and go: the site around them is served all the while.

use std::fs;

use staunch_tests::body::SocketLink;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{Server, finish, serve_by};
use staunch_tests::tree::Tree;

use crate::exchange::ask;

/// Status and body of what a server gives for a path, asked on a connection of its own.
fn get(server: &Server, path: &str) -> (u16, Vec<u8>) {
    let mut link = SocketLink::connect(server.address()).expect("a connection");
    let response = ask(&mut link, "a", path);
    (response.status, response.body)
}

#[test]
fn a_folder_that_comes_changes_and_goes() {
    for io in ["epoll", "uring"] {
        let tree = Tree::with(&[]).expect("a tree");
        let beside = tree.root().with_file_name("beside");
        fs::write(tree.root().join("home.txt"), "home").expect("a file");
        let settings = tree.root().with_file_name("staunch.toml");
        let text = format!("root = {:?}\n[[path]]\nmatch = '/media/*'\nroot = {beside:?}\n", tree.root());
        fs::write(&settings, text).expect("settings");
        let server =
            Server::spawn(serve_by(&settings).args(["--io", io])).unwrap_or_else(|said| panic!("{said}"));
        assert_eq!(get(&server, "/home.txt"), (200, b"home".to_vec()), "{io}");
        assert_eq!(get(&server, "/media/a.txt").0, 503, "{io}");
        fs::create_dir(&beside).expect("a folder");
        fs::write(beside.join("a.txt"), "one").expect("a file");
        until("the folder is opened", || get(&server, "/media/a.txt") == (200, b"one".to_vec()));
        fs::write(beside.join("a.txt"), "two").expect("a file");
        until("the change is served", || get(&server, "/media/a.txt") == (200, b"two".to_vec()));
        fs::remove_dir_all(&beside).expect("a folder of ours");
        until("nothing of it is left", || get(&server, "/media/a.txt").0 != 200);
        assert_eq!(get(&server, "/home.txt"), (200, b"home".to_vec()), "{io}");
        fs::create_dir(&beside).expect("a folder");
        fs::write(beside.join("a.txt"), "three").expect("a file");
        until("the new folder is opened", || get(&server, "/media/a.txt") == (200, b"three".to_vec()));
        assert_eq!(get(&server, "/home.txt"), (200, b"home".to_vec()), "{io}");
    }
}

#[test]
fn a_missing_folder_is_warned_of_and_one_of_the_system_refused() {
    let tree = Tree::with(&[]).expect("a tree");
    let settings = tree.root().with_file_name("staunch.toml");
    let test = |folder: &str| {
        let root = tree.root();
        fs::write(&settings, format!("root = {root:?}\n[[path]]\nmatch = '/media/*'\nroot = '{folder}'\n"))
            .expect("settings");
        finish(serve_by(&settings).arg("-t"))
    };
    let missing = test("/srv/no/such/folder");
    assert_eq!(missing.status.code(), Some(0), "{}", missing.stderr);
    let warning = "/media/*: the folder /srv/no/such/folder does not exist";
    assert!(missing.stderr.contains(warning), "{}", missing.stderr);
    let of_system = test("/etc");
    assert_eq!(of_system.status.code(), Some(78), "{}", of_system.stderr);
    assert!(of_system.stderr.contains(":4:1: root: /etc is a folder of the system"), "{}", of_system.stderr);
}
