//! HUP with other sites in the file: connections live on, and each answer is wholly of one table.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::body::SocketLink;
use staunch_tests::process::{Server, serve_by};
use staunch_tests::response::Response;
use staunch_tests::tree::Tree;

/// How long an answer or a change is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Sends one request on the connection and reads its answer.
pub(crate) fn ask(link: &mut SocketLink, host: &str, path: &str) -> Response {
    link.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    loop {
        if let Some((response, length_bytes)) = Response::read(link.received(), false).expect("a response") {
            link.take(length_bytes);
            return response;
        }
        assert!(link.fill(PATIENCE) && link.end().is_none(), "no answer to {host}{path}");
    }
}

fn settings(root: &str, mark: usize) -> String {
    let site = |host: &str| format!("[[site]]\nroot = \"{root}/{host}\"\nhosts = [\"{host}\"]\n");
    let marked = format!("{}headers = {{ X-Mark = \"{mark}\" }}\n", site("changed"));
    // The third comes and goes.
    let third = if mark.is_multiple_of(2) { site("third") } else { String::new() };
    format!("{}{marked}{third}", site("same"))
}

#[test]
fn connections_live_on_while_sites_are_exchanged() {
    for io in ["epoll", "uring"] {
        let tree = Tree::new().expect("a tree");
        let root = tree.root().display().to_string();
        for host in ["same", "changed", "third"] {
            std::fs::create_dir(tree.root().join(host)).expect("a folder");
            std::fs::write(tree.root().join(host).join("a.txt"), host).expect("a file");
        }
        let file = tree.root().with_file_name("staunch.toml");
        std::fs::write(&file, settings(&root, 0)).expect("settings");
        let server = Server::spawn(serve_by(&file).args(["--io", io])).expect("a server");
        let process = Pid::from_raw(server.process_id() as i32).expect("a process");
        let mut link = SocketLink::connect(server.address()).expect("a connection");
        let tag = ask(&mut link, "same", "/a.txt").value("etag");
        for mark in 1..=20 {
            std::fs::write(&file, settings(&root, mark)).expect("settings");
            kill_process(process, Signal::HUP).expect("a signal");
            let expected = Some(mark.to_string());
            let changed = (0..5000).any(|_| {
                let unchanged = ask(&mut link, "same", "/a.txt");
                assert_eq!((unchanged.status, &unchanged.body[..]), (200, &b"same"[..]), "{io}");
                assert_eq!(unchanged.value("etag"), tag);
                let other = ask(&mut link, "changed", "/a.txt");
                assert_eq!((other.status, &other.body[..]), (200, &b"changed"[..]), "{io}");
                std::thread::sleep(Duration::from_millis(1));
                other.value("x-mark") == expected
            });
            assert!(changed, "{io}: mark {mark} is not seen");
            let third = ask(&mut link, "third", "/a.txt");
            let owner: &[u8] = if mark.is_multiple_of(2) { b"third" } else { b"same" };
            assert_eq!(&third.body[..], owner, "{io}: the first site is the default");
        }
        // A file that is wrong leaves everything as it is.
        std::fs::write(&file, settings(&root, 21).replace("/changed\"", "/none\"")).expect("settings");
        kill_process(process, Signal::HUP).expect("a signal");
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(ask(&mut link, "changed", "/a.txt").value("x-mark").as_deref(), Some("20"), "{io}");
    }
}
