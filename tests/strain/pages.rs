//! Bodies that khttpd sends by reference from its cache: each is whole, and the old or the new one where the
//! file changes while it is sent.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::cached::hits;
use crate::server::{Name, PATIENCE, Server, connect, root};

/// Bytes of bodies: one page, some and a part of one, the largest that is kept.
const SIZES: [usize; 3] = [4096, 100_003, 256 * 1024];
/// Longer than a file must have been left alone.
const SETTLED: Duration = Duration::from_millis(150);
/// Answers that are asked for at once: more bytes than any socket keeps.
const PIPELINED: usize = 40;

fn file(size: usize) -> PathBuf {
    root().join(format!("pages-{size}.bin"))
}

/// Bytes in which no two pages are alike.
fn body(size: usize, seed: u32) -> Vec<u8> {
    (0..size as u32).map(|at| ((at + seed).wrapping_mul(2_654_435_761) >> 23) as u8).collect()
}

fn request(size: usize, ends: bool) -> Vec<u8> {
    let end = if ends { "Connection: close\r\n" } else { "" };
    format!("GET /pages-{size}.bin HTTP/1.1\r\nHost: a\r\n{end}\r\n").into_bytes()
}

/// What came of an answer's body.
struct Heard<'a> {
    body: &'a [u8],
    /// As long as its head says.
    is_whole: bool,
}

/// The bodies of all answers that come; the last one may be cut short.
fn bodies(heard: &[u8]) -> Result<Vec<Heard<'_>>, String> {
    let mut bodies = Vec::new();
    let mut rest = heard;
    while !rest.is_empty() {
        let end = rest.windows(4).position(|window| window == b"\r\n\r\n").ok_or("half a head")?;
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
        let length: usize = length.filter(|_| head.starts_with("HTTP/1.1 200 ")).ok_or(head)?;
        let behind = &rest[end + 4..];
        let body = &behind[..length.min(behind.len())];
        bodies.push(Heard { body, is_whole: body.len() == length });
        rest = &behind[body.len()..];
    }
    Ok(bodies)
}

fn hear(requests: &[u8], meanwhile: impl FnOnce() -> std::io::Result<()>) -> Result<Vec<u8>, String> {
    let mut stream = connect(PATIENCE).map_err(|error| format!("connect: {error}"))?;
    stream.write_all(requests).map_err(|error| format!("request: {error}"))?;
    meanwhile().map_err(|error| format!("file: {error}"))?;
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).map_err(|error| format!("answer: {error}"))?;
    Ok(heard)
}

/// Asks until the cache has answered.
fn until_it_is_kept(size: usize, right: &[u8]) -> Result<(), String> {
    let (begin, before) = (Instant::now(), hits()?);
    while hits()? == before {
        if begin.elapsed() > PATIENCE {
            return Err(format!("{size} bytes are never kept"));
        }
        let heard = hear(&request(size, true), || Ok(()))?;
        if !matches!(bodies(&heard)?[..], [Heard { body, is_whole: true }] if body == right) {
            return Err(format!("{size} bytes: not the file"));
        }
        std::thread::sleep(SETTLED);
    }
    Ok(())
}

/// Gives how many answers were compared.
pub(crate) fn bodies_are_whole(server: &Server) -> Result<String, String> {
    if server.name != Name::Khttpd {
        return Ok("no files".to_owned());
    }
    server.load("")?;
    let mut compared = 0;
    for size in SIZES {
        let (old, new) = (body(size, 1), body(size - 1, 2));
        fs::write(file(size), &old).map_err(|error| error.to_string())?;
        until_it_is_kept(size, &old)?;
        let asked = [request(size, false).repeat(PIPELINED - 1), request(size, true)].concat();
        let other = root().with_extension("new");
        fs::write(&other, &new).map_err(|error| error.to_string())?;
        let heard = hear(&asked, || fs::rename(&other, file(size)))?;
        for Heard { body, is_whole } in bodies(&heard)? {
            // A file that is opened at the moment when another one takes its place is not sent to its end.
            let is_of = |file: &[u8]| if is_whole { body == file } else { file.starts_with(body) };
            if !is_of(&old) && !is_of(&new) {
                return Err(format!("{size} bytes: {} bytes that are neither file", body.len()));
            }
            compared += usize::from(is_whole);
        }
    }
    server.unload()?;
    Ok(format!("{compared} answers whole"))
}
