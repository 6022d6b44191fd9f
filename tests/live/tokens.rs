//! Tokens from the operator's side: made and shown by the program, and why one is refused.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use staunch_tests::process::binary;
use staunch_tests::tree::Tree;

use crate::world::{Reply, World};

const SECRET: &str = "a-secret-of-an-issuer-of-32-bytes-or-more";
const OTHER: &str = "another-secret-of-32-bytes-or-more-of-nobody";

/// Runs `staunch token` with the words and standard input.
fn token(words: &[&str], input: &str) -> Output {
    let mut command = Command::new(binary());
    command.arg("token").args(words).env_remove("STAUNCH_CONFIG");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("our own program");
    // The program may end without reading.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("its end")
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn secret(folder: &Tree, name: &str, text: &str) -> String {
    let file = folder.root().join(name);
    std::fs::write(&file, format!("{text}\n")).expect("a file of ours");
    file.display().to_string()
}

fn publish(world: &World, token: &str, topic: &str) -> Reply {
    let lines = format!("Authorization: Bearer {token}\r\nContent-Type: text/plain\r\n");
    world.ask("PUT", &format!("/topics/{topic}"), &lines, b"1")
}

/// Whether the log comes to say a sentence once.
fn says(log: &Path, sentence: &str) -> bool {
    let start = std::time::Instant::now();
    while start.elapsed() < crate::world::PATIENCE {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if text.contains(sentence) {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    false
}

#[test]
fn a_token_that_is_made_is_taken_and_one_that_is_not_is_explained_to_the_operator_alone() {
    let folder = Tree::new().expect("a folder");
    let file = secret(&folder, "secret", SECRET);
    let log = folder.root().join("errors.log");
    let settings = format!(
        "error_log = \"{}\"\nlive_issuer = [{{ name = \"us\", audience = \"live\", \
         secret_file = \"{file}\" }}]",
        log.display()
    );
    let world = World::with_settings("epoll", &[], &settings);
    let of = world.settings_file().display().to_string();

    let ours = printed(&token(&["make", "--config", &of, "--publish", "scores", "--publish", "u.7.>"], ""));
    for (topic, status) in [("scores", 200), ("u.7.name", 200), ("u.8.name", 403)] {
        assert_eq!(publish(&world, &ours, topic).status, status, "{topic}");
    }
    let told = printed(&token(&["show", "--config", &of], &format!("Bearer {ours}\n")));
    for words in ["\"iss\": \"us\"", "holds until", ", in ", "taken: it grants publishing"] {
        assert!(told.contains(words), "{told}");
    }

    let by = secret(&folder, "other", OTHER);
    let whose = ["--secret-file", &by, "--issuer", "us", "--audience", "live"];
    let foreign = printed(&token(&[&["make", "--publish", "scores"][..], &whose].concat(), ""));
    let refused = token(&["show", "--config", &of], &foreign);
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(complaint.contains("refused: no key of an issuer has signed it"), "{complaint}");
    assert_eq!(refused.status.code(), Some(1));
    for _ in 0..2 {
        let answer = publish(&world, &foreign, "scores");
        let text = answer.text();
        assert!(answer.status == 401 && text.trim_end().ends_with("the token is not valid"), "{text}");
    }
    assert!(says(&log, "live data: a token was refused: no key of an issuer has signed it"), "{log:?}");
    let text = std::fs::read_to_string(&log).expect("the log");
    assert!(!text.contains(&foreign[foreign.len() - 20..]), "nothing of a token is logged");
}

#[test]
fn what_cannot_be_made_or_shown_is_said() {
    let folder = Tree::new().expect("a folder");
    let (file, short) = (secret(&folder, "secret", SECRET), secret(&folder, "short", "short"));
    let whose =
        |file: &str| ["--secret-file", file, "--issuer", "us", "--audience", "live"].map(str::to_owned);
    for (verb, file, input, complaint) in [
        (&["make"][..], &file, "", "name topics by --publish or --subscribe"),
        (&["make", "--publish", "$x"], &file, "", "a topic of --publish or --subscribe is none"),
        (&["make", "--publish", "a"], &short, "", "at least 32 bytes"),
        (&["show"], &file, "no token", "it cannot be shown"),
        (&["show"], &file, "", "it cannot be shown"),
        (&["show"], &file, "W10.W10.", "refused"),
    ] {
        let whose = whose(file);
        let words: Vec<&str> = verb.iter().copied().chain(whose.iter().map(String::as_str)).collect();
        let output = token(&words, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(complaint) && output.status.code() == Some(1), "{words:?} says {said}");
    }
}
