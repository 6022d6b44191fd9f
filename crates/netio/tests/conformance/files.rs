//! Files are sent whole, or visibly not whole: never a mixture that looks complete, never a wait for a disk.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use staunch_netio::{FilePart, FileStamp, Io, Outgoing, stamp};

use super::Make;
use super::harness::{Event, Harness, pattern_bytes};
use super::sending::read_slowly;

const ESTALE: i32 = 116;
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Lengths around every border there is: empty, a page, a piece, what is copied, a step.
pub(crate) fn every_small_length<I: Io>(make: Make<I>) {
    let folder = Folder::new();
    let mut harness = Harness::new(make, 8);
    for border in [0, 4 * KIB, 64 * KIB, 256 * KIB, 512 * KIB, 576 * KIB] {
        for length in [border.saturating_sub(1), border, border + 1] {
            send_whole(&mut harness, &folder.pattern("small", length), length);
        }
    }
}

pub(crate) fn sixty_four_mebibytes<I: Io>(make: Make<I>) {
    let folder = Folder::new();
    let mut harness = Harness::new(make, 8);
    send_whole(&mut harness, &folder.pattern("large", 64 * MIB), 64 * MIB);
}

/// Two ranges of one file with own bytes around them, as in a multipart answer.
pub(crate) fn ranges<I: Io>(make: Make<I>) {
    let folder = Folder::new();
    let file = folder.pattern("ranges", 3 * MIB);
    let mut harness = Harness::new(make, 8);
    for (first, second) in
        [((1, 10), (5_000, 70_000)), ((12_345, MIB), (MIB + 7, 2 * MIB - 7)), ((0, 0), (7, 1))]
    {
        let (mut client, slot) = harness.connect();
        let mut outgoing = Outgoing::default();
        let mut expected = Vec::new();
        for (offset, length) in [first, second] {
            outgoing.bytes().extend_from_slice(b"--border\r\n");
            outgoing.push_file(part(&file, offset, length));
            expected.extend_from_slice(b"--border\r\n");
            expected.extend(pattern_bytes(offset, length as usize));
        }
        outgoing.bytes().extend_from_slice(b"--border--");
        expected.extend_from_slice(b"--border--");
        assert_eq!(outgoing.length_bytes(), expected.len() as u64);
        harness.send(slot, outgoing, true);
        let reader = std::thread::spawn(move || {
            let mut received = Vec::new();
            client.read_to_end(&mut received).unwrap();
            received
        });
        let events = harness.until(|event| *event == Event::Closed(slot));
        assert!(events.contains(&Event::Sent(slot, 0)));
        assert!(reader.join().unwrap() == expected);
    }
}

pub(crate) fn slow_reader_of_a_file<I: Io>(make: Make<I>) {
    let folder = Folder::new();
    let length = 10 * MIB + 1;
    let file = folder.pattern("slow", length);
    let mut harness = Harness::new(make, 8);
    let (client, slot) = harness.connect_narrow();
    harness.send(slot, whole(&file, length), false);
    harness.settle();
    let reader = read_slowly(client, 0, length);
    let events = harness.until(|event| matches!(event, Event::Sent(..)));
    assert_eq!(events.last(), Some(&Event::Sent(slot, 0)));
    assert!(events.contains(&Event::Progress(slot)));
    harness.close_and_wait(slot);
    assert_eq!(reader.join().unwrap(), length);
}

pub(crate) fn truncated_while_sent<I: Io>(make: Make<I>) {
    spoil(make, |path, _| {
        OpenOptions::new().write(true).open(path).unwrap().set_len(100_000).unwrap();
    });
}

/// The whole file is written anew in place, with the same length, while a part of it waits in the socket.
pub(crate) fn rewritten_while_sent<I: Io>(make: Make<I>) {
    spoil(make, |path, length| {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&vec![b'?'; length as usize], 0).unwrap();
    });
}

/// Spoils a file while a reader with a small window has read only its beginning: the sending fails, and what
/// the peer has got is shorter than announced.
fn spoil<I: Io>(make: Make<I>, spoil: fn(&PathBuf, u64)) {
    let folder = Folder::new();
    let length = 20 * MIB;
    let path = folder.path("spoilt");
    let file = folder.pattern("spoilt", length);
    let mut harness = Harness::new(make, 8);
    let (mut client, slot) = harness.connect_narrow();
    harness.send(slot, whole(&file, length), true);
    harness.settle();
    let mut begin = vec![0; 5_000];
    client.read_exact(&mut begin).unwrap();
    assert!(begin == pattern_bytes(0, 5_000));
    spoil(&path, length);
    let reader = std::thread::spawn(move || {
        let mut rest = Vec::new();
        // The end may be a reset.
        let _ = client.read_to_end(&mut rest);
        rest.len() as u64
    });
    let events = harness.until(|event| *event == Event::Closed(slot));
    assert!(events.contains(&Event::Sent(slot, ESTALE)), "{events:?}");
    assert!(reader.join().unwrap() + 5_000 < length, "a spoilt body must not look complete");
}

/// A new file under the same name does not concern those who read the old one.
pub(crate) fn replaced_while_sent<I: Io>(make: Make<I>) {
    let folder = Folder::new();
    let length = 20 * MIB;
    let file = folder.pattern("old", length);
    folder.pattern("new", 10);
    let mut harness = Harness::new(make, 8);
    let (client, slot) = harness.connect_narrow();
    harness.send(slot, whole(&file, length), true);
    harness.settle();
    fs::rename(folder.path("new"), folder.path("old")).unwrap();
    let reader = read_slowly(client, 0, length);
    let events = harness.until(|event| *event == Event::Closed(slot));
    assert!(events.contains(&Event::Sent(slot, 0)));
    assert_eq!(reader.join().unwrap(), length);
}

/// The file changed between its stamp and its sending: not one byte of it.
pub(crate) fn changed_before<I: Io>(make: Make<I>) {
    let folder = Folder::new();
    for length in [10, 2 * MIB] {
        let file = folder.pattern("changed", length);
        let mut outgoing = whole(&file, length);
        let Some(staunch_netio::Part::File(part)) = outgoing.contents().1.first() else { unreachable!() };
        let older = FilePart {
            stamp: FileStamp { modified_ns: part.stamp.modified_ns - 1, ..part.stamp },
            ..part.clone()
        };
        outgoing.clear(0);
        outgoing.push_file(older);
        let mut harness = Harness::new(make, 8);
        let (client, slot) = harness.connect();
        harness.send(slot, outgoing, false);
        harness.expect(&Event::Sent(slot, ESTALE));
        harness.close_and_wait(slot);
        assert_eq!(read_slowly(client, 0, length).join().unwrap(), 0);
    }
}

/// The first and the last MiB of a file that is one hole but for its ends.
pub(crate) fn sparse_tebibyte<I: Io>(make: Make<I>) {
    const TIB: u64 = 1024 * 1024 * MIB;
    let folder = Folder::new();
    let path = folder.path("sparse");
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
    if file.set_len(TIB).is_err() {
        println!("this file system has no files of a tebibyte");
        return;
    }
    file.write_all(b"first").unwrap();
    file.seek(SeekFrom::End(-4)).unwrap();
    file.write_all(b"last").unwrap();
    let file = Arc::new(OwnedFd::from(file));
    let mut harness = Harness::new(make, 8);
    for offset in [0, TIB - MIB] {
        let (mut client, slot) = harness.connect();
        let mut outgoing = Outgoing::default();
        outgoing.push_file(part(&file, offset, MIB));
        harness.send(slot, outgoing, true);
        let reader = std::thread::spawn(move || {
            let mut received = Vec::new();
            client.read_to_end(&mut received).unwrap();
            received
        });
        let events = harness.until(|event| *event == Event::Closed(slot));
        assert!(events.contains(&Event::Sent(slot, 0)), "{events:?}");
        let mut expected = vec![0; MIB as usize];
        if offset == 0 {
            expected[..5].copy_from_slice(b"first");
        } else {
            expected[MIB as usize - 4..].copy_from_slice(b"last");
        }
        assert!(reader.join().unwrap() == expected);
    }
}

/// A file that is on the disk alone is read by the warming thread first; the peer notices nothing.
pub(crate) fn cold_file<I: Io>(make: Make<I>) {
    let folder = Folder::new();
    for length in [100, 300 * KIB, 5 * MIB + 3] {
        let file = folder.pattern("cold", length);
        rustix::fs::fsync(&*file).unwrap();
        rustix::fs::fadvise(&*file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let mut harness = Harness::new(make, 8);
        send_whole(&mut harness, &file, length);
    }
}

pub(crate) fn unreadable<I: Io>(make: Make<I>) {
    let folder = Folder::new();
    let path = folder.path("unreadable");
    fs::write(&path, vec![b'x'; 2_000_000]).unwrap();
    let only_writable = OpenOptions::new().write(true).open(&path).unwrap();
    let only_a_name = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).unwrap();
    let directory = File::open(&folder.root).unwrap();
    for file in [only_writable, only_a_name, directory] {
        let file = Arc::new(OwnedFd::from(file));
        for length in [1_000, 2_000_000] {
            let mut harness = Harness::new(make, 8);
            let (mut client, slot) = harness.connect();
            let mut outgoing = Outgoing::default();
            outgoing.bytes().extend_from_slice(b"head");
            outgoing.push_file(part(&file, 0, length));
            harness.send(slot, outgoing, true);
            let events = harness.until(|event| *event == Event::Closed(slot));
            let failed = events.iter().any(|event| matches!(event, Event::Sent(_, errno) if *errno > 0));
            assert!(failed, "{events:?}");
            let mut received = Vec::new();
            client.read_to_end(&mut received).unwrap();
            assert_eq!(received, b"head");
        }
    }
}

fn send_whole<I: Io>(harness: &mut Harness<I>, file: &Arc<OwnedFd>, length: u64) {
    let (client, slot) = harness.connect();
    harness.send(slot, whole(file, length), true);
    let reader = read_slowly(client, 0, length);
    let events = harness.until(|event| *event == Event::Closed(slot));
    assert!(events.contains(&Event::Sent(slot, 0)), "{events:?}");
    assert_eq!(reader.join().unwrap(), length);
}

fn whole(file: &Arc<OwnedFd>, length: u64) -> Outgoing {
    let mut outgoing = Outgoing::default();
    outgoing.push_file(part(file, 0, length));
    outgoing
}

fn part(file: &Arc<OwnedFd>, offset_bytes: u64, length_bytes: u64) -> FilePart {
    FilePart { file: Arc::clone(file), offset_bytes, length_bytes, stamp: stamp(&**file).unwrap() }
}

/// A folder that is gone with the test.
struct Folder {
    root: PathBuf,
}

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("staunch-netio-{}-{number}", std::process::id()));
        fs::create_dir(&root).unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A file of the pattern, written anew and opened for reading.
    fn pattern(&self, name: &str, length: u64) -> Arc<OwnedFd> {
        let mut file = File::create(self.path(name)).unwrap();
        let mut offset = 0;
        while offset < length {
            let piece = MIB.min(length - offset);
            file.write_all(&pattern_bytes(offset, piece as usize)).unwrap();
            offset += piece;
        }
        drop(file);
        Arc::new(OwnedFd::from(File::open(self.path(name)).unwrap()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own cleaning.
        let _ = fs::remove_dir_all(&self.root);
    }
}
