//! What upstreams lead to on real sockets: a server that echoes, and a port without one.

use std::net::{Shutdown, SocketAddr, TcpListener};

/// Sends back what comes on every connection, until the process ends.
pub(crate) fn echoing_upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut reading) = stream else { continue };
            std::thread::spawn(move || {
                let mut writing = reading.try_clone().expect("a descriptor");
                // Either side may leave early.
                let _ = std::io::copy(&mut reading, &mut writing);
                let _ = writing.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

/// Where nobody listens.
pub(crate) fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound")
}
