//! `staunch top`: once, as JSON, and on a terminal.

use std::process::Command;

use staunch_tests::process::{binary, finish, is_installed};
use staunch_tests::terminal::Terminal;

use crate::peer::{get, start, start_workers};

#[test]
fn one_look_is_plain_text() {
    let seen = start_workers("2", &[]);
    get(seen.server.address(), "/ten", "");
    // Memory stands in the units of the settings: `cache_size` is 256 MiB.
    let finished = finish(Command::new(binary()).args(["top", "--once", "--admin", &seen.admin.to_string()]));
    assert!(finished.status.success(), "{}", finished.stderr);
    for words in [
        "staunch ",
        "requests ",
        "latency ",
        "p99",
        "connections",
        "refusals",
        "worker",
        "of 256 MiB\n",
        "\n     1 ",
    ] {
        assert!(finished.stdout.contains(words), "no {words} in:\n{}", finished.stdout);
    }
    assert!(
        !finished.stdout.contains('\u{1b}') && !finished.stdout.contains("q: end"),
        "{}",
        finished.stdout
    );
    assert!(finished.stdout.lines().all(|line| line.chars().count() <= 80), "{}", finished.stdout);
}

#[test]
fn json_is_what_the_server_says() {
    let seen = start(&[]);
    let finished = finish(Command::new(binary()).args(["top", "--json", "--admin", &seen.admin.to_string()]));
    let value: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(value["process_id"], seen.server.process_id());
}

#[test]
fn where_nobody_answers_it_says_what_to_do() {
    let seen = start(&[]);
    for (address, words) in [
        ("127.0.0.1:1".to_owned(), "127.0.0.1:1 does not answer: Connection refused"),
        (seen.server.address().to_string(), "is no admin address of staunch"),
    ] {
        let finished = finish(Command::new(binary()).args(["top", "--admin", &address]));
        assert_eq!(finished.status.code(), Some(1));
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    }
}

#[test]
fn the_view_moves_and_ends_with_a_key() {
    if !is_installed("tmux") {
        return;
    }
    let seen = start_workers("2", &[]);
    let command = format!("'{}' top --admin {} --interval 200ms", binary().display(), seen.admin);
    let terminal = Terminal::start(seen.tree.root(), &command);
    let first = terminal.await_screen(&["q: end", "requests", "up to"]);
    assert!(first.lines().all(|line| line.chars().count() <= 80), "{first}");
    assert!(!first.contains("malformed"), "{first}");
    crate::peer::say(seen.server.address(), b"nonsense\r\n\r\n");
    let second = terminal.await_screen(&["malformed 1"]);
    assert_eq!(second.matches("connections").count(), 2, "a rest was left behind:\n{second}");
    drop(seen.server);
    terminal.await_screen(&["does not answer", "asking again"]);
    terminal.press("q");
    terminal.await_screen(&["exit code 0"]);
}
