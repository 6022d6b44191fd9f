//! Bytes that cross with the announced end of a connection (RFC 9112, section 9.6).
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use staunch_tests::tree::Tree;

use crate::outside::{ENGINES, server_of};

const KEPT: &[u8] = b"HEAD /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
const LAST: &[u8] = b"HEAD /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[test]
fn a_request_that_crosses_with_the_end_resets_nothing() {
    let tree = Tree::with(&[]).expect("a tree");
    for io in ENGINES {
        let server = server_of(&tree, &["--io", io]);
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("an option");
        stream.write_all(KEPT).expect("the first request is taken");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("the first answer");
            head.push(byte[0]);
        }
        stream.write_all(LAST).expect("the last request is taken");
        stream.read_to_end(&mut Vec::new()).expect("the last answer, and the server's end");
        stream.write_all(KEPT).expect("a request too many");
        match stream.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == ErrorKind::NotConnected => panic!("{io}: reset"),
            done => done.expect("our end"),
        }
        let mut rest = Vec::new();
        assert_eq!(stream.read_to_end(&mut rest).map_err(|error| error.kind()), Ok(0), "{io}");
    }
}
