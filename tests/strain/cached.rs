//! What the cache of khttpd keeps: a file is answered from it once it has settled, and a change of any kind
//! is seen by the next request.

use std::fs::{self, File, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::server::{Name, PATIENCE, Server, connect, root};

/// The file that is asked for.
const NAME: &str = "kept/deep/file.txt";
/// Longer than a file must have been left alone.
const SETTLED: Duration = Duration::from_millis(150);

/// A change, and the status and the body that have to follow.
type Change = (&'static str, fn(&Path) -> std::io::Result<()>, u16, &'static [u8]);

const CHANGES: [Change; 9] = [
    ("written anew with as many bytes", |path| fs::write(path, b"other\n"), 200, b"other\n"),
    ("appended to", append, 200, b"other\nmore\n"),
    ("replaced by another one", replace, 200, b"replaced\n"),
    ("hidden by its mode", |path| set_mode(path, 0o600), 403, b""),
    ("shown again", |path| set_mode(path, 0o644), 200, b"replaced\n"),
    ("in a folder that is closed", |path| set_mode(up(path), 0o700), 403, b""),
    ("in a folder that is open again", |path| set_mode(up(path), 0o755), 200, b"replaced\n"),
    ("in a folder of another name", |path| fs::rename(up(path), up(path).with_extension("old")), 404, b""),
    ("behind a link", link, 200, b"replaced\n"),
];

fn up(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

fn append(path: &Path) -> std::io::Result<()> {
    File::options().append(true).open(path)?.write_all(b"more\n")
}

fn replace(path: &Path) -> std::io::Result<()> {
    let other = path.with_extension("other");
    fs::write(&other, b"replaced\n")?;
    fs::rename(other, path)
}

fn link(path: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink("deep.old", up(path))
}

/// Changes the file in every way, each time after it was answered from the cache. Gives how many answers came
/// from there.
pub(crate) fn changes_are_seen(server: &Server) -> Result<String, String> {
    if server.name != Name::Khttpd {
        return Ok("no cache".to_owned());
    }
    let path = root().join(NAME);
    let made = fs::create_dir_all(up(&path)).and_then(|()| fs::write(&path, b"first\n"));
    made.map_err(|error| format!("{}: {error}", path.display()))?;
    server.load("")?;
    let mut expected: (u16, &[u8]) = (200, b"first\n");
    for (words, change, status, body) in CHANGES {
        if expected.0 == 200 {
            until_it_is_kept(expected)?;
        }
        change(&path).map_err(|error| format!("{words}: {error}"))?;
        expected = (status, body);
        for _ in 0..2 {
            expect(expected).map_err(|error| format!("{words}: {error}"))?;
        }
    }
    let hits = hits()?;
    server.unload()?;
    let _ = fs::remove_dir_all(root().join("kept"));
    Ok(format!("{} changes seen, {hits} answers from the cache", CHANGES.len()))
}

/// Asks until an answer comes from the cache. Each one has to be right.
fn until_it_is_kept(expected: (u16, &[u8])) -> Result<(), String> {
    let (begin, before) = (Instant::now(), hits()?);
    while hits()? == before {
        if begin.elapsed() > PATIENCE {
            return Err("nothing is answered from the cache".to_owned());
        }
        expect(expected)?;
        std::thread::sleep(SETTLED);
    }
    Ok(())
}

/// Asks once.
fn expect((status, body): (u16, &[u8])) -> Result<(), String> {
    let mut stream = connect(PATIENCE).map_err(|error| format!("connect: {error}"))?;
    let request = format!("GET /{NAME} HTTP/1.1\r\nHost: a\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(|error| format!("request: {error}"))?;
    stream.shutdown(std::net::Shutdown::Write).map_err(|error| format!("request: {error}"))?;
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).map_err(|error| format!("answer: {error}"))?;
    let is_right = heard.starts_with(format!("HTTP/1.1 {status} ").as_bytes());
    if is_right && (status != 200 || heard.ends_with(&[b"\r\n\r\n", body].concat())) {
        return Ok(());
    }
    Err(format!(
        "not {status} {:?}, but {:?}",
        String::from_utf8_lossy(body),
        String::from_utf8_lossy(&heard)
    ))
}

/// How many answers came from the cache.
pub(crate) fn hits() -> Result<u64, String> {
    let text =
        fs::read_to_string("/sys/module/khttpd/parameters/counts").map_err(|e| format!("counts: {e}"))?;
    let value = text.lines().find_map(|line| line.strip_prefix("cache_hits ")?.parse().ok());
    value.ok_or_else(|| format!("counts: {text}"))
}
