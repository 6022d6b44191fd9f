//! The whole way of a line: a session, an account, a ring, the thread, a file.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use staunch_engine::{Address, Answer, Context, Outbox, Outgoing, Refused, Stats, StreamRef};
use staunch_protocol::Status;
use staunch_protocol::http1::{Event, Session};

use super::account::{Before, LogAccount};
use super::feeder::RING_BYTES;
use super::{
    AccessLog, Field, Format, LogCondition, LogCounts, LogPlan, LogSettings, Notice, SiteLog, Target,
};
use crate::content::testing::Folder;

const UNIX_MS: u64 = 0;
const ADDRESS: Address = Address { worker: 0, slot: 0, generation: 0, stream: StreamRef::ONLY };
const DATE: &[u8; 29] = b"Fri, 20 Nov 2026 10:00:00 GMT";
/// Longer than any disk takes, shorter than anybody waits for a test.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the log said of itself, and what says it.
fn notices() -> (Arc<Mutex<Vec<String>>>, Notice) {
    let said = Arc::<Mutex<Vec<String>>>::default();
    let place = Arc::clone(&said);
    (said, Arc::new(move |text| place.lock().unwrap().push(text.to_owned())))
}

fn settings(path: &Path, format: Format) -> LogSettings {
    LogSettings {
        target: Target::File(path.into()),
        format,
        size_bytes_max: None,
        keep: 0,
        condition: LogCondition::default(),
    }
}

fn few() -> Format {
    Format::Json(vec![Field::Status, Field::Bytes, Field::Target, Field::Worker])
}

/// Answers a request with ten bytes.
fn ask(account: &mut LogAccount, head: &str) {
    let (mut session, mut outgoing, stats) = (Session::new(0), Outgoing::default(), Stats::default());
    let mut input = head.as_bytes();
    let event = session.poll_event(&mut input, 0, DATE, outgoing.bytes());
    let Event::Request(request) = event else { panic!("{event:?}") };
    let outbox = Outbox::default();
    let context = Context::new(&stats, DATE, UNIX_MS, &outbox, ADDRESS);
    let answer = Answer::new(&mut session, &mut outgoing, &context);
    let wanted = account.wanted();
    let before = Before::of(wanted, &request, &answer);
    let answered = answer.bytes(Status::OK, b"Content-Length: 10\r\n", b"0123456789");
    if wanted != 0 {
        account.note(wanted, &request, &before, &answered);
    }
}

#[test]
fn what_was_answered_is_written() {
    let folder = Folder::new();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let log = AccessLog::new(notices().1);
    let mut account = LogAccount::new(Arc::clone(&log), 7);
    ask(&mut account, "GET /before HTTP/1.1\r\nHost: a\r\n\r\n");
    log.set(Some(settings(&first, few()))).unwrap();
    ask(&mut account, "GET /one HTTP/1.1\r\nHost: a\r\n\r\n");
    ask(&mut account, "HEAD /two HTTP/1.1\r\nHost: a\r\n\r\n");
    let status = Status::BAD_REQUEST;
    account.note_refused(
        &Refused {
            address: ADDRESS,
            owner: None,
            status,
            body_bytes: 30,
            unix_ms: 1,
            request: None,
            peer: None,
            identity: None,
        },
        b"",
    );
    log.set(Some(settings(&second, Format::Combined))).unwrap();
    // What is fed before the thread has heard of the change still goes the old way.
    assert!(log.finish(PATIENCE));
    let refused = "127.0.0.1".parse().ok();
    ask(&mut account, "GET /three HTTP/1.0\r\nUser-Agent: u\r\nReferer: r\r\n\r\n");
    account.note_refused(
        &Refused {
            address: ADDRESS,
            owner: None,
            status,
            body_bytes: 30,
            unix_ms: 1,
            request: None,
            peer: refused,
            identity: None,
        },
        b"",
    );
    assert!(log.finish(PATIENCE));
    log.set(LogPlan::default()).unwrap();
    ask(&mut account, "GET /after HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(log.finish(PATIENCE));
    assert_eq!(
        fs::read_to_string(&first).unwrap(),
        "{\"status\":200,\"bytes\":10,\"target\":\"/one\",\"worker\":7}\n\
         {\"status\":200,\"bytes\":0,\"target\":\"/two\",\"worker\":7}\n\
         {\"status\":400,\"bytes\":30,\"target\":null,\"worker\":7}\n"
    );
    assert_eq!(
        fs::read_to_string(&second).unwrap(),
        "- - - [01/Jan/1970:00:00:00 +0000] \"GET /three HTTP/1.0\" 200 10 \"r\" \"u\"\n\
         127.0.0.1 - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 30 \"-\" \"-\"\n"
    );
    assert_eq!(log.counts(), LogCounts { written: 5, dropped: 0, failed: 0 });
}

#[test]
fn each_site_has_a_place_and_a_condition() {
    let folder = Folder::new();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let form = || Format::Json(vec![Field::Target]);
    let site = |hosts: &[&str], log: Option<LogSettings>| SiteLog {
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        is_default: false,
        log,
    };
    let condition = LogCondition { skipped_paths: vec!["/quiet*".into()], ..LogCondition::default() };
    let quiet = LogSettings { condition, ..settings(&second, form()) };
    let sites = vec![
        site(&["a.example"], Some(settings(&first, form()))),
        site(&["*.b.example"], Some(quiet)),
        SiteLog { is_default: true, ..site(&[], None) },
        site(&["c.example"], Some(settings(&first, form()))),
    ];
    let log = AccessLog::new(notices().1);
    log.set(LogPlan { sites }).unwrap();
    let mut account = LogAccount::new(Arc::clone(&log), 7);
    for (host, path) in [
        ("a.example", "/one"),
        ("A.example:80", "/two"),
        ("x.b.example", "/three"),
        ("x.b.example", "/quiet/four"),
        ("b.example", "/five"),
        ("c.example", "/quiet"),
    ] {
        ask(&mut account, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    }
    assert!(log.finish(PATIENCE));
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!(read(&first), "{\"target\":\"/one\"}\n{\"target\":\"/two\"}\n{\"target\":\"/quiet\"}\n");
    assert_eq!(read(&second), "{\"target\":\"/three\"}\n");
    assert_eq!(log.counts(), LogCounts { written: 4, dropped: 0, failed: 0 });
    let sites = vec![site(&["a"], None), site(&["b"], None)];
    log.set(LogPlan { sites }).unwrap();
    assert!(!log.is_on());
}

#[test]
fn a_log_that_cannot_be_opened_changes_nothing() {
    let folder = Folder::new();
    let path = folder.path().join("log");
    let log = AccessLog::new(notices().1);
    assert!(log.set(Some(settings(&folder.path().join("absent/log"), few()))).is_err());
    log.set(Some(settings(&path, few()))).unwrap();
    assert!(log.set(Some(settings(folder.path(), few()))).is_err());
    ask(&mut LogAccount::new(Arc::clone(&log), 0), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(log.finish(PATIENCE));
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
}

#[test]
fn a_full_disk_is_said_once_and_got_over() {
    let folder = Folder::new();
    let (said, notice) = notices();
    let log = AccessLog::new(notice);
    log.set(Some(settings(Path::new("/dev/full"), few()))).unwrap();
    let mut account = LogAccount::new(Arc::clone(&log), 0);
    let refused = |unix_ms| Refused {
        address: ADDRESS,
        owner: None,
        status: Status::BAD_REQUEST,
        body_bytes: 0,
        unix_ms,
        request: None,
        peer: None,
        identity: None,
    };
    for unix_ms in [1000, 1500, 1999] {
        account.note_refused(&refused(unix_ms), b"");
        assert!(log.finish(PATIENCE));
    }
    assert_eq!(log.counts(), LogCounts { written: 0, dropped: 0, failed: 3 });
    log.set(Some(settings(&folder.path().join("log"), few()))).unwrap();
    assert!(log.finish(PATIENCE));
    account.note_refused(&refused(2000), b"");
    assert!(log.finish(PATIENCE));
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("/dev/full: No space left on device"), "{said:?}");
    assert!(said[1].ends_with("/log: written again; 3 lines were lost"), "{said:?}");
}

/// A pipe that is not read: the log's thread stands still, and nobody else does.
#[test]
fn nobody_waits_for_a_log_that_stands_still() {
    let folder = Folder::new();
    folder.fifo("pipe");
    let path = folder.path().join("pipe");
    let reader = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let (said, notice) = notices();
    let log = AccessLog::new(notice);
    log.set(Some(settings(&path, few()))).unwrap();
    let mut account = LogAccount::new(Arc::clone(&log), 0);
    let target = "x".repeat(4000);
    let head = format!("GET /{target} HTTP/1.1\r\nHost: a\r\n\r\n");
    let requests = 3 * RING_BYTES / head.len();
    for _ in 0..requests {
        ask(&mut account, &head);
    }
    assert!(!log.finish(Duration::from_millis(1)));
    let dropped = log.counts().dropped;
    assert!(dropped > 0 && dropped < requests as u64, "{dropped} of {requests}");
    // A reader sets the log free again. Holding both ends, a pipe never says that it is over.
    std::thread::spawn(move || std::io::copy(&mut &reader, &mut std::io::sink()));
    let refused = Refused {
        address: ADDRESS,
        owner: None,
        status: Status::BAD_REQUEST,
        body_bytes: 0,
        unix_ms: 1_000_000,
        request: None,
        peer: None,
        identity: None,
    };
    while !log.finish(PATIENCE) {}
    account.note_refused(&refused, b"");
    assert!(log.finish(PATIENCE));
    let LogCounts { written, failed, .. } = log.counts();
    assert_eq!((written + dropped, failed), (requests as u64 + 1, 0));
    let words = format!("the access log is written too slowly: {dropped} further lines were dropped");
    assert!(said.lock().unwrap().contains(&words), "{said:?}");
}
