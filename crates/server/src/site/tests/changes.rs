//! Changes of files, as a peer sees them.

use std::time::Duration;

use super::folder;
use crate::site::testing::{Peer, Response};

/// Asks until the answer is as wanted; the test fails if it never is.
fn until(peer: &mut Peer, target: &str, wanted: impl Fn(&Response) -> bool) {
    let mut last = None;
    for _ in 0..1000 {
        let response = peer.get(target);
        if wanted(&response) {
            return;
        }
        last = Some(response);
        // tidy: allow(clock): a test waits for background threads, with a bound.
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{target} stayed {last:?}");
}

#[test]
fn changes_are_seen() {
    let folder = folder();
    let mut peer = Peer::new(&folder);
    let is = |body: &'static [u8]| move |response: &Response| response.code == 200 && response.body == body;
    assert!(peer.get("/").text().contains("home"));
    assert!(!peer.get("/deep/").text().contains("new.txt"));
    assert_eq!(peer.get("/deep/a%20b.txt").code, 200);
    folder.write("index.html", b"written over");
    until(&mut peer, "/", is(b"written over"));
    folder.write("other", b"renamed over");
    std::fs::rename(folder.path().join("other"), folder.path().join("index.html")).unwrap();
    until(&mut peer, "/", is(b"renamed over"));
    std::fs::remove_file(folder.path().join("index.html")).unwrap();
    until(&mut peer, "/", |response| response.text().contains("digits.bin"));
    folder.write("index.html", b"back");
    until(&mut peer, "/", is(b"back"));
    folder.write("deep/new.txt", b"new");
    until(&mut peer, "/deep/", |response| response.text().contains("new.txt"));
    folder.write("new folder/inner/x.txt", b"deep");
    until(&mut peer, "/new%20folder/inner/x.txt", is(b"deep"));
    std::fs::rename(folder.path().join("deep"), folder.path().join("moved")).unwrap();
    until(&mut peer, "/deep/a%20b.txt", |response| response.code == 404);
    until(&mut peer, "/moved/a%20b.txt", is(b"in a folder"));
    folder.write("moved/a b.txt", b"after the move");
    until(&mut peer, "/moved/a%20b.txt", is(b"after the move"));
    std::fs::remove_dir_all(folder.path().join("moved")).unwrap();
    until(&mut peer, "/moved/a%20b.txt", |response| response.code == 404);
    until(&mut peer, "/moved/", |response| response.code == 404);
}

#[test]
fn behind_links_changes_are_seen_in_the_next_second() {
    let folder = folder();
    folder.link("deep/a b.txt", "linked.txt");
    let mut peer = Peer::new(&folder);
    assert_eq!(peer.get("/linked.txt").text(), "in a folder");
    folder.write("deep/a b.txt", b"changed");
    assert_eq!(peer.get("/linked.txt").text(), "in a folder", "within the same second");
    peer.date = *b"Fri, 20 Nov 2026 10:00:01 GMT";
    assert_eq!(peer.get("/linked.txt").text(), "changed");
}

#[test]
fn a_file_written_all_the_time_is_never_mixed() {
    let folder = folder();
    folder.write("busy.txt", &[b'a'; 40_000]);
    let mut peer = Peer::new(&folder);
    let path = folder.path().join("busy.txt");
    let writer = std::thread::spawn(move || {
        for round in 0..300_usize {
            let letter = b'a' + (round % 26) as u8;
            let content = vec![letter; 20_000 + round * 100];
            if round % 3 == 0 {
                std::fs::write(path.with_extension("next"), content).unwrap();
                std::fs::rename(path.with_extension("next"), &path).unwrap();
            } else {
                std::fs::write(&path, content).unwrap();
            }
        }
    });
    let mut answers = 0;
    while !writer.is_finished() {
        let response = peer.get("/busy.txt");
        assert_eq!(response.code, 200);
        assert!(response.body.windows(2).all(|pair| pair[0] == pair[1]), "a mixed body");
        answers += 1;
    }
    writer.join().unwrap();
    assert!(answers > 0);
    let last = vec![b'a' + (299 % 26) as u8; 20_000 + 299 * 100];
    until(&mut peer, "/busy.txt", |response| response.body == last);
}
