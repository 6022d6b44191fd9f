//! A server of HTTP/2 with prior knowledge, to point conformance tests and load at: `http2_serve [PORT]`.
//!
//! It serves `/N` as N bytes, and gives back what is posted. It must never be taken for the real server: a
//! thread per connection, no deadlines, no TLS.

mod server;

use std::net::TcpListener;

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(8080);
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    println!("listening on http://{}/", listener.local_addr()?);
    server::serve(&listener)
}
