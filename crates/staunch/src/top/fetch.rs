//! Asking a server's admin address for its figures.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use staunch_server::metrics::Snapshot;

/// How long a server may take to answer. It needs a millisecond.
const PATIENCE: Duration = Duration::from_secs(5);
/// Figures of a thousand workers take half of it.
const ANSWER_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The figures.
///
/// # Errors
/// In a sentence: nobody answers, or not as expected.
pub(crate) fn snapshot(admin: &str) -> Result<Snapshot, String> {
    let text = text(admin)?;
    serde_json::from_str(&text)
        .map_err(|error| format!("{admin}: these are no figures of this version of staunch: {error}"))
}

/// The figures as text.
pub(super) fn text(admin: &str) -> Result<String, String> {
    page(admin, "/status.json")
}

/// A page of the admin address.
///
/// # Errors
/// In a sentence: nobody answers, or not as expected.
pub(crate) fn page(admin: &str, path: &str) -> Result<String, String> {
    let answer = ask(admin, path).map_err(|error| {
        let advice = "is a server running, with `admin` set to this address?";
        format!("{admin} does not answer: {error}; {advice}")
    })?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
        // In words, where our own says so: a site has a page for people.
        Some((head, body)) if head.starts_with("HTTP/1.1 404 ") && !body.starts_with('<') => {
            Err(format!("{admin}: {}", body.trim_end()))
        }
        _ => Err(format!("{admin} is no admin address of staunch")),
    }
}

fn ask(admin: &str, path: &str) -> std::io::Result<String> {
    if admin.starts_with('/') {
        let stream = UnixStream::connect(admin)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        return converse(stream, "localhost", path);
    }
    let nowhere = || std::io::Error::other("no address is known for this name");
    let address = admin.to_socket_addrs()?.next().ok_or_else(nowhere)?;
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // The address, for the server need not know the name by which it was found.
    converse(stream, &address.to_string(), path)
}

fn converse(mut stream: impl Read + Write, host: &str, path: &str) -> std::io::Result<String> {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}
