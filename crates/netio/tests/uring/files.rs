//! Sending files: small and large, holes, files that change meanwhile, several parts, connections that go on.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use staunch_netio::{FilePart, Io, Outgoing, stamp};

use super::fixture::{Event, Fixture, Sizes, pattern, reset};

/// A file without a name that holds these bytes.
fn file_of(bytes: &[u8]) -> File {
    let path = std::env::temp_dir().join(format!("staunch-uring-{}-{:p}", std::process::id(), bytes));
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn part(file: &File, offset_bytes: u64, length_bytes: u64) -> FilePart {
    let file = Arc::new(OwnedFd::from(file.try_clone().unwrap()));
    FilePart { stamp: stamp(&*file).unwrap(), file, offset_bytes, length_bytes }
}

fn with_head(parts: Vec<FilePart>) -> Outgoing {
    let mut outgoing = Outgoing::default();
    outgoing.bytes().extend_from_slice(b"head");
    for part in parts {
        outgoing.push_file(part);
        outgoing.bytes().extend_from_slice(b"|");
    }
    outgoing
}

fn read(mut peer: &TcpStream, length: usize) -> Vec<u8> {
    let mut got = vec![0; length];
    peer.read_exact(&mut got).unwrap();
    got
}

/// By sendfile(2), and copied as on a kernel that makes no descriptors of connections.
fn both_ways(test: fn(Fixture)) {
    for plain in [false, true] {
        let Some(fixture) = Fixture::new(Sizes { plain, ..Sizes::default() }) else { return };
        test(fixture);
    }
}

#[test]
fn files_of_all_sizes_arrive_and_the_connection_goes_on() {
    both_ways(send_all_sizes);
}

fn send_all_sizes(mut fixture: Fixture) {
    let (mut peer, slot) = fixture.receiving_connection();
    for size in [0, 1, 4096, 65_536, 65_537, 262_144, 262_145, 1_000_000, 64 << 20] {
        let bytes = pattern(size);
        let file = file_of(&bytes);
        let half = (size / 2) as u64;
        let parts = vec![part(&file, 0, size as u64), part(&file, half, size as u64 - half)];
        fixture.send(slot, with_head(parts), false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| read(&peer, 4 + size + 1 + size - size / 2 + 1));
            assert_eq!(fixture.next(), Event::Sent(slot, 0), "size {size}");
            let expected = [b"head", &bytes[..], b"|", &bytes[size / 2..], b"|"].concat();
            assert!(reader.join().unwrap() == expected, "size {size}");
        });
        peer.write_all(b"next").unwrap();
        assert_eq!(fixture.next(), Event::Received(slot, b"next".to_vec()));
    }
}

#[test]
fn receiving_goes_on_while_a_file_is_being_sent() {
    both_ways(receive_meanwhile);
}

fn receive_meanwhile(mut fixture: Fixture) {
    let (mut peer, slot) = fixture.receiving_connection();
    let bytes = pattern(32 << 20);
    fixture.send(slot, with_head(vec![part(&file_of(&bytes), 0, bytes.len() as u64)]), false);
    fixture.wait(|event| matches!(event, Event::Progress(_)));
    for round in 0..5u8 {
        peer.write_all(&[round]).unwrap();
        assert_eq!(fixture.next(), Event::Received(slot, vec![round]));
        fixture.io.pause(slot);
        fixture.turns(2);
        fixture.io.receive(slot);
        assert_eq!(read(&peer, 1000).len(), 1000);
    }
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(&peer, 4 + bytes.len() + 1 - 5000));
        assert_eq!(fixture.next(), Event::Sent(slot, 0));
        assert!(reader.join().unwrap().ends_with(b"|"));
    });
}

#[test]
fn a_file_that_changes_meanwhile_fails_before_its_end() {
    both_ways(change_meanwhile);
}

fn change_meanwhile(mut fixture: Fixture) {
    for truncated in [true, false] {
        for size in [200_000u64, 40 << 20] {
            let (peer, slot) = fixture.receiving_connection();
            let file = file_of(&pattern(size as usize));
            fixture.send(slot, with_head(vec![part(&file, 0, size)]), false);
            // Of the small file the first piece is read at once; the change comes before the second.
            if size > 1_000_000 {
                fixture.wait(|event| matches!(event, Event::Progress(_)));
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            if truncated {
                file.set_len(size / 2).unwrap();
            } else {
                file.write_all_at(b"changed", size - 7).unwrap();
            }
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    let mut got = Vec::new();
                    let _ = (&peer).read_to_end(&mut got);
                    got.len() as u64
                });
                assert_eq!(fixture.next(), Event::Sent(slot, libc::ESTALE), "size {size}");
                fixture.close_and_wait(slot);
                assert!(reader.join().unwrap() < 4 + size);
            });
        }
    }
}

#[test]
fn a_hole_of_a_tebibyte_is_served_where_it_is_asked_for() {
    let Some(mut fixture) = Fixture::new(Sizes::default()) else { return };
    let (peer, slot) = fixture.receiving_connection();
    let mut file = file_of(b"");
    let size = 1u64 << 40;
    file.set_len(size).unwrap();
    file.seek(SeekFrom::Start(size - 3)).unwrap();
    file.write_all(b"end").unwrap();
    let length = 30 << 20;
    fixture.send(slot, with_head(vec![part(&file, size - length, length)]), true);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(&peer, 4 + length as usize + 1));
        assert_eq!([fixture.next(), fixture.next()], [Event::Sent(slot, 0), Event::Closed(slot)]);
        let got = reader.join().unwrap();
        assert!(got.ends_with(b"end|") && got[4..got.len() - 4].iter().all(|byte| *byte == 0));
    });
}

#[test]
fn many_files_at_once_with_readers_of_different_speed() {
    let Some(mut fixture) = Fixture::new(Sizes { ring_capacity: 5, ..Sizes::default() }) else { return };
    let bytes = pattern(6 << 20);
    let file = file_of(&bytes);
    let peers: Vec<_> = (0..12).map(|_| fixture.receiving_connection()).collect();
    std::thread::scope(|scope| {
        for (index, (peer, slot)) in peers.iter().enumerate() {
            fixture.send(*slot, with_head(vec![part(&file, 0, bytes.len() as u64)]), index % 2 == 0);
            let bytes = &bytes;
            scope.spawn(move || {
                let mut got = Vec::new();
                while got.len() < bytes.len() + 5 {
                    let piece = read(peer, (100_000 + index * 50_000).min(bytes.len() + 5 - got.len()));
                    got.extend(piece);
                    std::thread::yield_now();
                }
                assert!(got[4..].starts_with(bytes));
            });
        }
        for _ in 0..12 {
            fixture.wait(|event| matches!(event, Event::Sent(_, 0)));
        }
    });
}

#[test]
fn close_and_reset_while_a_file_is_being_sent() {
    both_ways(close_and_reset);
}

fn close_and_reset(mut fixture: Fixture) {
    let bytes = pattern(20 << 20);
    let file = file_of(&bytes);
    for turns in 0..8 {
        for resets in [false, true] {
            let (peer, slot) = fixture.receiving_connection();
            let length = if turns % 2 == 0 { bytes.len() as u64 } else { 250_000 };
            fixture.send(slot, with_head(vec![part(&file, 0, length)]), turns % 3 == 0);
            fixture.turns(turns * 2);
            if resets {
                reset(peer);
            }
            fixture.close_and_wait(slot);
        }
    }
}
