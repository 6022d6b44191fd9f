//! Fewer watches than folders: what is not watched is still seen to change, and it is said once.

use std::fs;
use std::process::Command;

use staunch_tests::process::{Server, binary};
use staunch_tests::tree::Tree;

use crate::client::{Client, ENGINES, until};

const FOLDERS: usize = 8;
/// The server's own user namespace has so few, and nobody else is touched.
const LIMIT: &str = "echo 3 > /proc/sys/user/max_inotify_watches && exec \"$@\" 2>\"$0\"";

#[test]
fn with_too_few_watches_changes_are_seen_all_the_same() {
    for io in ENGINES {
        let tree = Tree::with(&[]).expect("a tree");
        (0..FOLDERS).for_each(|folder| write(&tree, folder, "before"));
        let mut command = Command::new("unshare");
        let complaints = std::env::temp_dir().join(format!("staunch-{}-watches-{io}", std::process::id()));
        command.args(["--user", "--map-root-user", "sh", "-c", LIMIT]).arg(&complaints);
        command.arg(binary()).arg("serve");
        command.arg(tree.root()).args(["--listen", "127.0.0.1:0", "--workers", "1", "--io", io]);
        let may_be_made = Command::new("unshare").args(["--user", "--map-root-user", "true"]).status();
        if !may_be_made.is_ok_and(|status| status.success()) {
            return println!("skipped: no user namespace can be made here");
        }
        let mut server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
        for word in ["before", "after", "again"] {
            (0..FOLDERS).for_each(|folder| write(&tree, folder, word));
            for folder in 0..FOLDERS {
                until(&format!("{io}: {word} in folder {folder}"), || body(&server, folder) == word);
            }
        }
        assert!(server.is_running(), "{io}");
        let said = fs::read_to_string(&complaints).expect("a file");
        assert_eq!(said.matches("fs.inotify.max_user_watches").count(), 1, "{io}: {said}");
        fs::remove_file(&complaints).expect("our own file");
    }
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
