//! Peers that take little at a time, but all the time: what counts is what they acknowledge, not when the
//! kernel has room for more.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType};
use staunch_tests::conversation::{Change, Content};
use staunch_tests::process::Server;
use staunch_tests::tree::{Tree, bytes_of};

use crate::client::ENGINES;

const LENGTH_BYTES: u64 = 3_000_000;
/// Deadline of the servers here. 128 KiB, for which the kernel waits before it takes more, take those with
/// the small window twice as long.
const SEND_TIMEOUT: &str = "5s";
/// How long a peer takes little at a time: longer than the deadline. It reads a share of its window at a
/// time, for its kernel opens the window again when about half of it is free.
const SLOW: Duration = Duration::from_secs(12);
const PIECES_IN_WINDOW: usize = 4;
const PAUSE: Duration = Duration::from_millis(80);
const SMALL_WINDOW: usize = 4 * 1024;
/// So long a test waits for what should happen much sooner.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection with a small window.
fn narrow(address: SocketAddr, window: usize) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    set_socket_recv_buffer_size(&socket, window).expect("a small window");
    rustix::net::connect(&socket, &address).expect("a connection");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("an open socket");
    stream
}

/// Reads a little at a time for longer than any deadline, and then all the rest.
fn read_slowly(stream: &mut TcpStream, window: usize) -> Vec<u8> {
    let mut received = Vec::new();
    let mut piece = vec![0; window / PIECES_IN_WINDOW];
    let began = Instant::now();
    while began.elapsed() < SLOW {
        let Ok(count @ 1..) = stream.read(&mut piece) else { return received };
        received.extend_from_slice(&piece[..count]);
        std::thread::sleep(PAUSE);
    }
    // That it ends by a reset shows in what came.
    let _ = stream.read_to_end(&mut received);
    received
}

fn http2_request() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE and the connection's window: more than the file.
    bytes.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x00, 0x40, 0, 0]);
    bytes.extend([0, 0, 4, 8, 0, 0, 0, 0, 0, 0x00, 0x40, 0, 0]);
    let block = [&[0x82, 0x86, 0x04, 8][..], b"/big.bin", &[0x01, 1], b"a"].concat();
    bytes.extend([0, 0, block.len() as u8, 1, 5, 0, 0, 0, 1]);
    bytes.extend(block);
    bytes
}

/// What an answer over HTTP/2 brought: the content of DATA frames, and whether their stream has ended.
fn data_of(mut frames: &[u8]) -> (Vec<u8>, bool) {
    let (mut content, mut has_ended) = (Vec::new(), false);
    while let [a, b, c, kind, flags, _, _, _, _, rest @ ..] = frames {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let Some((payload, behind)) = rest.split_at_checked(length) else { break };
        if *kind == 0 {
            content.extend_from_slice(payload);
            has_ended |= flags & 1 != 0;
        }
        frames = behind;
    }
    (content, has_ended)
}

#[test]
fn who_takes_a_little_all_the_time_gets_everything() {
    let file = Content::Pattern(LENGTH_BYTES);
    let whole = bytes_of(&file);
    let change = |path: &str, content| Change::File { path: path.to_string(), content };
    let small = Content::Bytes(vec![b'x'; 1_400]);
    let tree = Tree::with(&[change("big.bin", file), change("small.txt", small)]).expect("a tree");
    let mut peers = Vec::new();
    let mut servers = Vec::new();
    for io in ENGINES {
        let arguments = ["--io", io, "--send-timeout", SEND_TIMEOUT, "--keep-alive", "2s"];
        let server = Server::start(tree.root(), &arguments).unwrap_or_else(|said| panic!("{said}"));
        let address = server.address();
        servers.push(server);
        for window in [SMALL_WINDOW, 64 * 1024] {
            let whole = whole.clone();
            peers.push(std::thread::spawn(move || {
                let mut stream = narrow(address, window);
                stream
                    .write_all(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    .expect("sent");
                let received = read_slowly(&mut stream, window);
                assert!(received.ends_with(&whole), "{io}, window {window}: {} bytes", received.len());
            }));
        }
        peers.push(std::thread::spawn(move || {
            let mut stream = narrow(address, SMALL_WINDOW);
            let request = b"GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n";
            stream.write_all(&request.repeat(400)).expect("sent");
            let received = read_slowly(&mut stream, SMALL_WINDOW);
            let answers = received.windows(12).filter(|text| text == b"HTTP/1.1 200").count();
            let is_whole = answers == 400 && received.ends_with(&[b'x'; 1_400]);
            assert!(is_whole, "{io}, pipelined: {answers} answers, {} bytes", received.len());
        }));
        let whole = whole.clone();
        peers.push(std::thread::spawn(move || {
            let mut stream = narrow(address, SMALL_WINDOW);
            stream.write_all(&http2_request()).expect("sent");
            let (content, has_ended) = data_of(&read_slowly(&mut stream, SMALL_WINDOW));
            assert!(content == whole && has_ended, "{io}, HTTP/2: {} bytes", content.len());
        }));
    }
    // All of them first: one that fails must not cut the others short.
    let ends: Vec<_> = peers.into_iter().map(|peer| peer.join()).collect();
    ends.into_iter().for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
}
