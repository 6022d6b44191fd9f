//! Fewer watches than folders, or none at all: what is not watched is still seen to change, and it is said
//! once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::process::{Server, binary, is_installed};
use staunch_tests::tree::Tree;
use staunch_tls::LocalAuthority;

use crate::client::{Client, ENGINES, until};

const FOLDERS: usize = 8;

/// A server of `root` in a user namespace of its own with a limit of that namespace, so that nobody else is
/// touched, and where it complains. None where no such namespace can be made.
fn limited(limit: &str, root: &Path, io: &str) -> Option<(Command, PathBuf)> {
    let namespace = ["--user", "--map-root-user"];
    let may_be_made = Command::new("unshare").args(namespace).arg("true").status();
    if !may_be_made.is_ok_and(|status| status.success()) {
        println!("skipped: no user namespace can be made here");
        return None;
    }
    let complaints = root.parent().expect("a folder of the test's own").join("complaints");
    let script = format!("echo {limit} && exec \"$@\" 2>\"$0\"");
    let mut command = Command::new("unshare");
    command.args(namespace).args(["sh", "-c", &script]).arg(&complaints);
    command.arg(binary()).arg("serve").arg(root);
    command.args(["--listen", "127.0.0.1:0", "--workers", "1", "--io", io]);
    Some((command, complaints))
}

fn start(command: &mut Command) -> Server {
    Server::spawn(command).unwrap_or_else(|said| panic!("{said}"))
}

#[test]
fn with_too_few_watches_changes_are_seen_all_the_same() {
    for io in ENGINES {
        let tree = Tree::with(&[]).expect("a tree");
        (0..FOLDERS).for_each(|folder| write(&tree, folder, "before"));
        let limit = "3 > /proc/sys/user/max_inotify_watches";
        let Some((mut command, complaints)) = limited(limit, tree.root(), io) else { return };
        let mut server = start(&mut command);
        for word in ["before", "after", "again"] {
            (0..FOLDERS).for_each(|folder| write(&tree, folder, word));
            for folder in 0..FOLDERS {
                until(&format!("{io}: {word} in folder {folder}"), || body(&server, folder) == word);
            }
        }
        assert!(server.is_running(), "{io}");
        let said = fs::read_to_string(&complaints).expect("a file");
        assert_eq!(said.matches("fs.inotify.max_user_watches").count(), 1, "{io}: {said}");
    }
}

const NO_INSTANCE: &str = "0 > /proc/sys/user/max_inotify_instances";

#[test]
fn without_certificates_nothing_is_said_of_their_watch() {
    for io in ENGINES {
        let tree = Tree::with(&[]).expect("a tree");
        let Some((mut command, complaints)) = limited(NO_INSTANCE, tree.root(), io) else { return };
        write(&tree, 0, "served");
        let server = start(&mut command);
        assert_eq!(body(&server, 0), "served", "{io}");
        let said = fs::read_to_string(&complaints).expect("a file");
        assert!(!said.contains("certificates"), "{io}: {said}");
    }
}

/// The certificate is replaced by one of another authority, and each is all that its client trusts. HUP is
/// what takes it here: the minute after which it is taken by itself is that of a test beside the watch.
#[test]
fn without_an_instance_certificates_are_served_and_replaced() {
    if !is_installed("curl") {
        return;
    }
    for io in ENGINES {
        let tree = Tree::with(&[]).expect("a tree");
        let Some((mut command, complaints)) = limited(NO_INSTANCE, tree.root(), io) else { return };
        let folder = tree.root().parent().expect("a folder of the test's own");
        let [first, second] = ["first.pem", "second.pem"].map(|authority| folder.join(authority));
        write_pair(folder, &first);
        command.args(["--tls-listen", "127.0.0.1:0"]);
        command.arg("--tls-certificate").arg(folder.join("chain.pem"));
        command.arg("--tls-key").arg(folder.join("key.pem"));
        let server = start(&mut command);
        let port = server.secured_address().port();
        assert!(is_served(port, &first) && !is_served(port, &second), "{io}");
        write_pair(folder, &second);
        let process = Pid::from_raw(server.process_id() as i32).expect("a process");
        kill_process(process, Signal::HUP).expect("a process of ours");
        until(&format!("{io}: the second certificate"), || is_served(port, &second));
        assert!(!is_served(port, &first), "{io}");
        let said = fs::read_to_string(&complaints).expect("a file");
        let line = "fs.inotify.max_user_instances): they are read again every minute";
        // Said at the start, and by the reload.
        assert_eq!(said.matches(line).count(), 2, "{io}: {said}");
    }
}

/// A pair for `localhost` of a new authority, which is written to a file for those who are to trust it.
fn write_pair(folder: &Path, authority_file: &Path) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock stands after 1970").as_secs();
    let authority = LocalAuthority::create(now).expect("an authority");
    let issued = authority.issue(&["localhost"], now).expect("a local name");
    fs::write(authority_file, authority.certificate_pem()).expect("a file");
    fs::write(folder.join("key.pem"), issued.key_pem.as_bytes()).expect("a file");
    fs::write(folder.join("chain.pem"), issued.certificate_pem).expect("a file");
}

/// Whether curl that trusts this authority alone gets the file.
fn is_served(port: u16, authority: &Path) -> bool {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--max-time", "30", "--noproxy", "*", "--output", "/dev/null"]);
    curl.arg("--cacert").arg(authority).arg(format!("https://localhost:{port}/a.txt"));
    curl.status().expect("curl runs").success()
}

fn write(tree: &Tree, folder: usize, text: &str) {
    let folder = tree.root().join(format!("folder-{folder}"));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("page.txt"), text).expect("a file");
}

fn body(server: &Server, folder: usize) -> String {
    let request = format!("GET /folder-{folder}/page.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = Client::with(server.address(), request.as_bytes()).receive().expect("an answer");
    String::from_utf8(response.body).expect("text")
}
