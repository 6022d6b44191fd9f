//! `staunch load live` against a server whose faults are known: each is counted exactly.

use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{Finished, binary, finish};

use crate::live_server::{Framing, LiveServer, Wrong};

/// Readers of most runs.
const READERS: u64 = 7;
/// Updates of most runs.
const UPDATES: u64 = 12;

fn live(url: &str) -> Command {
    let mut command = Command::new(binary());
    command.args(["load", "live", url, "--quiet", "--threads", "2"]);
    command
}

fn measure(command: &mut Command) -> (Value, Finished) {
    let finished = finish(command.args(["--json", "-"]));
    let document = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", finished.stdout, finished.stderr));
    (document, finished)
}

/// A run of some readers and updates against a server that does this wrong.
fn run_with(framing: Framing, wrongs: &[Wrong], more: &[&str]) -> (Value, LiveServer) {
    let server = LiveServer::start(framing, wrongs);
    let mut command = live(&server.url("/events"));
    command.args(["-c", "7", "-n", "12", "--rate", "200/s", "--return-after", "5ms"]).args(more);
    if !more.contains(&"--settle") {
        command.args(["--settle", "15s"]);
    }
    let (document, finished) = measure(&mut command);
    assert!(finished.status.success(), "{}", finished.stderr);
    let count = |name: &str| count(&document, name);
    assert_eq!(count("due"), count("delivered") + count("lost") + count("skipped"), "{document:#}");
    assert_eq!(document["delay_ms"]["max"].is_null(), count("delivered") == 0);
    (document, server)
}

fn count(document: &Value, name: &str) -> u64 {
    document["counts"][name].as_u64().unwrap_or_else(|| panic!("no count {name}: {document:#}"))
}

/// Lost, out of order, duplicated.
fn faults(document: &Value) -> [u64; 3] {
    ["lost", "out_of_order", "duplicated"].map(|name| count(document, name))
}

#[test]
fn a_right_server_loses_nothing() {
    for framing in [Framing::Chunked, Framing::Plain] {
        for io in ["uring", "epoll"] {
            if io == "uring" && staunch_netio::uring::probe().is_err() {
                println!("skipped: no io_uring here");
                continue;
            }
            let (document, server) = run_with(framing, &[], &["--io", io, "--fail-on-loss"]);
            assert_eq!(count(&document, "due"), READERS * UPDATES);
            assert_eq!(count(&document, "delivered"), READERS * UPDATES);
            assert_eq!(faults(&document), [0; 3]);
            let names = ["opened", "returned", "ended", "unmarked", "foreign", "signs_of_life"];
            assert_eq!(names.map(|name| count(&document, name)), [READERS, 0, 0, 0, 0, READERS]);
            assert_eq!(document["publications"]["published"], UPDATES);
            assert_eq!(document["gathered"], READERS);
            assert_eq!(document["statuses"]["200"], READERS);
            let bytes = document["bytes_per_update"].as_f64().expect("bytes");
            assert!((200.0..300.0).contains(&bytes), "{bytes}");
            assert!(server.values().iter().all(|value| value.contains("\"topic\":\"load\"")));
        }
    }
}

#[test]
fn what_goes_wrong_is_counted_at_every_reader() {
    use Wrong::{Exchange, Lose, Repeat};
    let table: [(&[Wrong], [u64; 3]); 7] = [
        (&[Lose(1)], [1, 0, 0]),
        (&[Lose(5), Lose(6), Lose(9)], [3, 0, 0]),
        (&[Lose(12)], [1, 0, 0]),
        (&[Repeat(1), Repeat(12)], [0, 0, 2]),
        (&[Exchange(4)], [0, 1, 0]),
        (&[Exchange(12)], [1, 0, 0]),
        (&[Lose(2), Repeat(3), Exchange(7), Lose(9)], [2, 1, 1]),
    ];
    let check = |wrongs: &[Wrong], expected: [u64; 3]| {
        let (document, _) = run_with(Framing::Chunked, wrongs, &["--settle", "3s"]);
        assert_eq!(faults(&document), expected.map(|each| each * READERS), "{wrongs:?}");
        assert_eq!(count(&document, "due"), READERS * UPDATES);
        let last = wrongs.iter().any(|wrong| matches!(wrong, Lose(12) | Exchange(12)));
        assert_eq!(count(&document, "without_last"), if last { READERS } else { 0 });
    };
    // What is lost is waited for, so all at a time.
    thread::scope(|scope| {
        table.iter().for_each(|(wrongs, expected)| drop(scope.spawn(|| check(wrongs, *expected))));
    });
}

#[test]
fn a_websocket_is_read_as_a_stream_of_events() {
    let table: [(&[Wrong], [u64; 3]); 2] =
        [(&[], [0; 3]), (&[Wrong::Lose(2), Wrong::Repeat(3), Wrong::Exchange(5)], [1, 1, 1])];
    for (wrongs, expected) in table {
        let server = LiveServer::start(Framing::Socket, wrongs);
        let url = server.url("/events").replace("http://", "ws://");
        let mut command = live(&url);
        command.args(["-c", "7", "-n", "12", "-r", "200/s", "--send", "hello {{topic}}", "--settle", "3s"]);
        let (document, finished) = measure(&mut command);
        assert!(finished.status.success(), "{}", finished.stderr);
        assert_eq!(faults(&document), expected.map(|each| each * READERS), "{wrongs:?}");
        assert_eq!(count(&document, "due"), READERS * UPDATES);
        let names = ["opened", "signs_of_life", "unmarked"];
        assert_eq!(names.map(|name| count(&document, name)), [READERS; 3], "the welcome has no mark");
        assert_eq!((&document["way"], &document["statuses"]["101"]), (&"WebSocket".into(), &READERS.into()));
    }
    let server = LiveServer::start(Framing::Chunked, &[]);
    let finished = finish(live(&server.url("/events").replace("http", "ws")).args(["-c", "1", "-r", "1/s"]));
    assert!(finished.stderr.contains("a reader's WebSocket was answered 200"), "{}", finished.stderr);
}

#[test]
fn what_may_be_skipped_is_not_lost_but_the_last_one_is() {
    let wrongs = [Wrong::Lose(3), Wrong::Lose(12)];
    let (document, _) = run_with(Framing::Chunked, &wrongs, &["--may-skip", "--settle", "3s"]);
    assert_eq!((count(&document, "skipped"), count(&document, "lost")), (READERS, READERS));
}

#[test]
fn who_is_cut_off_within_an_event_comes_back_and_resumes_before_it() {
    for framing in [Framing::Chunked, Framing::Plain] {
        let (document, server) = run_with(framing, &[Wrong::CutWithin(6)], &["--fail-on-loss"]);
        assert_eq!(faults(&document), [0; 3]);
        assert_eq!(count(&document, "delivered"), READERS * UPDATES);
        assert_eq!(["opened", "returned", "resumed"].map(|name| count(&document, name)), [14, 7, 7]);
        assert_eq!(count(&document, "ended") + count(&document, "reset"), READERS);
        let from = server.resumed_from();
        assert_eq!(from.iter().filter(|from| from.is_none()).count() as u64, READERS);
        assert_eq!(from.iter().filter(|from| **from == Some(5)).count() as u64, READERS, "{from:?}");
    }
}

#[test]
fn what_a_server_forgets_meanwhile_is_lost() {
    let (document, _) = run_with(Framing::Chunked, &[Wrong::CutAndForget(12)], &["--settle", "3s"]);
    assert_eq!(faults(&document), [READERS, 0, 0]);
    assert_eq!(count(&document, "without_last"), READERS);
}

#[test]
fn without_resuming_no_id_is_sent() {
    let (document, server) = run_with(Framing::Plain, &[Wrong::CutWithin(12)], &["--no-resume"]);
    assert_eq!((count(&document, "resumed"), count(&document, "lost")), (0, READERS));
    assert!(server.resumed_from().iter().all(Option::is_none));
}

#[test]
fn publications_that_fail_are_told_and_are_not_lost() {
    let (document, server) = run_with(Framing::Chunked, &[Wrong::Refuse(3)], &[]);
    let told = &document["publications"];
    assert_eq!((&told["published"], &told["refused"]), (&11.into(), &1.into()));
    assert_eq!((faults(&document), count(&document, "due")), ([0; 3], READERS * 11));
    assert!(document["warnings"][0].as_str().expect("a warning").contains("503: not now"), "{document:#}");
    assert_eq!(server.values().len(), 11);

    let (document, _) = run_with(Framing::Chunked, &[Wrong::Swallow(3)], &[]);
    let told = &document["publications"];
    assert_eq!((&told["published"], &told["unanswered"]), (&11.into(), &1.into()));
    assert_eq!((faults(&document), count(&document, "delivered")), ([0; 3], READERS * UPDATES));
}

#[test]
fn readers_that_are_cut_off_by_the_generator_resume() {
    let server = LiveServer::start(Framing::Chunked, &[]);
    let mut command = live(&server.url("/events"));
    command.args(["-c", "20", "-n", "400", "--rate", "400/s", "--cut", "100/s", "--return-after", "5ms"]);
    let (document, _) = measure(&mut command);
    assert!(count(&document, "cut") > 0, "{document:#}");
    assert_eq!(count(&document, "returned"), count(&document, "opened") - 20);
    // A reader that had no id yet has nothing to resume from: what it missed meanwhile is lost.
    assert_eq!(count(&document, "due"), 20 * 400);
    assert_eq!((count(&document, "out_of_order"), count(&document, "duplicated")), (0, 0));
}

#[test]
fn readers_that_stall_are_left_out() {
    let (document, _) = run_with(Framing::Chunked, &[], &["--stalled", "3"]);
    assert_eq!((count(&document, "due"), count(&document, "delivered")), (4 * UPDATES, 4 * UPDATES));
    assert_eq!((document["stalled"].as_u64(), document["open_at_end"].as_u64()), (Some(3), Some(READERS)));
}

#[test]
fn a_fault_is_an_exit_code_if_it_is_asked_for() {
    let server = LiveServer::start(Framing::Chunked, &[Wrong::Lose(1)]);
    let mut command = live(&server.url("/events"));
    let finished =
        finish(command.args(["-c", "2", "-n", "2", "-r", "100/s", "--fail-on-loss", "--settle", "100ms"]));
    assert_eq!(finished.status.code(), Some(3), "{}", finished.stderr);
    assert!(finished.stderr.contains("2 updates were lost, 0 came twice"), "{}", finished.stderr);
    for words in ["published", "delivered", "lost", "out of order", "delay", "2 readers, server-sent events"]
    {
        assert!(finished.stdout.contains(words), "no {words:?} in {}", finished.stdout);
    }
}

#[test]
fn who_only_listens_counts_what_others_publish() {
    let server = LiveServer::start(Framing::Chunked, &[]);
    let url = server.url("/events");
    let mut publisher = live(&url);
    publisher.args(["-c", "1", "-d", "60s", "-r", "50/s"]).stdout(Stdio::null());
    let mut publisher = publisher.spawn().expect("a second generator");
    let mut listener = live(&url);
    listener.args(["-c", "3", "-d", "60s", "--json", "-"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let listener = listener.spawn().expect("a generator");
    until("four readers", || server.resumed_from().len() == 4);
    let published = server.values().len();
    until("twenty updates", || server.values().len() >= published + 20);
    let interrupted = Command::new("kill").args(["-INT", &listener.id().to_string()]).status();
    assert!(interrupted.expect("kill").success());
    let output = listener.wait_with_output().expect("its end");
    publisher.kill().expect("its end");
    publisher.wait().expect("its end");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(count(&document, "delivered") > 0, "{document:#}");
    assert_eq!(count(&document, "due"), count(&document, "delivered"));
    assert_eq!(faults(&document), [0; 3]);
    assert_eq!(document["publications"]["published"], 0);
}

#[test]
fn what_is_no_stream_is_said() {
    let server = LiveServer::start(Framing::Chunked, &[]);
    let table = [
        (server.url("/nowhere"), "no stream of", "a reader was answered 404"),
        (server.url("/html"), "no stream of", "by \"text/html\" in place of text/event-stream"),
        ("http://127.0.0.1:1/events".to_owned(), "no stream of", "the connection of a reader was refused"),
    ];
    for (url, words, reason) in table {
        let finished = finish(live(&url).args(["-c", "1", "-n", "1", "-r", "10/s"]));
        assert_eq!(finished.status.code(), Some(1), "{url}: {}", finished.stderr);
        assert!(finished.stderr.contains(words) && finished.stderr.contains(reason), "{}", finished.stderr);
    }
    let finished = finish(
        live(&server.url("/events"))
            .args(["-c", "1", "-n", "2", "-r", "50/s", "--publish-to"])
            .arg(server.url("/nowhere")),
    );
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    let words = "nothing was published: a publication was answered 404: nothing here";
    assert!(finished.stderr.contains(words), "{}", finished.stderr);
}

#[test]
fn a_wrong_command_line_names_the_place() {
    let table: [(&[&str], &str); 7] = [
        (&["--topics", "3"], "{{topic}}"),
        (&["--topic", "a/b"], "--topic \"a/b\""),
        (&["-r", "1/s", "--size", "10"], "--size 10"),
        (&["-r", "1/s", "--publish-body", "nothing"], "{{value}}"),
        (&["--stalled", "5", "-c", "2"], "more readers are to stop reading"),
        (&["-n", "3"], "--rate"),
        (&["-H", "nonsense"], "nonsense"),
    ];
    for (arguments, words) in table {
        let finished = finish(live("http://127.0.0.1:1/events").args(arguments));
        assert!(!finished.status.success());
        assert!(finished.stderr.contains(words), "{arguments:?}: {}", finished.stderr);
    }
}

#[test]
fn readers_and_updates_are_dealt_out_among_topics() {
    let server = LiveServer::start(Framing::Chunked, &[]);
    let mut command = live(&server.url("/events?topic={{topic}}"));
    command.args(["-c", "4", "-n", "6", "-r", "100/s", "--topics", "2", "--publishers", "2"]);
    let (_, finished) = measure(&mut command);
    assert!(finished.status.success(), "{}", finished.stderr);
    let topics = server.values();
    assert_eq!(topics.iter().filter(|value| value.contains("load.0")).count(), 3);
    assert_eq!(topics.iter().filter(|value| value.contains("load.1")).count(), 3);
}
