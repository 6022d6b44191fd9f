//! `staunch load`, `model` and `lab` are another program beside `staunch`: how it is started, and what is
//! said where it is missing.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use staunch_tests::process::{Finished, binary, finish, write_program};

/// A folder with `staunch` in it and whatever stands beside it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let copied = Command::new("cp").arg(binary()).arg(folder.join("staunch")).status().expect("cp");
        assert!(copied.success());
        Self(folder)
    }

    fn with(self, script: &str, mode: u32) -> Self {
        write_program(&self.0.join("staunch-load"), script.as_bytes(), mode);
        self
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.0.join("staunch"));
        command.args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Finished {
        finish(&mut self.command(words))
    }
}

#[test]
fn where_the_instruments_are_missing_it_is_said_which_file_is_expected_where() {
    let alone = Folder::new("alone");
    let expected = format!("{}/staunch-load is missing", alone.0.display());
    for words in [&["load", "http://127.0.0.1/"][..], &["model", "--help"], &["help", "lab"], &["lab"]] {
        let finished = alone.run(words);
        assert_eq!(finished.status.code(), Some(127), "{words:?}: {}", finished.stderr);
        assert!(finished.stderr.starts_with(&format!("staunch: {expected}")), "{}", finished.stderr);
        assert!(finished.stderr.contains("-p staunch-instruments"), "{}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    }
    let completions = alone.run(&["completions", "bash"]);
    assert_eq!(completions.status.code(), Some(0));
    assert!(completions.stderr.contains(&expected), "{}", completions.stderr);
    assert!(completions.stdout.contains("staunch,serve"), "{}", completions.stdout);
    assert_eq!(alone.run(&["serve", "--help"]).stderr, "");
}

#[test]
fn what_cannot_be_started_or_tells_no_outline_is_named() {
    let folder = Folder::new("no-program").with("no program", 0o644);
    for words in [&["load", "--help"][..], &["completions", "zsh"]] {
        let finished = folder.run(words);
        assert_eq!(finished.status.code(), Some(126), "{}", finished.stderr);
        assert!(finished.stderr.contains("staunch-load cannot be started: "), "{}", finished.stderr);
    }
    let folder = Folder::new("no-outline").with("#!/bin/sh\necho of another kind\n", 0o755);
    let finished = folder.run(&["man"]);
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("staunch-load tells no outline"), "{}", finished.stderr);
}

#[test]
fn the_instruments_get_every_word_and_the_process_is_theirs() {
    let folder = Folder::new("words").with("#!/bin/sh\necho $$\nprintf '%s\\n' \"$@\"\nexit 7\n", 0o755);
    let words = ["lab", "--help", "-h", "--", "a b", "", "--version", "--", "é"];
    let child = folder.command(&words).stdout(Stdio::piped()).spawn().expect("a process");
    let process = child.id();
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(7));
    let said = String::from_utf8(output.stdout).expect("text");
    assert_eq!(said, format!("{process}\n{}\n", words.join("\n")));
}

#[test]
fn help_shows_the_name_that_was_typed() {
    for words in [&["lab", "list", "--help"][..], &["help", "load"], &["model", "fit", "--help"]] {
        let finished = finish(Command::new(binary()).args(words));
        assert!(finished.stdout.contains("Usage: staunch "), "{words:?}: {}", finished.stdout);
        assert!(!finished.stdout.contains("staunch-load"), "{words:?}: {}", finished.stdout);
    }
    let finished = finish(Command::new(binary()).args(["load", "--no-such-flag"]));
    assert_eq!(finished.status.code(), Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains("staunch load"), "{}", finished.stderr);
}
