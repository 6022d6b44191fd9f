//! The rules of `file_send.rs`, one step at a time over a loopback connection.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::*;
use crate::file_stamp::stamp;
use crate::warming::Done;

/// Long enough for sendfile(2), short enough for the socket's buffers.
const LENGTH: u64 = COPIED_BYTES_MAX + 5 * PIECE_BYTES;

struct Scene {
    server: TcpStream,
    client: TcpStream,
    path: PathBuf,
    part: FilePart,
}

impl Scene {
    fn new(name: &str, length: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        let path = std::env::temp_dir().join(format!("staunch-file-send-{}-{name}", std::process::id()));
        fs::write(&path, vec![b'a'; length as usize]).unwrap();
        let file = Arc::new(OwnedFd::from(File::open(&path).unwrap()));
        let stamp = stamp(&*file).unwrap();
        Self { server, client, path, part: FilePart { file, offset_bytes: 0, length_bytes: length, stamp } }
    }

    /// Steps, reading at the other end, until a step says what is asked for.
    fn step_until(&mut self, send: &mut FileSend, wanted: impl Fn(FileStep) -> bool) -> (FileStep, Vec<u8>) {
        self.client.set_nonblocking(true).unwrap();
        let mut received = Vec::new();
        loop {
            let step = send.step(self.server.as_fd(), &self.part);
            // WouldBlock at this end too, once there is nothing more.
            let _ = self.client.read_to_end(&mut received);
            if wanted(step) {
                return (step, received);
            }
            assert!(!matches!(step, FileStep::Failed(_)), "{step:?}");
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own cleaning.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_over(step: FileStep) -> bool {
    matches!(step, FileStep::Done | FileStep::Failed(_))
}

#[test]
fn the_last_piece_waits_until_the_peer_has_the_rest() {
    let mut scene = Scene::new("waits", LENGTH);
    rustix::net::sockopt::set_socket_recv_buffer_size(&scene.client, 128 * 1024).unwrap();
    let mut send = FileSend::default();
    while LENGTH - send.sent_bytes > HELD_BACK_BYTES {
        assert_eq!(send.step(scene.server.as_fd(), &scene.part), FileStep::Progress);
    }
    for _ in 0..3 {
        assert_eq!(send.step(scene.server.as_fd(), &scene.part), FileStep::Draining);
    }
    let (step, mut received) = scene.step_until(&mut send, is_over);
    assert_eq!(step, FileStep::Done);
    assert!(!send.pages_queued);
    scene.server.shutdown(std::net::Shutdown::Write).unwrap();
    scene.client.set_nonblocking(false).unwrap();
    scene.client.read_to_end(&mut received).unwrap();
    assert_eq!(received.len() as u64, LENGTH);
}

#[test]
fn a_file_changed_before_its_last_piece_is_never_whole() {
    let mut scene = Scene::new("changed", LENGTH);
    let mut send = FileSend::default();
    while LENGTH - send.sent_bytes > HELD_BACK_BYTES {
        assert_eq!(send.step(scene.server.as_fd(), &scene.part), FileStep::Progress);
    }
    assert_eq!(LENGTH - send.sent_bytes, HELD_BACK_BYTES, "the last bytes are held back");
    // As many bytes as before, at another time; the change time of some file systems moves only every few ms.
    for _ in 0..100_000 {
        if has_changed(&scene.part).unwrap() {
            break;
        }
        File::options().write(true).open(&scene.path).unwrap().write_all(b"b").unwrap();
    }
    let (step, received) = scene.step_until(&mut send, is_over);
    assert_eq!(step, FileStep::Failed(Errno::STALE.raw_os_error()));
    assert!((received.len() as u64) < LENGTH);
}

#[test]
fn a_file_that_has_lost_its_name_is_the_same_file() {
    let scene = Scene::new("nameless", 10);
    fs::remove_file(&scene.path).unwrap();
    assert!(!has_changed(&scene.part).unwrap());
    assert_eq!(FileSend::default().step(scene.server.as_fd(), &scene.part), FileStep::Done);
}

#[test]
fn a_small_part_passes_through_memory_and_never_waits_for_the_peer() {
    let mut scene = Scene::new("small", COPIED_BYTES_MAX);
    let mut send = FileSend::default();
    let (step, _) = scene.step_until(&mut send, |step| {
        assert_ne!(step, FileStep::Draining);
        is_over(step)
    });
    assert_eq!(step, FileStep::Done);
}

#[test]
fn a_part_beyond_the_end_of_the_file_fails() {
    for (offset, length) in
        [(5, 10), (1 << 40, 1), (0, COPIED_BYTES_MAX * 4), (1 << 40, COPIED_BYTES_MAX * 4)]
    {
        let mut scene = Scene::new("beyond", 10);
        (scene.part.offset_bytes, scene.part.length_bytes) = (offset, length);
        let (step, received) = scene.step_until(&mut FileSend::default(), is_over);
        assert_eq!(step, FileStep::Failed(Errno::STALE.raw_os_error()));
        assert!((received.len() as u64) < length);
    }
}

#[test]
fn a_full_socket_is_waited_for_and_nothing_is_lost() {
    let mut scene = Scene::new("full", 32 * 1024 * 1024);
    let mut send = FileSend::default();
    while send.step(scene.server.as_fd(), &scene.part) != FileStep::WouldBlock {}
    assert!(send.sent_bytes < scene.part.length_bytes);
    let (step, received) = scene.step_until(&mut send, is_over);
    assert_eq!(step, FileStep::Done);
    assert!(received.iter().all(|byte| *byte == b'a'));
}

#[test]
fn a_cold_file_is_warmed_and_then_sent() {
    for length in [100, LENGTH] {
        let mut scene = Scene::new("cold", length);
        rustix::fs::fsync(&*scene.part.file).unwrap();
        rustix::fs::fadvise(&*scene.part.file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let mut send = FileSend::default();
        if send.step(scene.server.as_fd(), &scene.part) != FileStep::Cold {
            println!("this file system keeps files in memory");
            continue;
        }
        let waker = crate::Waker::new().unwrap();
        let home = Warmed::new(waker.clone());
        assert!(send.warm(&scene.part, &home, 5));
        let ready = rustix::event::PollFlags::IN;
        rustix::event::poll(&mut [rustix::event::PollFd::from_borrowed_fd(waker.as_fd(), ready)], None)
            .unwrap();
        let [Done { token: 5, read: None }] = &home.take()[..] else { panic!("one request is done") };
        send.note_warmed(None);
        let (step, _) = scene.step_until(&mut send, |step| {
            assert_ne!(step, FileStep::Cold, "so short a range is warmed at once");
            is_over(step)
        });
        assert_eq!(step, FileStep::Done);
    }
}

/// Steps with the warming threads, as a backend does, until it is over. How often they were asked.
fn step_with_threads(scene: &mut Scene, send: &mut FileSend) -> (FileStep, Vec<u8>, u32) {
    let waker = crate::Waker::new().unwrap();
    let home = Warmed::new(waker.clone());
    let (mut received, mut asked) = (Vec::new(), 0);
    loop {
        let (step, more) = scene.step_until(send, |step| step == FileStep::Cold || is_over(step));
        received.extend(more);
        if step != FileStep::Cold {
            return (step, received, asked);
        }
        assert!(send.warm(&scene.part, &home, 5));
        asked += 1;
        let ready = rustix::event::PollFlags::IN;
        rustix::event::poll(&mut [rustix::event::PollFd::from_borrowed_fd(waker.as_fd(), ready)], None)
            .unwrap();
        waker.drain();
        home.take().into_iter().for_each(|done| send.note_warmed(done.read));
    }
}

#[test]
fn where_nothing_tells_other_threads_read_and_look() {
    for length in [1, PIECE_BYTES + 1, LENGTH] {
        let mut scene = Scene::new("blind", length);
        let mut send = FileSend { is_blind: true, ..FileSend::default() };
        let (step, mut received, asked) = step_with_threads(&mut scene, &mut send);
        assert_eq!(step, FileStep::Done);
        assert!(u64::from(asked) >= length.div_ceil(PIECE_BYTES), "every byte was asked for");
        scene.server.shutdown(std::net::Shutdown::Write).unwrap();
        scene.client.set_nonblocking(false).unwrap();
        scene.client.read_to_end(&mut received).unwrap();
        assert!(received.len() as u64 == length && received.iter().all(|byte| *byte == b'a'));
    }
}

#[test]
fn a_file_that_changes_where_nothing_tells_is_never_whole() {
    let mut scene = Scene::new("blind-changed", LENGTH);
    scene.part.stamp.size_bytes += 1;
    let mut send = FileSend { is_blind: true, ..FileSend::default() };
    let (step, received, _) = step_with_threads(&mut scene, &mut send);
    assert_eq!((step, received.len()), (FileStep::Failed(Errno::STALE.raw_os_error()), 0));
}

#[test]
fn what_is_cold_again_after_it_was_warmed_is_read_by_other_threads() {
    let mut send = FileSend::default();
    assert_eq!(send.miss(Missing::Cold), FileStep::Cold);
    assert!(!send.is_blind, "it is warmed first");
    send.note_warmed(None);
    assert_eq!(send.miss(Missing::Cold), FileStep::Cold);
    assert!(send.is_blind);
    // Pages that wait in the socket hold the end back, whoever reads it.
    let mut scene = Scene::new("blind-late", LENGTH);
    let mut send = FileSend::default();
    assert_eq!(send.step(scene.server.as_fd(), &scene.part), FileStep::Progress);
    assert!(send.pages_queued);
    send.is_blind = true;
    let (step, _, _) = step_with_threads(&mut scene, &mut send);
    assert_eq!((step, send.pages_queued), (FileStep::Done, false));
}

#[test]
fn files_of_tmpfs_are_read_at_once() {
    let file = rustix::fs::memfd_create("in memory", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::io::write(&file, b"here").unwrap();
    let mut bytes = [0; 4];
    assert_eq!(read(file.as_fd(), &mut bytes, 0), Ok(Ok(4)));
    assert_eq!((&bytes, missing_ends(file.as_fd(), 0, 4)), (b"here", Ok(None)));
    let of_proc = File::open("/proc/self/status").unwrap();
    assert!(!lives_in_memory(of_proc.as_fd()));
}
