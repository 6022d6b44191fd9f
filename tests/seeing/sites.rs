//! A log for each site, and conditions on what is written.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::house::waiting::until;
use staunch_tests::process::{Server, finish, serve_by};
use staunch_tests::tree::Tree;

use crate::peer::{await_lines, say};

const FORM: &str = "access_log_format = '$host $request_uri $status'\n";

/// A tree with a folder for logs beside it, and settings in which `ROOT` and `LOGS` stand for them.
fn settings(tree: &Tree, text: &str) {
    let logs = tree.root().with_file_name("logs");
    fs::create_dir_all(&logs).expect("a folder");
    let text =
        text.replace("ROOT", &tree.root().display().to_string()).replace("LOGS", &logs.display().to_string());
    fs::write(tree.root().with_file_name("staunch.toml"), text).expect("settings");
}

fn start(tree: &Tree) -> Server {
    let file = tree.root().with_file_name("staunch.toml");
    let server = Server::spawn(serve_by(&file).arg("--error-log").arg(tree.root().with_file_name("errors")));
    server.unwrap_or_else(|said| panic!("{said}"))
}

fn ask(site: SocketAddr, host: &str, path: &str) {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    assert!(say(site, head.as_bytes()).starts_with("HTTP/1.1 "), "{host}{path}");
}

/// The lines of a log, once there are as many as are expected.
#[track_caller]
fn expect(tree: &Tree, log: &str, expected: &[&str]) {
    let path = tree.root().with_file_name("logs").join(log);
    assert_eq!(await_lines(&path, expected.len()), expected, "{log}");
}

#[test]
fn each_site_has_its_log_or_none() {
    let tree = Tree::with(&[]).expect("a tree");
    settings(
        &tree,
        &format!(
            "access_log = 'LOGS/all'\n{FORM}\
             [[site]]\nroot = 'ROOT'\nhosts = ['one.example']\ndefault = true\n\
             [[site]]\nroot = 'ROOT'\nhosts = ['two.example', '*.two.example']\naccess_log = 'LOGS/two'\n\
             access_log_skip = ['/sub/*']\n\
             [[site]]\nroot = 'ROOT'\nhosts = ['three.example']\naccess_log = 'LOGS/three'\n\
             access_log_format = '$status'\naccess_log_if = ['status >= 400', 'status != 405']\n\
             [[site]]\nroot = 'ROOT'\nhosts = ['four.example']\naccess_log = false\n\
             [[site]]\nroot = 'ROOT'\nhosts = ['five.example']\naccess_log = 'LOGS/two'\n"
        ),
    );
    let server = start(&tree);
    let site = server.address();
    for host in ["one.example", "two.example", "WWW.two.example:80", "three.example", "four.example", "six"] {
        ask(site, host, "/a.txt");
    }
    for host in ["two.example", "three.example", "four.example", "five.example"] {
        ask(site, host, "/sub/none?q");
    }
    say(site, b"POST / HTTP/1.1\r\nHost: three.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    say(site, b"\x16\x03\x01 is no request\r\n\r\n");
    expect(&tree, "all", &["one.example /a.txt 200", "six /a.txt 200", "- - 400"]);
    let two = ["two.example /a.txt 200", "www.two.example /a.txt 200", "five.example /sub/none?q 404"];
    expect(&tree, "two", &two.map(|line| line.replace("www", "WWW")).each_ref().map(String::as_str));
    expect(&tree, "three", &["404"]);
    assert_eq!(fs::read_dir(tree.root().with_file_name("logs")).expect("the logs").count(), 3);
}

#[test]
fn logs_of_sites_come_with_a_reload_and_files_are_opened_anew() {
    let tree = Tree::with(&[]).expect("a tree");
    let sites = "[[site]]\nroot = 'ROOT'\nhosts = ['one']\nKEY\n[[site]]\nroot = 'ROOT'\nhosts = ['two']\n";
    let text = format!("access_log = 'LOGS/all'\n{FORM}{sites}");
    settings(&tree, &text.replace("KEY", ""));
    let server = start(&tree);
    let site = server.address();
    let process = Pid::from_raw(server.process_id().cast_signed()).expect("a process");
    ask(site, "one", "/a.txt");
    expect(&tree, "all", &["one /a.txt 200"]);
    settings(&tree, &text.replace("KEY", "access_log = 'LOGS/one'"));
    kill_process(process, Signal::HUP).expect("a signal");
    let log = |name: &str| tree.root().with_file_name("logs").join(name);
    until("the log is there", || log("one").exists());
    until("the log is used", || {
        ask(site, "one", "/page.html");
        !fs::read(log("one")).unwrap_or_default().is_empty()
    });
    for name in ["one", "all"] {
        fs::rename(log(name), log(name).with_extension("old")).expect("our own file");
    }
    kill_process(process, Signal::USR1).expect("a signal");
    until("both are opened anew", || log("one").exists() && log("all").exists());
    ask(site, "two", "/a.txt");
    expect(&tree, "all", &["two /a.txt 200"]);
    // A site whose log cannot be opened: all stays as it was.
    settings(&tree, &text.replace("KEY", "access_log = 'LOGS/none/one'"));
    kill_process(process, Signal::HUP).expect("a signal");
    until("it says why", || {
        let said = fs::read_to_string(tree.root().with_file_name("errors")).unwrap_or_default();
        said.contains("none/one does not exist")
    });
    ask(site, "two", "/none");
    expect(&tree, "all", &["two /a.txt 200", "two /none 404"]);
}

/// The words of a test (`-t`) of these settings.
fn tested(tree: &Tree, text: &str) -> String {
    settings(tree, text);
    let finished = finish(serve_by(Path::new(&tree.root().with_file_name("staunch.toml"))).arg("-t"));
    assert_eq!(finished.status.code(), Some(78), "{text}: {}", finished.stderr);
    finished.stderr
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let tree = Tree::with(&[]).expect("a tree");
    for (key, fault) in [
        ("access_log = 'LOGS/none/log'", ":4:1: access_log: "),
        (
            "access_log_if = 'time > 3'",
            ":4:17: access_log_if: \"time > 3\" is wrong: write a comparison such as",
        ),
        (
            "access_log_if = 'status >= 4xx'",
            ":4:17: access_log_if: \"status >= 4xx\" is wrong: write a status from",
        ),
        ("access_log_if = ['status >= 400', 'status 5']", ":4:35: access_log_if: \"status 5\" is wrong"),
        ("access_log_skip = ['healthz']", ":4:20: access_log_skip: \"healthz\" is wrong"),
        ("error_log = 'x'", ":4:1: `error_log` stands above the first [[...]]"),
        (
            "access_log_keep = 7",
            ":4:1: access_log_keep: another site writes to the same file, and says another one",
        ),
    ] {
        let sites =
            "[[site]]\nroot = 'ROOT'\nKEY\nhosts = ['one']\n[[site]]\nroot = 'ROOT'\nhosts = ['two']\n";
        let said = tested(&tree, &format!("access_log = 'LOGS/all'\n{}", sites.replace("KEY", key)));
        assert!(said.contains(fault), "{key}: {said}");
    }
}
