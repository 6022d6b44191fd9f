//! Every call for memory that the module makes fails once: at load and while it serves.
//!
//! The module `scarce` makes the call fail whose number it is told. The number goes up until there is no such
//! call any more. A load has to fail and leave nothing behind; a peer has to hear the right answer, its
//! beginning, nothing, or a whole 503; and whoever comes afterwards is served.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::process::Command;
use std::time::Duration;

use crate::server::{ECHOED, Name, PATIENCE, Server, connect, root, run};

/// More calls than any module makes for what is asked here: one that goes beyond does not end.
const CALLS_MAX: usize = 1000;
/// Longer than a file must have been left alone to be kept by the cache.
const SETTLED: Duration = Duration::from_millis(200);
/// Within this time a connection is accepted, and what comes later is answered in a softirq if that can be.
const ACCEPTED: Duration = Duration::from_millis(20);
/// Bytes of a text that is compressed and stands in pages, and of a file that is sent in several pieces.
const TEXT_BYTES: usize = 5000;
const PIECES_BYTES: usize = 40_000;
/// Deadlines that none of this waits for: a connection that nobody serves any more is not closed by one.
const NEVER: [(Name, &str); 2] =
    [(Name::Kecho, "idle_s=86400"), (Name::Khttpd, "head_ms=3600000 idle_ms=3600000 write_ms=3600000")];

/// The module that makes calls fail; unloaded when this is dropped.
#[derive(Debug)]
struct Scarce;

impl Scarce {
    /// Loads it for a module that is not loaded yet.
    fn of(module: &str) -> Result<Self, String> {
        run(Command::new("insmod").args(["/modules/scarce.ko", &format!("target={module}")]))?;
        Ok(Self)
    }

    /// The call with this number from now on fails, or the next one of a function; 0: none.
    fn fail(&self, which: &str) -> Result<(), String> {
        let path = "/sys/module/scarce/parameters/fail";
        fs::write(path, which).map_err(|error| format!("{path}: {error}"))
    }

    /// The function whose call failed.
    fn failed(&self) -> Result<Option<String>, String> {
        let name = count("failed ")?;
        Ok((name != "none").then_some(name))
    }

    /// Every function that was ever called.
    fn called(&self) -> Result<Vec<String>, String> {
        Ok(count("called ")?.split(' ').map(str::to_owned).collect())
    }
}

/// What stands behind a word in the module's counts.
fn count(word: &str) -> Result<String, String> {
    let path = "/sys/module/scarce/parameters/counts";
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let words = text.lines().find_map(|line| line.strip_prefix(word));
    words.map(str::to_owned).ok_or_else(|| format!("{path}: {text}"))
}

impl Drop for Scarce {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("rmmod").arg("scarce")) {
            println!("{error}");
        }
    }
}

/// Fails every call in turn. Gives how many those were, and of which functions.
pub(crate) fn every_call_fails(server: &Server) -> Result<String, String> {
    let scarce = Scarce::of(server.module())?;
    let mut functions = BTreeSet::new();
    let loading = while_loading(server, &scarce, &mut functions)?;
    let serving = while_serving(server, &scarce, &mut functions)?;
    let functions = Vec::from_iter(functions).join(" ");
    Ok(format!("{loading} at load, {serving} while serving: {functions}"))
}

fn parameters(server: &Server) -> &'static str {
    NEVER.iter().find(|(name, _)| *name == server.name).map_or("", |(_, words)| words)
}

fn while_loading(
    server: &Server,
    scarce: &Scarce,
    functions: &mut BTreeSet<String>,
) -> Result<usize, String> {
    for number in 1..CALLS_MAX {
        scarce.fail(&number.to_string())?;
        let loaded = server.load(parameters(server));
        let failed = scarce.failed()?;
        match (loaded, &failed) {
            (Err(error), Some(_)) if error.contains("Cannot allocate memory") => {}
            (Err(error), failed) => return Err(format!("load, call {number} ({failed:?}): {error}")),
            // The module has begun to accept, and that was the call.
            (Ok(()), _) => {
                scarce.fail("0")?;
                server.ask().map_err(|error| format!("after call {number} ({failed:?}): {error}"))?;
                server.unload()?;
            }
        }
        let Some(failed) = failed else { return Ok(number - 1) };
        functions.insert(failed);
    }
    Err(format!("a load makes more than {CALLS_MAX} calls"))
}

fn while_serving(
    server: &Server,
    scarce: &Scarce,
    functions: &mut BTreeSet<String>,
) -> Result<usize, String> {
    scarce.fail("0")?;
    server.load(parameters(server))?;
    let mut number = 1;
    while let Some(failed) = one_call_fails(server, scarce, number, &number.to_string())? {
        functions.insert(failed);
        number += 1;
    }
    let by_number = number - 1;
    // Calls come in another order now and then: whatever was missed by its number fails by its name.
    for name in scarce.called()? {
        if !functions.contains(&name) {
            number += 1;
            functions.extend(one_call_fails(server, scarce, number, &name)?);
        }
    }
    server.unload()?;
    Ok(by_number)
}

/// Asks while a call fails, and again while none does. Gives the function whose call it was.
fn one_call_fails(
    server: &Server,
    scarce: &Scarce,
    turn: usize,
    which: &str,
) -> Result<Option<String>, String> {
    let asked = asked(server, turn)?;
    scarce.fail(which)?;
    let heard = asked.iter().map(|(request, _)| hear(request, ACCEPTED)).collect::<Result<Vec<_>, _>>();
    let failed = scarce.failed()?;
    scarce.fail("0")?;
    let told = |error: String| format!("call {which} ({failed:?}): {error}");
    for ((request, beginning), heard) in asked.iter().zip(heard.map_err(told)?) {
        let right = hear(request, Duration::ZERO).map_err(|error| told(format!("afterwards: {error}")))?;
        judge(&heard, &right, beginning)
            .map_err(|error| told(format!("{:?}: {error}", String::from_utf8_lossy(request))))?;
    }
    Ok(failed)
}

/// A request, and the beginning of the right answer.
type Asked = (Vec<u8>, &'static [u8]);

/// The requests, each on a connection of its own; among them for a file and for a folder that nobody asked
/// for yet.
fn asked(server: &Server, number: usize) -> Result<Vec<Asked>, String> {
    if server.name == Name::Kecho {
        return Ok(vec![(ECHOED.to_vec(), ECHOED)]);
    }
    let name = |number: usize| format!("scarce/{number}.txt");
    let folder = |number: usize| format!("scarce/listed/{number}/");
    if number >= CALLS_MAX {
        return Err(format!("more than {CALLS_MAX} calls are made"));
    }
    if number == 1 {
        let made = || {
            fs::create_dir_all(root().join("scarce/listed"))?;
            fs::write(root().join("scarce/pieces.bin"), [b'p'; PIECES_BYTES])?;
            (1..CALLS_MAX).try_for_each(|number| {
                fs::create_dir_all(root().join(folder(number)).join("folder"))?;
                fs::write(root().join(folder(number)).join("file.txt"), "listed")?;
                fs::write(root().join(name(number)), &number.to_string().repeat(TEXT_BYTES)[..TEXT_BYTES])
            })
        };
        made().map_err(|error: std::io::Error| format!("{}: {error}", root().display()))?;
        std::thread::sleep(SETTLED);
    }
    let (small, listed) = (name(number), folder(number));
    let asked: [(&str, &'static [u8]); 7] = [
        (&small, b"HTTP/1.1 200 "),
        // The second time the cache has it.
        (&small, b"HTTP/1.1 200 "),
        ("scarce/pieces.bin", b"HTTP/1.1 200 "),
        (&listed, b"HTTP/1.1 200 "),
        (&listed, b"HTTP/1.1 200 "),
        ("scarce/listed", b"HTTP/1.1 301 "),
        ("scarce/nothing", b"HTTP/1.1 404 "),
    ];
    let request = |path: &str| format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
    Ok(asked.map(|(path, beginning)| (request(path), beginning)).into())
}

/// Sends a request and its end after a while, and reads all that comes.
fn hear(request: &[u8], rest: Duration) -> Result<Vec<u8>, String> {
    let mut stream = connect(PATIENCE).map_err(|error| format!("connect: {error}"))?;
    std::thread::sleep(rest);
    // The connection may be closed already.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut heard = Vec::new();
    match stream.read_to_end(&mut heard) {
        Ok(_) => Ok(heard),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(heard),
        Err(error) => Err(format!("no end comes: {error}")),
    }
}

/// Whether this may be heard where the other is the right answer, which has to begin so.
fn judge(heard: &[u8], right: &[u8], beginning: &[u8]) -> Result<(), String> {
    let (heard, right) = (without_dates(heard), without_dates(right));
    if !right.starts_with(beginning) {
        return Err(format!("afterwards comes {:?}", String::from_utf8_lossy(&right)));
    }
    // A page that could not be kept is sent in chunks, which has another head.
    let is_page = || Some(is_chunked(&heard) && page(&right)?.starts_with(&page(&heard)?));
    if right.starts_with(&heard) || is_whole_503(&heard) || is_page() == Some(true) {
        return Ok(());
    }
    Err(format!("not {:?}, but {:?}", String::from_utf8_lossy(&right), String::from_utf8_lossy(&heard)))
}

/// Where a word ends.
fn after(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window == word).map(|at| at + word.len())
}

fn is_chunked(answer: &[u8]) -> bool {
    after(answer, b"\r\nTransfer-Encoding: chunked\r\n").is_some()
}

/// The part that has come of the body of a 200, without the frames of chunks.
fn page(answer: &[u8]) -> Option<Vec<u8>> {
    const LINE: &[u8] = b"\r\n";
    let (head, mut rest) = answer.split_at(after(answer, b"\r\n\r\n")?);
    if !head.starts_with(b"HTTP/1.1 200 ") {
        return None;
    }
    if !is_chunked(head) {
        return Some(rest.to_vec());
    }
    let mut page = Vec::new();
    while let Some(begin) = after(rest, LINE) {
        let size = std::str::from_utf8(&rest[..begin - LINE.len()]).ok()?;
        let end = begin + usize::from_str_radix(size, 16).ok()?;
        page.extend_from_slice(&rest[begin..end.min(rest.len())]);
        rest = rest.get(end + LINE.len()..).unwrap_or_default();
    }
    Some(page)
}

fn without_dates(bytes: &[u8]) -> Vec<u8> {
    const FIELD: &[u8] = b"\r\nDate: ";
    const VALUE_BYTES: usize = 29;
    let mut bytes = bytes.to_vec();
    if let Some(at) = bytes.windows(FIELD.len()).position(|window| window == FIELD) {
        let start = at + FIELD.len();
        let end = bytes.len().min(start + VALUE_BYTES);
        bytes[start..end].fill(b'-');
    }
    bytes
}

fn is_whole_503(heard: &[u8]) -> bool {
    let text = String::from_utf8_lossy(heard);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    head.starts_with("HTTP/1.1 503 ") && length == Some(body.len())
}

#[cfg(test)]
mod tests {
    use super::{is_whole_503, judge};

    #[test]
    fn a_clean_answer_is_told_from_others() {
        let date =
            |day: &str| format!("HTTP/1.1 200 OK\r\nDate: Mon, {day} Jan 2024 00:00:00 GMT\r\n\r\nbody");
        let judged = |heard: &str| judge(heard.as_bytes(), date("01").as_bytes(), b"HTTP/1.1 200 ").is_ok();
        assert!(judge(b"", date("01").as_bytes(), b"HTTP/1.1 404 ").is_err());
        assert!(judged("") && judged(&date("02")) && judged("HTTP/1.1 200 OK\r\nDate: Mon, 0"));
        assert!(!judged(&date("02").replace("body", "bodies")) && !judged("HTTP/1.1 404 Not Found\r\n"));
        assert!(!judged(&date("02").replace("200 OK", "500 Internal Server Error")));
        let refused = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy";
        assert!(judged(refused) && is_whole_503(refused.as_bytes()));
        assert!(!judged(&refused[..refused.len() - 1]));
        let chunked = |chunks: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        for whole in ["4\r\nbody\r\n0\r\n\r\n", "2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n", "4\r\nbod"] {
            assert!(judged(&chunked(whole)), "{whole:?}");
        }
        assert!(!judged(&chunked("5\r\nother\r\n0\r\n\r\n")));
    }
}
