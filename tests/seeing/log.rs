//! Lines of the access log are what was asked, whatever was asked.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;
use staunch_tests::process::{finish, serve};
use staunch_tests::tree::Tree;

use crate::peer::{await_lines, body, get, logs, say, start};

/// Everything behind the date.
fn behind_date(line: &str) -> &str {
    line.split_once("] ").unwrap_or_else(|| panic!("no date in {line}")).1
}

#[test]
fn combined_lines_are_what_was_asked() {
    for io in ["epoll", "uring"] {
        let seen = start(&["--access-log", "{}/log", "--io", io]);
        let site = seen.server.address();
        get(site, "/ten?a=b", "Referer: http://r.example/\r\nUser-Agent: one (two; three)\r\n");
        say(site, b"HEAD /ten HTTP/1.0\r\n\r\n");
        get(site, "/absent", "Authorization: Basic YW5uYTpzZWNyZXQ=\r\n");
        get(site, "/ten", "Range: bytes=2-4\r\nUser-Agent: a\"b\\c\x09d\u{fc}\r\n");
        say(site, b"\x16\x03\x01 is no request\r\n\r\n");
        let lines = await_lines(&logs(&seen.tree).join("log"), 5);
        let absent = lines[2].rsplit(' ').nth(2).expect("a length");
        let expected = [
            r#""GET /ten?a=b HTTP/1.1" 200 10 "http://r.example/" "one (two; three)""#,
            r#""HEAD /ten HTTP/1.0" 200 0 "-" "-""#,
            &format!(r#""GET /absent HTTP/1.1" 404 {absent} "-" "-""#),
            r#""GET /ten HTTP/1.1" 206 3 "-" "a\x22b\x5Cc\x09d\xC3\xBC""#,
            &format!(r#""-" 400 {} "-" "-""#, lines[4].rsplit(' ').nth(2).expect("a length")),
        ];
        for (line, expected) in lines.iter().zip(expected) {
            assert_eq!(behind_date(line), expected, "{io}");
            assert!(line.starts_with("127.0.0.1 - "), "{io}: {line}");
        }
        assert!(absent.parse::<u64>().expect("a length") > 100);
        assert!(lines.iter().all(|line| line.contains(" - - [")), "{lines:?}");
        let mode = std::fs::metadata(logs(&seen.tree).join("log")).expect("a log").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
}

/// An answer to HEAD has no body, whoever gives it: here one that comes too soon.
#[test]
fn no_body_is_counted_where_none_was_sent() {
    let seen = start(&["--access-log", "{}/log", "--client-rate", "1/h"]);
    let site = seen.server.address();
    for _ in 0..2 {
        say(site, b"HEAD /ten HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    }
    let lines = await_lines(&logs(&seen.tree).join("log"), 2);
    let last = lines.last().expect("two lines");
    assert_eq!(behind_date(last), r#""HEAD /ten HTTP/1.1" 429 0 "-" "-""#);
}

/// A name is in the log only where a rule asked for a password, and there it is one word.
#[test]
fn names_of_users_are_asked_for() {
    const USERS: &str = "[[path]]\nmatch = '/ten'\n[path.basic_auth.users]\n\
        anna = '$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$QQCd8VPOryZiCF3MtwQnPTK7odKCaPcXJGplgNEuj1A'\n";
    let folder = Tree::new().expect("a folder");
    let config = folder.root().join("users.toml");
    std::fs::write(&config, USERS).expect("a file");
    let config = config.to_str().expect("text");
    let seen = start(&["--access-log", "{}/log", "--config", config]);
    let site = seen.server.address();
    let anna = "Authorization: Basic YW5uYTpzZWNyZXQ=\r\n";
    // `a [b]:c`
    let other = "Authorization: Basic YSBbYl06Yw==\r\n";
    for (path, fields) in [("/ten", anna), ("/ten", anna), ("/ten", other), ("/ten", ""), ("/absent", anna)] {
        get(site, path, fields);
    }
    let lines = await_lines(&logs(&seen.tree).join("log"), 5);
    let expected = [
        ("anna", " 200 10 "),
        ("anna", " 200 10 "),
        (r"a\x20\x5Bb\x5D", " 401 "),
        ("-", " 401 "),
        ("-", " 404 "),
    ];
    for (line, (user, status)) in lines.iter().zip(expected) {
        assert!(line.starts_with(&format!("127.0.0.1 - {user} [")) && line.contains(status), "{line}");
    }
}

#[test]
fn json_lines_have_the_fields_asked_for_in_their_order() {
    let flags = ["--access-log", "{}/log", "--access-log-format", "json"];
    let seen =
        start(&[&flags[..], &["--access-log-fields", "status,target,bytes,host,worker,user_agent"]].concat());
    let site = seen.server.address();
    get(site, "/ten", "User-Agent: a\"\u{1b}[2J\\\r\n");
    say(site, b"nonsense\r\n\r\n");
    let lines = await_lines(&logs(&seen.tree).join("log"), 2);
    // A control character is refused by the parser before any log sees it.
    let start = r#"{"status":400,"target":null,"bytes":"#;
    assert!(lines.iter().all(|line| line.starts_with(start)), "{lines:?}");
    get(site, "/ten?\"%22", "User-Agent: a\"b\\\r\n");
    let lines = await_lines(&logs(&seen.tree).join("log"), 3);
    let value: Value = serde_json::from_str(&lines[2]).expect("JSON");
    assert_eq!(value["user_agent"], "a\"b\\", "{lines:?}");
    assert_eq!(value["host"], "localhost");
}

#[test]
fn the_default_json_line_has_its_time() {
    let seen = start(&["--access-log", "{}/log", "--access-log-format", "json"]);
    get(seen.server.address(), "/ten", "");
    let lines = await_lines(&logs(&seen.tree).join("log"), 1);
    let value: Value = serde_json::from_str(&lines[0]).expect("JSON");
    let time = value["time"].as_str().expect("a time");
    assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{time}");
    assert_eq!(
        (&value["status"], &value["bytes"], &value["method"]),
        (&200.into(), &10.into(), &"GET".into())
    );
}

#[test]
fn every_request_of_a_pipeline_has_its_line_and_files_rotate_by_size() {
    let flags = ["--access-log", "{}/log", "--access-log-size-max", "20KiB", "--access-log-keep", "2"];
    let seen = start(&flags);
    let one = "GET /ten HTTP/1.1\r\nHost: a\r\nUser-Agent: ";
    let mut sent = 0;
    for round in 0..20 {
        let mut bytes = String::new();
        for number in 0..50 {
            bytes.push_str(&format!("{one}{round}.{number}\r\n\r\n"));
            sent += 1;
        }
        bytes.push_str("GET /ten HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let answers = say(seen.server.address(), bytes.as_bytes());
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 51);
        sent += 1;
        seen.await_metric("staunch_access_log_lines_total{outcome=\"written\"}", f64::from(sent));
    }
    let size = |name: &str| std::fs::metadata(logs(&seen.tree).join(name)).map(|file| file.len()).ok();
    for name in ["log", "log.1", "log.2"] {
        let size = size(name).unwrap_or_else(|| panic!("no {name}"));
        assert!(size > 0 && size <= 20 * 1024, "{name}: {size}");
    }
    assert_eq!(size("log.3"), None);
    let read = |name: &str| std::fs::read_to_string(logs(&seen.tree).join(name)).expect("a log");
    let last = read("log");
    assert!(last.trim_end().ends_with("\"-\""), "{last}");
    let newest = format!("{}{}", read("log.1"), last);
    assert!(newest.contains("\"19.49\"") && newest.contains("\"19.0\""), "{newest}");
}

#[test]
fn standard_output_takes_lines_too() {
    let seen = start(&["--access-log", "-"]);
    get(seen.server.address(), "/ten", "");
    seen.await_metric("staunch_access_log_lines_total{outcome=\"written\"}", 1.0);
    let start = std::time::Instant::now();
    let mut said = Vec::new();
    while !said.iter().any(|line: &String| line.contains("\"GET /ten HTTP/1.1\" 200 10")) {
        said.extend(seen.server.said());
        assert!(start.elapsed() < crate::peer::PATIENCE, "{said:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_log_that_cannot_be_opened_keeps_nothing_from_being_served() {
    for (flag, path, words) in [
        ("--access-log", "/absent/log", "access_log: the folder of the log /absent/log does not exist"),
        ("--access-log", "/", "access_log: the log / is a folder"),
        (
            "--access-log",
            "syslog:/absent/log",
            "access_log: no syslog service listens at syslog:/absent/log: ",
        ),
        ("--error-log", "/absent/log", "error_log: the folder of the log /absent/log does not exist"),
    ] {
        let seen = start(&[flag, path]);
        assert!(get(seen.server.address(), "/ten", "").ends_with("0123456789"));
        let ready = seen.readiness();
        assert!(body(&ready).contains(&format!("but: {words}")), "{ready}");
    }
    let seen = start(&["--access-log", "/absent/log", "--error-log", "{}/errors"]);
    let said = await_lines(&logs(&seen.tree).join("errors"), 1);
    assert!(
        said[0].contains("the folder of the log /absent/log does not exist; its lines are lost"),
        "{said:?}"
    );
}

/// Without the sandbox, which knows the folders of the start: there a reload finds a new one.
#[test]
fn a_log_that_could_not_be_opened_is_found_when_it_can_be() {
    let seen = start(&["--access-log", "{}/later/log", "--error-log", "{}/later/errors", "--sandbox", "off"]);
    let folder = logs(&seen.tree).join("later");
    let log = folder.join("log");
    let troubles = || seen.readiness().matches("but: ").count();
    get(seen.server.address(), "/ten?lost", "");
    seen.await_metric("staunch_access_log_lines_total{outcome=\"failed\"}", 1.0);
    assert_eq!(troubles(), 2);
    std::fs::create_dir(&folder).expect("a folder");
    // A log is tried once a second while there are lines.
    await_that("a line is there", || {
        get(seen.server.address(), "/ten?found", "");
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("/ten?found"))
    });
    assert!(!std::fs::read_to_string(&log).expect("a log").contains("/ten?lost"));
    await_that("one trouble is left", || troubles() == 1);
    seen.signal(Signal::USR1);
    await_that("no trouble is left", || troubles() == 0);
    assert!(folder.join("errors").exists());
}

/// In containers the names mean the outputs of the process, also where opening them would fail.
#[test]
fn names_of_standard_outputs_are_no_files() {
    for (place, errors) in [("/dev/stdout", "/dev/stderr"), ("/dev/stderr", "/dev/stdout")] {
        let seen = start(&["--access-log", place, "--error-log", errors, "--sandbox", "on"]);
        get(seen.server.address(), "/ten", "");
        seen.await_metric("staunch_access_log_lines_total{outcome=\"written\"}", 1.0);
        assert_eq!(body(&seen.readiness()), "ready\n");
        seen.signal(Signal::TERM);
        let line = "\"GET /ten HTTP/1.1\" 200 10";
        let said = seen.server.last_words();
        assert_eq!(said.contains(line), place == "/dev/stdout", "{said}");
        assert_eq!(said.contains("staunch: "), errors == "/dev/stdout", "{said}");
    }
}

/// What a syslog service was sent: the text behind the time and the process.
fn message(service: &UnixDatagram) -> String {
    let mut bytes = [0; 16 * 1024];
    let length = service.recv(&mut bytes).expect("a message in time");
    let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
    let (head, line) = text.split_once("]: ").expect("a head");
    // `<30>Nov 20 10:00:00 staunch[4711`
    assert!(head.starts_with("<30>") && head[19..].starts_with(" staunch["), "{text}");
    line.to_owned()
}

fn service(path: &Path) -> UnixDatagram {
    let service = UnixDatagram::bind(path).expect("a socket");
    service.set_read_timeout(Some(crate::peer::PATIENCE)).expect("a timeout");
    service
}

#[test]
fn a_syslog_service_gets_a_message_for_each_answer_and_may_be_started_anew() {
    let folder = Tree::new().expect("a folder");
    let path = folder.root().join("syslog");
    let place = format!("syslog:{}", path.display());
    let first = service(&path);
    // The sandbox is on where there is one: a service is found again from inside.
    let seen = start(&["--access-log", &place, "--access-log-format", "$request $status"]);
    get(seen.server.address(), "/ten?1", "");
    assert_eq!(message(&first), "GET /ten?1 HTTP/1.1 200");
    drop(first);
    std::fs::remove_file(&path).expect("removed");
    get(seen.server.address(), "/ten?2", "");
    seen.await_metric("staunch_access_log_lines_total{outcome=\"failed\"}", 1.0);
    let second = service(&path);
    get(seen.server.address(), "/ten?3", "");
    assert_eq!(message(&second), "GET /ten?3 HTTP/1.1 200");
    // A service that takes nothing more holds up neither answers nor the end.
    let crowd = "GET /ten HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2_000);
    let answers = say(seen.server.address(), format!("{crowd}BAD\r\n\r\n").as_bytes());
    assert_eq!(answers.matches(" 200 OK").count(), 2_000);
    let process = seen.server.process_id();
    seen.signal(Signal::TERM);
    await_that("it ends", || !is_alive(process));
}

/// Whether a process runs; one that has ended and was not waited for does not.
fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn a_syslog_service_of_another_host_is_a_fault_of_the_configuration() {
    let tree = Tree::new().expect("a folder");
    let finished = finish(serve(tree.root()).args(["--access-log", "syslog:server=unix:/dev/log"]));
    assert!(!finished.status.success());
    let words = "write syslog, or syslog:/dev/log, the socket of a syslog service";
    assert!(finished.stderr.contains(words), "{}", finished.stderr);
}

/// Waits until something has been done on a signal.
fn await_that(words: &str, mut is_done: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_done() {
        assert!(start.elapsed() < crate::peer::PATIENCE, "never: {words}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn usr1_opens_the_files_that_now_have_the_names() {
    let seen = start(&["--access-log", "{}/log", "--error-log", "{}/errors"]);
    let (log, moved) = (logs(&seen.tree).join("log"), logs(&seen.tree).join("moved"));
    let errors = logs(&seen.tree).join("errors");
    get(seen.server.address(), "/ten?before", "");
    await_lines(&log, 1);
    std::fs::rename(&log, &moved).expect("renamed");
    std::fs::remove_file(&errors).expect("removed");
    seen.signal(Signal::USR1);
    await_that("both are there again", || log.exists() && errors.exists());
    get(seen.server.address(), "/ten?after", "");
    assert!(await_lines(&log, 1)[0].contains("/ten?after"));
    assert!(await_lines(&moved, 1)[0].contains("/ten?before"));
}

#[test]
fn hup_turns_logs_on_and_off_and_keeps_them_when_the_new_one_cannot_be() {
    let tree = Tree::new().expect("a folder");
    let (file, log) = (tree.root().join(".toml"), tree.root().join(".log"));
    let write = |text: String| std::fs::write(&file, text).expect("a file");
    write(String::new());
    // A confined process may write where it wrote at its start, and nowhere else.
    let seen = start(&["--config", file.to_str().expect("text"), "--sandbox", "off"]);
    let site = seen.server.address();
    get(site, "/ten?1", "");
    write(format!("access_log = {log:?}\naccess_log_format = \"json\"\naccess_log_fields = [\"target\"]\n"));
    seen.signal(Signal::HUP);
    await_that("the log is there", || log.exists());
    await_that("a line is there", || {
        get(site, "/ten?2", "");
        std::fs::read_to_string(&log).expect("a log").contains("{\"target\":\"/ten?2\"}\n")
    });
    write("access_log = \"/absent/log\"\n".to_owned());
    seen.signal(Signal::HUP);
    await_that("the old one goes on", || {
        get(site, "/ten?3", "");
        std::fs::read_to_string(&log).expect("a log").contains("/ten?3")
    });
    write(String::new());
    seen.signal(Signal::HUP);
    await_that("no line comes any more", || {
        let before = seen.metric("staunch_access_log_lines_total{outcome=\"written\"}");
        get(site, "/ten?4", "");
        std::thread::sleep(std::time::Duration::from_millis(300));
        seen.metric("staunch_access_log_lines_total{outcome=\"written\"}") == before
    });
    assert!(!std::fs::read_to_string(&log).expect("a log").contains("/ten?1"));
}
