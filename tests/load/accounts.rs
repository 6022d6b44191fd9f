//! Every behaviour of a server goes under the count it belongs to, and the counts are those of the server.
use staunch_tests::truth::Truth;

use crate::generator::{WAYS, answers, count, ends, load, measure, measure_to, truth};

/// Requests of each run.
const REQUESTS: u64 = 24;

/// A path, words of its own, under which count all its requests go, and the status of its answers.
type Case = (&'static str, &'static [&'static str], &'static str, Option<&'static str>);

const CASES: &[Case] = &[
    ("/ok", &[], "in_time", Some("200")),
    ("/ok?bytes=300000", &[], "in_time", Some("200")),
    ("/status/503", &[], "wrong_answer", Some("503")),
    ("/status/404", &["--expect-status", "404"], "in_time", Some("404")),
    ("/status/301", &[], "in_time", Some("301")),
    ("/ok?bytes=70", &["--expect-body", "length:70"], "in_time", Some("200")),
    ("/ok?bytes=70", &["--expect-body", "length:71"], "wrong_answer", Some("200")),
    ("/echo", &["-H", "X-Sign: seen", "--expect-body", "contains:X-Sign: seen"], "in_time", Some("200")),
    ("/delay/20ms", &[], "in_time", Some("200")),
    ("/stall", &["--patience", "300ms"], "timed_out", None),
    ("/hang-after-head", &["--patience", "300ms"], "timed_out", None),
    ("/delay/300ms", &["--late-after", "100ms"], "late", Some("200")),
    ("/reset", &[], "reset", None),
    ("/reset-in-body?bytes=100000", &[], "reset", None),
    ("/short?bytes=100", &[], "reset", None),
    ("/close", &[], "in_time", Some("200")),
    ("/chunked?bytes=5000&chunk=7", &[], "in_time", Some("200")),
    ("/no-length?bytes=5000", &[], "in_time", Some("200")),
    ("/slow-body?bytes=5000&over=200ms", &[], "in_time", Some("200")),
    ("/garbage", &[], "wrong_answer", None),
    ("/1xx", &[], "in_time", Some("200")),
];

#[test]
fn every_behaviour_has_its_count() {
    for io in WAYS {
        for (path, words, end, status) in CASES {
            let truth = truth();
            let url = truth.url(path);
            let requests = REQUESTS.to_string();
            let run = [&[&url, "-n", &requests, "-c", "4", "-t", "1", "--io", io], *words].concat();
            // Where not one answer is right, something else was measured than was meant.
            let document = measure_to(i32::from(*end == "wrong_answer"), &run);
            assert_eq!(ends(&document), [(*end, REQUESTS)], "{io} {path} {words:?}");
            if let Some(status) = status {
                assert_eq!(answers(&document, status), REQUESTS, "{io} {path}");
            }
            check_against_the_truth(&document, truth, path);
        }
    }
}

/// The server has seen as many requests as were offered, and no connection that was not counted.
fn check_against_the_truth(document: &serde_json::Value, truth: Truth, path: &str) {
    let counts = truth.finish();
    assert_eq!(counts.requests_total(), count(document, "offered"), "{path}: {counts:?}");
    assert_eq!(counts.connections_accepted, count(document, "connections_made"), "{path}: {counts:?}");
    for (status, answered) in &counts.answers {
        assert!(answers(document, &status.to_string()) <= *answered, "{path}: {counts:?}");
    }
}

/// A connection's requests follow each other at once, so all of them take as long as each of them together,
/// and at least as long as the server delays them.
#[test]
fn so_many_requests_last_from_the_first_start_to_the_last_answer() {
    for io in WAYS {
        for requests in [1, 7, 60] {
            let truth = truth();
            let (url, number) = (truth.url("/delay/2ms"), requests.to_string());
            let document = measure(&[&url, "-n", &number, "-c", "1", "-t", "1", "--io", io]);
            let seconds = document["seconds"].as_f64().expect("seconds");
            let mean_ms = document["latency_ms"]["mean"].as_f64().expect("a mean");
            let together = f64::from(requests) * mean_ms / 1e3;
            assert!((seconds / together - 1.0).abs() < 0.01, "{io}: {seconds} s, {together} s together");
            assert!(seconds >= 0.002 * f64::from(requests), "{io}: {seconds} s");
            let rate = document["rate_per_s"].as_f64().expect("a rate");
            assert!((rate * seconds - f64::from(requests)).abs() < 1e-6, "{io}: {rate}/s in {seconds} s");
            assert_eq!(document["lanes"][0]["seconds"], document["seconds"], "{io}");
        }
    }
}

#[test]
fn not_one_right_answer_is_said_and_a_mixture_is_a_result() {
    let truth = truth();
    let run = |path: &str, words: &[&str]| {
        load(&[&[truth.url(path).as_str(), "-n", "10", "-c", "2", "-t", "1", "--quiet"], words].concat())
    };
    let wrong = run("/status/404", &[]);
    assert_eq!(wrong.status.code(), Some(1), "{}", wrong.stderr);
    let words = "not one answer was right, 10 were wrong (status 404: 10); --expect-status";
    assert!(wrong.stderr.contains(words), "{}", wrong.stderr);
    assert!(wrong.stdout.contains("wrong answer"), "its summary is there: {}", wrong.stdout);
    let body = run("/ok", &["--expect-body", "contains:nothing of the kind"]);
    assert_eq!(body.status.code(), Some(1), "{}", body.stderr);
    let garbage = run("/garbage", &[]);
    assert!(garbage.stderr.contains("none of them was HTTP"), "{}", garbage.stderr);
    assert_eq!(run("/status/404", &["--expect-status", "404"]).status.code(), Some(0));
    assert_eq!(run("/status/404", &["--fail-if", "errors>1%"]).status.code(), Some(3));
    let mixed = run("/echo", &["--body", "number {{serial}}", "--expect-body", "contains:number 3"]);
    assert_eq!(mixed.status.code(), Some(0), "{}", mixed.stderr);
}

#[test]
fn templates_number_the_requests() {
    let truth = truth();
    let body = "number {{serial}} of {{thread}}";
    let document = measure(&[
        &truth.url("/echo"),
        "-n",
        "20",
        "-c",
        "1",
        "-t",
        "1",
        "--body",
        body,
        "--expect-body",
        "contains:number 1",
    ]);
    // 1, 10 to 19.
    assert_eq!(ends(&document), [("in_time", 11), ("wrong_answer", 9)]);
}

#[test]
fn connections_are_kept_or_not() {
    for io in WAYS {
        // The connections made last find fewer requests left than they may carry.
        for (words, made) in [
            (&[][..], 4..=4),
            (&["--no-keep-alive"], 24..=24),
            (&["--requests-per-connection", "3"], 8..=12),
            (&["--pipeline", "3"], 4..=4),
        ] {
            let truth = truth();
            let document = measure(
                &[&[&truth.url("/ok"), "-n", "24", "-c", "4", "-t", "1", "--io", io], words].concat(),
            );
            assert_eq!(ends(&document), [("in_time", 24)], "{io} {words:?}");
            let counted = count(&document, "connections_made");
            assert!(made.contains(&counted), "{io} {words:?}: {counted}");
            assert_eq!(truth.finish().connections_accepted, counted, "{io} {words:?}");
        }
    }
}

#[test]
fn threads_share_the_requests() {
    let truth = truth();
    let document = measure(&[&truth.url("/ok"), "-n", "101", "-c", "7", "-t", "3"]);
    assert_eq!(ends(&document), [("in_time", 101)]);
    assert_eq!(truth.finish().requests_total(), 101);
}

#[test]
fn bytes_are_those_of_the_server() {
    let truth = truth();
    let document = measure(&[&truth.url("/ok?bytes=1000"), "-n", "10", "-c", "1", "-t", "1"]);
    assert_eq!(document["received_bytes"].as_u64(), Some(truth.finish().bytes_sent));
}
