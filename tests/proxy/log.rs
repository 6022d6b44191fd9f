//! The way of a request that was passed on, as the access log and its client are told it.
//!
//! Times are looked at for their form alone.

use serde_json::Value;
use staunch_tests::house::waiting::until;
use staunch_tests::response::Response;
use staunch_tests::tree::Tree;
use staunch_tests::truth::Plan;

use crate::scripted::{Scripted, play};
use crate::world::{Client, ENGINES, Told as _, World, application};

/// What is told of the way of a request.
const FIELDS: [&str; 5] =
    ["upstream", "upstream_tries", "upstream_line_ms", "upstream_header_ms", "upstream_response_ms"];
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Settings of a log in a folder of its own, and the folder.
fn log() -> (Tree, String) {
    let tree = Tree::with(&[]).expect("a tree");
    let file = tree.root().join("access.log");
    let fields = FIELDS.map(|field| format!("\"{field}\"")).join(", ");
    let settings = format!(
        "access_log = \"{}\"\naccess_log_format = \"json\"\n\
         access_log_fields = [\"target\", \"status\", {fields}]\n",
        file.display()
    );
    (tree, settings)
}

/// The line of the request for this target, which may come after the answer.
fn line(tree: &Tree, target: &str) -> Value {
    let mut found = None;
    until("a line of the log", || {
        let text = std::fs::read_to_string(tree.root().join("access.log")).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines().map(|line| serde_json::from_str::<Value>(line).expect("an object"));
        found = lines.into_iter().find(|line| line["target"] == target);
        found.is_some()
    });
    found.expect("a line")
}

/// Status, server and tries of a line.
fn way(line: &Value) -> (u64, Option<&str>, Option<u64>) {
    (line["status"].as_u64().expect("a status"), line["upstream"].as_str(), line["upstream_tries"].as_u64())
}

/// An application that closes its first connection without an answer.
fn forgetful(application: &mut Scripted, number: usize) {
    application.head();
    if number > 0 {
        application.send(OK);
        application.until(|_| false);
    }
}

#[test]
fn the_log_tells_which_server_was_asked_and_how_long_it_took() {
    for io in ENGINES {
        let (_truth, address) = application(Plan::default());
        let (tree, log) = log();
        let rule = format!("[[path]]\nmatch = \"/ok*\"\nproxy = \"{address}\"\n");
        let (world, _www) = World::serve(io, &format!("root = \"{{root}}\"\n{log}{rule}"));
        // At once, in pieces, and after a body.
        for (target, request) in [
            ("/ok?bytes=3", "GET /ok?bytes=3 HTTP/1.1\r\nHost: a\r\n\r\n"),
            ("/ok?bytes=3000000", "GET /ok?bytes=3000000 HTTP/1.1\r\nHost: a\r\n\r\n"),
            ("/ok?post", "POST /ok?post HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"),
        ] {
            assert_eq!(world.ask(request).status, 200, "{io} {target}");
            let line = line(&tree, target);
            assert_eq!(way(&line), (200, Some(&*address), Some(1)), "{io} {line}");
            assert!(line["upstream_line_ms"].is_u64(), "{io} {line}");
            let (header, response) = (&line["upstream_header_ms"], &line["upstream_response_ms"]);
            assert!(header.is_u64() && response.as_u64() >= header.as_u64(), "{io} {line}");
        }
        assert_eq!(world.get("/page.txt").text(), "a file\n");
        let of_file = line(&tree, "/page.txt");
        assert!(FIELDS.iter().all(|field| of_file[field].is_null()), "{io} {of_file}");
        // What is not passed on, for it has been round, was told to no server.
        let round = vec!["1.1 a"; 17].join(", ");
        let refused = world.ask(&format!("GET /ok?round HTTP/1.1\r\nHost: a\r\nVia: {round}\r\n\r\n"));
        assert_eq!(refused.status, 508, "{io}");
        let refused = line(&tree, "/ok?round");
        assert_eq!(way(&refused), (508, None, Some(0)), "{io} {refused}");
        assert!(refused["upstream_response_ms"].is_null(), "{io} {refused}");
    }
}

#[test]
fn a_second_try_is_told_and_a_server_that_does_not_answer_has_no_time_of_a_head() {
    for io in ENGINES {
        let (address, _got) = play(forgetful);
        let (silent, _got) = play(|application, _| _ = application.head());
        let (tree, log) = log();
        let rule = format!("[[path]]\nmatch = \"/silent\"\nproxy = \"{silent}\"\n");
        let (world, _www) = World::serve(io, &format!("proxy = \"{address}\"\n{log}{rule}"));
        assert_eq!(world.get("/again").text(), "ok", "{io}");
        let again = line(&tree, "/again");
        assert_eq!(way(&again), (200, Some(&*address.to_string()), Some(2)), "{io} {again}");
        assert_eq!(world.get("/silent").status, 502, "{io}");
        let silence = line(&tree, "/silent");
        assert_eq!(way(&silence), (502, Some(&*silent.to_string()), Some(2)), "{io} {silence}");
        assert!(silence["upstream_header_ms"].is_null(), "{io} {silence}");
        assert!(silence["upstream_response_ms"].is_u64(), "{io} {silence}");
    }
}

#[test]
fn a_client_that_leaves_is_told_with_the_server_that_worked_for_it() {
    for io in ENGINES {
        let (truth, address) = application(Plan::default());
        let (tree, log) = log();
        let (world, _www) = World::serve(io, &format!("proxy = \"{address}\"\n{log}proxy_limit = 1\n"));
        let mut at_work = Client::of(&world);
        at_work.send(b"GET /stall HTTP/1.1\r\nHost: a\r\n\r\n");
        truth.await_counts(|counts| counts.requests_of("stall") == 1);
        drop(at_work);
        let left = line(&tree, "/stall");
        assert_eq!(way(&left), (499, Some(&*address), Some(1)), "{io} {left}");
        assert!(left["upstream_header_ms"].is_null(), "{io} {left}");
    }
}

#[test]
fn a_line_of_ones_own_has_the_words_of_nginx() {
    const WORDS: &str = "$status $upstream_addr $upstream_tries $upstream_queue_time \
                         $upstream_header_time $upstream_response_time";
    for io in ENGINES {
        let (address, _got) = play(forgetful);
        let tree = Tree::with(&[]).expect("a tree");
        let file = tree.root().join("access.log");
        let arguments = ["--access-log", file.to_str().expect("a name"), "--access-log-format", WORDS];
        let world = World::proxy(io, &[address.to_string()], &arguments);
        assert_eq!(world.get("/").text(), "ok", "{io}");
        let mut text = String::new();
        until("a line of the log", || {
            text = std::fs::read_to_string(&file).unwrap_or_default();
            text.ends_with('\n')
        });
        let start = format!("200 {address} 2 ");
        let times = text.trim_end().strip_prefix(&start).unwrap_or_else(|| panic!("{io} {text}"));
        assert_eq!(times.split(' ').count(), 3, "{io} {text}");
        let is_time = |time: &str| time.split_once('.').is_some_and(|(_, ms)| ms.len() == 3);
        assert!(times.split(' ').all(|time| is_time(time) && time.parse::<f64>().is_ok()), "{io} {text}");
    }
}

/// Whether a value is the field of this server.
fn is_ours(value: &str) -> bool {
    let parts = value.strip_prefix("line;dur=").and_then(|rest| rest.split_once(", app;dur="));
    parts.is_some_and(|(line, app)| line.parse::<u64>().is_ok() && app.parse::<u64>().is_ok())
}

fn timings(response: &Response) -> Vec<String> {
    response.values("server-timing").map(|value| String::from_utf8_lossy(value).into_owned()).collect()
}

#[test]
fn clients_are_shown_times_where_a_rule_says_so() {
    for io in ENGINES {
        let (_truth, address) = application(Plan::default());
        let (own, _got) = play(|application, _| {
            application.head();
            application.send(b"HTTP/1.1 200 OK\r\nServer-Timing: db;dur=5\r\nContent-Length: 2\r\n\r\nok");
            application.until(|_| false);
        });
        let settings = format!(
            "root = \"{{root}}\"\nserver_timing = true\nproxy = \"{address}\"\n\
             [[path]]\nmatch = \"/own\"\nproxy = \"{own}\"\n\
             [[path]]\nmatch = \"/ok/quiet\"\nserver_timing = false\n\
             [[path]]\nmatch = \"/page*\"\nproxy = \"off\"\n"
        );
        let (world, _www) = World::serve(io, &settings);
        for path in ["/ok", "/ok?bytes=3000000", "/nothing"] {
            let told = timings(&world.get(path));
            assert!(told.len() == 1 && is_ours(&told[0]), "{io} {path}: {told:?}");
        }
        let told = timings(&world.get("/own"));
        assert!(told.len() == 2 && told[0] == "db;dur=5" && is_ours(&told[1]), "{io}: {told:?}");
        // A rule says no, a file, and no answer of an application.
        for (path, status) in [("/ok/quiet", 404), ("/page.txt", 200), ("/garbage", 502)] {
            let response = world.get(path);
            assert_eq!((response.status, timings(&response).len()), (status, 0), "{io} {path}");
        }
    }
}
