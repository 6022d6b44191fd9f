//! The command line of the laboratory: the list, and what is said to those who call it wrongly.

use std::net::TcpListener;
use std::process::Command;

use staunch_lab::MODELS;
use staunch_tests::process::{Finished, binary, finish};

fn run(arguments: &[&str]) -> Finished {
    finish(Command::new(binary()).arg("lab").args(arguments))
}

#[test]
fn the_list_has_every_model() {
    let names = run(&["list", "--names"]).stdout;
    let expected: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
    assert_eq!(names.lines().collect::<Vec<_>>(), expected);
    let list = run(&["list"]).stdout;
    for model in MODELS {
        assert!(list.contains(&format!("{}: {}", model.name, model.title)), "{}", model.name);
        assert!(list.contains(model.lesson), "{}", model.name);
    }
    assert!(list.lines().all(|line| line.chars().count() <= 120), "{list}");
    let one = run(&["list", "poll"]).stdout;
    assert!(one.starts_with("poll: ") && !one.contains("epoll-edge: "), "{one}");
}

/// The number of lines that a reader is promised.
#[test]
fn a_model_is_read_in_five_minutes() {
    let folder = sources();
    for model in MODELS {
        let path = folder.join(format!("{}.rs", model.name.replace('-', "_")));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let lines = text.lines().count();
        // The engine's own rows only say what is answered.
        let least = if model.speaks_paper { 80 } else { 50 };
        assert!((least..=170).contains(&lines), "{}: {lines} lines", path.display());
    }
}

fn sources() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates").join("lab/src/models")
}

#[test]
fn wrong_calls_name_the_fault() {
    let table = [
        (&["serve"][..], 2, "MODEL"),
        (&["serve", "prefrok"], 2, "prefork"),
        (&["serve", "poll", "--pool", "0"], 2, "--pool"),
        (&["serve", "poll", "--backlog", "0"], 2, "--backlog"),
        (&["serve", "poll", "--work", "3 parsecs"], 2, "300us"),
        (&["serve", "poll", "--cpus", "4095"], 1, "processor 4095"),
        (&["serve", "poll", "--address", "192.0.2.1"], 1, "192.0.2.1"),
        (&["list", "apache"], 2, "apache"),
    ];
    for (arguments, code, word) in table {
        let finished = run(arguments);
        assert_eq!(finished.status.code(), Some(code), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(word), "{arguments:?}: {}", finished.stderr);
    }
}

/// Every model says so if its port is taken.
#[test]
fn a_port_that_is_taken_is_said() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    for model in MODELS {
        let finished = run(&["serve", model.name, "--port", &port]);
        assert_eq!(finished.status.code(), Some(1), "{}", model.name);
        let said = finished.stderr;
        assert!(said.contains(model.name) && said.lines().count() == 1, "{}: {said}", model.name);
    }
}
