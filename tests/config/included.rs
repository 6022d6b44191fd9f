//! Files that the file of settings includes: what is read, what is refused and where, and that a reload
//! sees them.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::body::SocketLink;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{Server, serve_by};
use staunch_tests::response::Response;

use crate::Folder;

const MAIN: &str = "listen = ['127.0.0.1:0']\ninclude = 'conf.d/*.toml'\n";

fn site(host: &str) -> String {
    format!("[[site]]\nhosts = ['{host}']\nroot = '.'\nheaders = {{ X-Site = '{host}' }}\n")
}

/// A folder with a file of settings and files in `conf.d`.
fn folder(main: &str, files: &[(&str, &str)]) -> Folder {
    let folder = Folder::with(main);
    fs::create_dir(folder.tree.root().join("conf.d")).expect("our own folder");
    files.iter().for_each(|(name, text)| write(&folder, name, text));
    folder
}

fn write(folder: &Folder, name: &str, text: &str) {
    fs::write(folder.tree.root().join("conf.d").join(name), text).expect("our own folder");
}

#[test]
fn sites_are_read_in_the_order_of_their_files() {
    let files =
        [("20-b.toml", site("b")), ("10-a.toml", site("a") + &site("a2")), (".hidden.toml", "x".into())];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let folder = folder(&(MAIN.to_owned() + &site("first")), &files);
    write(&folder, "30-c.toml.dpkg-old", "no TOML at all [");
    let shown = folder.run(&["config", "show", "-c", "staunch.toml"]).stdout;
    let places: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with("hosts"))
        .filter_map(|line| line.split_once("# file ").map(|(_, place)| place))
        .collect();
    let expected = ["staunch.toml:4", "conf.d/10-a.toml:2", "conf.d/10-a.toml:6", "conf.d/20-b.toml:2"];
    assert_eq!(places, expected, "{shown}");
    assert_eq!(folder.run(&["-t", "-c", "staunch.toml"]).status.code(), Some(0));
}

#[test]
fn every_fault_has_its_file_and_place() {
    let good = &*site("b");
    for (main, files, expected) in [
        (
            MAIN,
            &[("a.toml", "[[site]]\nrot = '.'\n")][..],
            &["conf.d/a.toml:2:1: unknown key `rot` (did you mean `root`?)"][..],
        ),
        (
            MAIN,
            &[("a.toml", "[[site]]\nroot = '.'\nlisting = 3\n"), ("b.toml", "[[site]]\nhosts = 7\n")],
            &["conf.d/a.toml:3:11: listing: 3 is wrong", "conf.d/b.toml:2:9: hosts: 7 is not"],
        ),
        (MAIN, &[("a.toml", good), ("b.toml", "[[site]\n")], &["conf.d/b.toml:1:"]),
        (
            MAIN,
            &[("a.toml", "listen = [80]\ninclude = 'c'\n[[path]]\nmatch = '/'\n")],
            &[
                "conf.d/a.toml:1:1: `listen` stands in an included file, which has [[site]] tables alone: \
                 write it into staunch.toml",
                "conf.d/a.toml:2:1: an included file includes no other",
                "conf.d/a.toml:3:3: [[path]] stands in an included file: write [[site.path]]",
            ],
        ),
        (MAIN, &[("a.toml", "[site]\nroot = '.'\n")], &["conf.d/a.toml:1:2: [site] has single brackets"]),
        (
            MAIN,
            &[],
            &["staunch.toml:1:1: root: missing: there is no [[site]], neither here nor in the files"],
        ),
        (
            MAIN,
            &[("a.toml", good), ("b.toml", good)],
            &["conf.d/b.toml:1:1: another site answers for b already"],
        ),
    ] {
        expect_faults(main, files, expected);
    }
}

#[test]
fn names_that_stand_for_no_file_or_for_one_twice_are_refused() {
    let good = &*site("b");
    for (main, files, expected) in [
        (
            "include = ['conf.d/*.toml', 'conf.d/a.toml']\n",
            &[("a.toml", good)][..],
            &["staunch.toml:1:29: include: conf.d/a.toml: this file is read already"][..],
        ),
        (
            "include = '*.toml'\n",
            &[],
            &["staunch.toml:1:11: include: staunch.toml: this file is read already"],
        ),
        (
            "\ninclude = 'none.toml'\n",
            &[],
            &["staunch.toml:2:11: include: none.toml: no such file or directory"],
        ),
        ("include = 'none/*.toml'\n", &[], &["staunch.toml:1:11: include: none: no such file or directory"]),
        (
            "include = '*/a.toml'\n",
            &[],
            &["include: */a.toml: a star may stand in the name of the file alone"],
        ),
        (
            "root = '.'\ninclude = 'conf.d/*'\n",
            &[("a.toml", good)],
            &["staunch.toml:1:1: `root` stands beside [[site]]"],
        ),
    ] {
        expect_faults(main, files, expected);
    }
}

/// A server that reads its settings again must neither wait for a pipe nor read a device to its end.
#[test]
fn what_is_no_file_of_some_size_is_refused() {
    let folder = folder(MAIN, &[("a.toml", &site("a"))]);
    let place = |name: &str| folder.tree.root().join("conf.d").join(name);
    folder.tree.fifo("conf.d/b.toml").expect("our own folder");
    symlink("/dev/zero", place("c.toml")).expect("our own folder");
    symlink("a.toml", place("d.toml")).expect("our own folder");
    symlink("../staunch.toml", place("e.toml")).expect("our own folder");
    fs::write(place("f.toml"), b"[[site]]\n# \xe4\n").expect("our own folder");
    write(&folder, "g.toml", &"#".repeat(4 * 1024 * 1024 + 1));
    let finished = folder.run(&["-t", "-c", "staunch.toml"]);
    assert_eq!(finished.status.code(), Some(78), "{}", finished.stderr);
    for words in [
        "staunch.toml:2:11: include: conf.d/b.toml: this is no file, but a pipe",
        "conf.d/c.toml: this is no file, but a device",
        "conf.d/d.toml: this is the file conf.d/a.toml, which is read already",
        "conf.d/e.toml: this is the file staunch.toml, which is read already",
        "conf.d/f.toml: line 2 is not UTF-8: save it as UTF-8",
        "conf.d/g.toml: it is longer than 4194304 bytes",
    ] {
        assert!(finished.stderr.contains(words), "{words} is not in {}", finished.stderr);
    }
}

#[test]
fn included_files_have_a_bound_together() {
    let folder = folder(MAIN, &[("a.toml", &site("a"))]);
    let comment = "#".repeat(4 * 1024 * 1024);
    ["b", "c", "d", "e"].iter().for_each(|name| write(&folder, &format!("{name}.toml"), &comment));
    let finished = folder.run(&["-t", "-c", "staunch.toml"]);
    let words = "conf.d/e.toml: with this one, included files have more than 16777216 bytes";
    assert!(finished.stderr.contains(words), "{}", finished.stderr);
}

/// Expects these faults of such files, of a test (`-t`) and of a start.
#[track_caller]
fn expect_faults(main: &str, files: &[(&str, &str)], expected: &[&str]) {
    let folder = folder(main, files);
    for arguments in [&["-t", "-c", "staunch.toml"][..], &["serve", "-c", "staunch.toml"]] {
        let finished = folder.run(arguments);
        assert_eq!(finished.status.code(), Some(78), "{files:?}: {}", finished.stderr);
        for words in expected {
            assert!(finished.stderr.contains(words), "{words} is not in {}", finished.stderr);
        }
    }
}

/// The site that answers for a host, by its field.
fn answering(server: &Server, host: &str) -> Option<String> {
    let mut link = SocketLink::connect(server.address()).expect("a connection");
    link.send(format!("GET /a.txt HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes());
    loop {
        if let Some((response, _)) = Response::read(link.received(), false).expect("a response") {
            return response.value("x-site");
        }
        assert!(link.fill(std::time::Duration::from_secs(120)), "no answer for {host}");
    }
}

#[test]
fn a_reload_sees_files_that_come_change_and_go() {
    let folder = folder(&(MAIN.to_owned() + &site("first")), &[]);
    let errors = folder.tree.root().with_file_name("errors");
    let server = Server::spawn(serve_by(&folder.settings()).arg("--error-log").arg(&errors));
    let server = server.unwrap_or_else(|said| panic!("{said}"));
    let process = Pid::from_raw(server.process_id() as i32).expect("a process");
    let reload = || kill_process(process, Signal::HUP).expect("a signal");
    assert_eq!(answering(&server, "b").as_deref(), Some("first"), "the only one");
    let text = format!("{}root = {:?}\n", site("b").replace("root = '.'\n", ""), folder.tree.root());
    write(&folder, "b.toml", &text);
    reload();
    until("the new site answers", || answering(&server, "b").as_deref() == Some("b"));
    write(&folder, "a.toml", "[[site]]\nrot = 1\n");
    reload();
    until("it says what is wrong", || {
        let said = fs::read_to_string(&errors).unwrap_or_default();
        said.contains("conf.d/a.toml:2:1: unknown key `rot`")
    });
    assert_eq!(answering(&server, "b").as_deref(), Some("b"), "all stays as it was");
    folder.tree.fifo("conf.d/pipe.toml").expect("our own folder");
    reload();
    until("it says that a pipe is no file", || {
        fs::read_to_string(&errors).unwrap_or_default().contains("conf.d/pipe.toml: this is no file")
    });
    fs::remove_file(folder.tree.root().join("conf.d/pipe.toml")).expect("our own file");
    for name in ["a.toml", "b.toml"] {
        fs::remove_file(folder.tree.root().join("conf.d").join(name)).expect("our own file");
    }
    reload();
    until("the site is gone", || answering(&server, "b").as_deref() == Some("first"));
}
