//! Files that change while they are served: never a mixed body, never a short one that looks complete.
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use staunch_tests::body::SocketLink;
use staunch_tests::conversation::{Change, Content};
use staunch_tests::house::waiting::until;
use staunch_tests::response::Response;
use staunch_tests::tree::{Tree, bytes_of};

use crate::outside::{ENGINES, PATIENCE, get, receive, server_of, tree_of};

const BIG_BYTES: u64 = 24_000_000;

/// A whole version of a file: one letter so many times.
fn version(letter: u8, length: usize) -> Vec<u8> {
    vec![letter; length]
}

/// Replaces a file at once, by renaming.
fn replace(path: &Path, bytes: &[u8]) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, bytes).expect("written");
    std::fs::rename(&beside, path).expect("renamed");
}

/// What a client of the big file holds when the connection is over.
fn rest_of(mut link: SocketLink) -> Option<Response> {
    loop {
        if let Ok(Some((response, _))) = Response::read(link.received(), false) {
            return Some(response);
        }
        if link.end().is_some() {
            return None;
        }
        assert!(link.fill(PATIENCE), "the server neither goes on nor ends");
    }
}

#[test]
fn a_big_file_changes_under_its_readers() {
    let old = bytes_of(&Content::Pattern(BIG_BYTES));
    let new = version(b'n', BIG_BYTES as usize);
    type Act = fn(&Path, &[u8]);
    let acts: [(&str, Act, bool); 5] = [
        ("replaced by renaming", |path, new| replace(path, new), true),
        ("deleted", |path, _| std::fs::remove_file(path).expect("deleted"), true),
        (
            "truncated",
            |path, _| {
                std::fs::File::options()
                    .write(true)
                    .open(path)
                    .and_then(|file| file.set_len(1000))
                    .expect("cut");
            },
            false,
        ),
        (
            "written over in place",
            |path, new| {
                let file = std::fs::File::options().write(true).open(path).expect("open");
                std::os::unix::fs::FileExt::write_all_at(&file, &new[..12_000_000], 6_000_000)
                    .expect("written");
            },
            false,
        ),
        (
            "appended to",
            |path, new| {
                let mut file = std::fs::File::options().append(true).open(path).expect("open");
                std::io::Write::write_all(&mut file, &new[..1000]).expect("written");
            },
            false,
        ),
    ];
    for io in ENGINES {
        for (what, act, keeps_old) in acts {
            let tree = tree_of(&[("big.bin", Content::Pattern(BIG_BYTES))]);
            let path = tree.root().join("big.bin");
            let server = server_of(&tree, &["--io", io]);
            let mut link = SocketLink::connect(server.address()).expect("a connection");
            link.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            assert!(link.fill(PATIENCE), "{io}: an answer begins");
            act(&path, &new);
            match rest_of(link) {
                // The old file is still there for who has it open; it may also be given up.
                Some(response) => assert!(
                    response.body == old,
                    "{io}: {what}: a body that looks complete is not the old file ({} bytes)",
                    response.body.len()
                ),
                None => assert!(!keeps_old || what == "deleted" || what.contains("renaming"), "{io}: {what}"),
            }
        }
    }
}

/// Readers ask for a small file all the time while a writer replaces it: every answer is one whole version.
#[test]
fn a_small_file_replaced_all_the_time_is_always_whole() {
    for io in ENGINES {
        for arguments in [&["--io", io][..], &["--io", io, "--no-cache"], &["--io", io, "--cache-size", "0"]]
        {
            let tree = Tree::new().expect("a tree");
            let path = tree.root().join("a.txt");
            replace(&path, &version(b'a', 1000));
            let server = server_of(&tree, arguments);
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut number = 0usize;
                    while !stop.load(Ordering::Relaxed) {
                        number += 1;
                        let letter = b'a' + (number % 26) as u8;
                        replace(&path, &version(letter, 1000 + 977 * (number % 40)));
                        std::thread::sleep(Duration::from_micros(300));
                    }
                });
                let _stop = StopAtEnd(&stop);
                println!("{arguments:?}");
                read_versions(&server, 1500, false);
            });
        }
    }
}

/// Readers ask for a small file that is written in place: they get what the file was at some moment.
#[test]
fn a_small_file_written_in_place_is_never_mixed() {
    for io in ENGINES {
        for arguments in [&["--io", io][..], &["--io", io, "--no-cache"]] {
            let tree = Tree::new().expect("a tree");
            let path = tree.root().join("a.txt");
            std::fs::write(&path, version(b'a', 1000)).expect("written");
            let server = server_of(&tree, arguments);
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut number = 0usize;
                    while !stop.load(Ordering::Relaxed) {
                        number += 1;
                        let letter = b'a' + (number % 26) as u8;
                        std::fs::write(&path, version(letter, 1000 + 977 * (number % 40))).expect("written");
                        std::thread::sleep(Duration::from_micros(500));
                    }
                });
                let _stop = StopAtEnd(&stop);
                println!("{arguments:?}");
                read_versions(&server, 1500, true);
            });
        }
    }
}

/// Ends the writer's loop, also when the reader fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads the file many times. With `in_place` a moment between truncation and writing, or an answer given up
/// because the file changed under it, is right too.
fn read_versions(server: &staunch_tests::process::Server, times: usize, in_place: bool) {
    let mut link = SocketLink::connect(server.address()).expect("a connection");
    for turn in 0..times {
        link.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        let response = match receive(&mut link) {
            Ok(response) => response,
            Err(_) if in_place => {
                link = SocketLink::connect(server.address()).expect("a connection");
                continue;
            }
            Err(error) => panic!("turn {turn}: {error}"),
        };
        assert_eq!(response.status, 200, "turn {turn}");
        let body = &response.body;
        let first = body.first().copied().unwrap_or(b'a');
        assert!(body.iter().all(|&letter| letter == first), "turn {turn}: two versions are mixed");
        let whole = body.len() >= 1000 && (body.len() - 1000).is_multiple_of(977);
        assert!(whole || in_place, "turn {turn}: {} bytes are no version", body.len());
    }
}

#[test]
fn one_file_among_many_changes() {
    const FILES: usize = 20_000;
    let tree = Tree::new().expect("a tree");
    for number in 0..FILES {
        let path = tree.root().join(format!("d{}/{number}.txt", number % 100));
        if number < 100 {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        }
        std::fs::write(path, format!("file {number}\n")).expect("written");
    }
    for io in ENGINES {
        let server = server_of(&tree, &["--io", io]);
        // Serving begins before preparation ends.
        let first = get(server.address(), "/d99/19999.txt").expect("an answer");
        assert!(first.body.starts_with(b"file 19999"), "{io}");
        for number in [0, 777, 19_999] {
            let path = format!("d{}/{number}.txt", number % 100);
            let url = format!("/{path}");
            assert_eq!(get(server.address(), &url).expect("an answer").status, 200);
            let text = format!("file {number}, changed under {io}\n").into_bytes();
            let change = Change::File { path, content: Content::Bytes(text.clone()) };
            tree.apply(&change).expect("changed");
            until("the change is served", || {
                let response = get(server.address(), &url).expect("an answer");
                assert_eq!(response.status, 200, "{io}: {url}");
                response.body == text
            });
        }
    }
}
