//! The path of a request from its bytes to its answer's bytes, and nothing else: for counting instructions.
//!
//! Requests of one session are answered by a file of 5 000 bytes (pipelined: 100 bytes), as the engine would
//! have it, without any input or output; cases that begin with `logged` write an access log too, and its
//! thread is counted with the rest. It owns a folder of its own under the system's temporary one and removes
//! it. It must never ask the time, so that two runs do the same. Order: prepare, wait until all is
//! held, answer.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use staunch_engine::{Address, Answer, Context, Handler, Mailbox, Outbox, Outgoing, Post, Stats, StreamRef};
use staunch_protocol::Timeouts;
use staunch_protocol::http1::{Event, RequestMemory, Session};
use staunch_server::log::{AccessLog, Format, LogCondition, LogSettings, Target};
use staunch_server::{Front, FrontParts, SiteConfig, SitesShared};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The moment of [`DATE`] in milliseconds since 1970.
const UNIX_MS: u64 = 1_795_168_800_000;
const DATE: &[u8; 29] = b"Fri, 20 Nov 2026 10:00:00 GMT";
/// Any moment will do: no deadline passes.
const NOW_MS: u64 = 1000;
/// As the engine keeps it between two responses.
const KEPT_BYTES: usize = 16 * 1024;
const PIPELINED: usize = 16;
/// After so many requests the log is waited for, so that its ring never overflows.
const LOGGED_AT_ONCE: usize = 1000;
/// A look costs instructions, so there are few; the log's thread comes back after a tenth of a second.
const LOOK: Duration = Duration::from_millis(20);
/// So many looks are more than any machine needs.
const LOOKS_COUNT: usize = 3000;
const PLAIN: &str = "GET /5000.txt HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
const SMALL: &str = "GET /100.txt HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
/// The request of a browser of this name, for what is put in after the file's name.
fn browser(query: &str, name: &str) -> String {
    format!(
        "GET /5000.txt{query} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) {name}\r\n\
         Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
         Accept-Language: en-GB,en;q=0.8,de;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
         Referer: http://localhost/start/index.html\r\nSec-Fetch-Dest: document\r\n\
         Sec-Fetch-Mode: navigate\r\nSec-Fetch-Site: same-origin\r\nUpgrade-Insecure-Requests: 1\r\n\
         Cookie: session=0f4a1b2c3d4e5f60718293a4b5c6d7e8; theme=dark\r\n\r\n"
    )
}
const CHROME: &str = "Chrome/130.0";
/// Browsers of a crowd, which all ask for the same.
const BROWSERS: [&str; 6] = [
    CHROME,
    "Chrome/130.0 Edg/130.0",
    "Version/18.1",
    "Firefox/132",
    "Chrome/130.0 OPR/115.0.0.0",
    "Chrome/130.0.0.0",
];
/// Requests of which none is like another: many times what is remembered.
const UNLIKE: usize = 4096;

/// Serves so many requests of a case.
pub(crate) fn run(case: &str, requests: usize) -> Result<()> {
    let inputs = inputs(case);
    if inputs.is_empty() {
        return Err(format!("there is no case {case:?}").into());
    }
    let folder = std::env::temp_dir().join(format!("counted-{}", std::process::id()));
    let answered = answer(&folder, &inputs, requests, case.starts_with("logged"));
    // The folder is of no use any more; the next run has another one.
    let _ = fs::remove_dir_all(&folder);
    match answered? {
        answered if answered == requests => Ok(()),
        answered => Err(format!("{answered} of {requests} requests were answered").into()),
    }
}

/// Gives how many requests were answered in full, and logged if they are to be.
fn answer(folder: &Path, inputs: &[String], requests: usize, is_logged: bool) -> Result<usize> {
    let log = AccessLog::new(Arc::new(|text: &str| eprintln!("{text}")));
    let shared = prepare(folder)?;
    if is_logged {
        log.set(Some(settings(folder)))?;
    }
    let answered = answer_all(&shared, inputs, requests, &log, is_logged);
    if is_logged && log.counts().written != requests as u64 {
        return Err(format!("{:?}", log.counts()).into());
    }
    Ok(answered)
}

/// What is delivered in turn; nothing if the case has no such name.
fn inputs(case: &str) -> Vec<String> {
    match case {
        "plain" | "logged" => vec![PLAIN.to_owned()],
        "browser" | "logged-browser" => vec![browser("", CHROME)],
        "browsers" => BROWSERS.map(|name| browser("", name)).to_vec(),
        "unlike" => (0..UNLIKE).map(|number| browser(&format!("?{number}"), CHROME)).collect(),
        "pipelined" => vec![SMALL.repeat(PIPELINED)],
        _ => Vec::new(),
    }
}

/// Where the log goes: a name that the site has no answer for, so that it does not follow its changes.
fn settings(folder: &Path) -> LogSettings {
    let target = Target::File(folder.join(".log"));
    LogSettings {
        target,
        format: Format::Combined,
        size_bytes_max: None,
        keep: 0,
        condition: LogCondition::default(),
    }
}

/// Waits, without spinning, until so many lines were written.
fn await_lines(log: &AccessLog, count: usize) {
    for _ in 0..LOOKS_COUNT {
        if log.counts().written >= count as u64 {
            return;
        }
        sleep(LOOK);
    }
}

/// A site of two files, ready.
fn prepare(folder: &Path) -> Result<Arc<SitesShared>> {
    fs::create_dir_all(folder)?;
    for size_bytes in [100, 5000] {
        fs::write(folder.join(format!("{size_bytes}.txt")), vec![b'x'; size_bytes])?;
    }
    let config = SiteConfig { root: folder.to_path_buf(), encodings: Vec::new(), ..SiteConfig::default() };
    let shared = SitesShared::open(vec![config])?;
    shared.start(&Post::new(vec![Arc::new(Mailbox::new(Box::new(|| {})))]))?;
    while !shared.progress().done {
        sleep(Duration::from_millis(10));
    }
    Ok(shared)
}

/// Gives one delivery after another to a session. Gives how many requests were answered in full. Callgrind
/// knows the function by its name, and counts no other where there is no log.
#[inline(never)]
fn answer_all(
    shared: &Arc<SitesShared>,
    inputs: &[String],
    requests: usize,
    log: &Arc<AccessLog>,
    is_logged: bool,
) -> usize {
    let parts = FrontParts { log: Arc::clone(log), ..FrontParts::of_sites(shared) };
    let mut front = Front::new(&parts, 0);
    let (mut session, mut heads) = (Session::new(NOW_MS), RequestMemory::new());
    let (mut outgoing, stats, timeouts) = (Outgoing::default(), Stats::default(), Timeouts::default());
    let outbox = Outbox::default();
    let mut answered = 0;
    for input in inputs.iter().cycle() {
        let before = answered;
        answered +=
            deliver(&mut session, &mut heads, &mut front, input.as_bytes(), &mut outgoing, &stats, &outbox);
        std::hint::black_box((session.poll_timeout(&timeouts), outgoing.contents()));
        let long_enough = outgoing.length_bytes() > 100 * (answered - before) as u64;
        outgoing.clear(KEPT_BYTES);
        if answered == before || !long_enough {
            break;
        }
        if is_logged && (answered / LOGGED_AT_ONCE > before / LOGGED_AT_ONCE || answered == requests) {
            await_lines(log, answered);
        }
        if answered >= requests {
            break;
        }
    }
    answered
}

/// Gives a delivery of bytes to the session, as the engine does.
fn deliver(
    session: &mut Session,
    heads: &mut RequestMemory,
    front: &mut Front,
    bytes: &[u8],
    outgoing: &mut Outgoing,
    stats: &Stats,
    outbox: &Outbox,
) -> usize {
    let context = Context::new(
        stats,
        DATE,
        UNIX_MS,
        outbox,
        Address { worker: 0, slot: 0, generation: 0, stream: StreamRef::ONLY },
    );
    let mut answered = 0;
    let joined = session.take_kept(bytes);
    let mut input = &joined[..];
    while let Event::Request(ref request) =
        session.poll_event_with(heads, &mut input, NOW_MS, DATE, outgoing.bytes())
    {
        let answer = Answer::new(session, outgoing, &context);
        if front.handle(request, answer).is_later() {
            return answered;
        }
        answered += 1;
    }
    session.keep(input);
    answered
}
