//! What the program tells about its settings, and that it serves by them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use staunch_tests::process::{Server, finish, is_installed};

use crate::Folder;

#[test]
fn the_highest_layer_serves() {
    let folder = Folder::with("listen = '127.0.0.1:0'\nworkers = 1\nroot = 'no/such'\nkeep_alive = '5s'\n");
    let mut command = folder.staunch(&["serve", "-c", "staunch.toml", "--workers", "2", "."]);
    command.env("STAUNCH_WORKERS", "3").env("STAUNCH_STATUS", "/status.json");
    let server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
    assert!(get(&server, "/a.txt").ends_with("hello, world\n"));
    assert!(get(&server, "/status.json").starts_with("HTTP/1.1 200"));
}

fn get(server: &Server, path: &str) -> String {
    let mut peer = TcpStream::connect(server.address()).expect("a server");
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    peer.write_all(request.as_bytes()).expect("a peer that reads");
    let mut answer = String::new();
    peer.read_to_string(&mut answer).expect("an answer of text");
    answer
}

#[test]
fn each_value_is_shown_with_its_origin() {
    let folder = Folder::with("workers = 1\nkeep_alive = '5s'\nbody_timeout = '6s'\nroot = 'x'\n");
    let mut command =
        folder.staunch(&["config", "show", "-c", "staunch.toml", "--workers", "2", "--no-cache"]);
    command.env("STAUNCH_KEEP_ALIVE", "7s").env("STAUNCH_WORKERS", "3").env("STAUNCH_CACHE_SIZE", "");
    let finished = finish(&mut command);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let lines: Vec<Vec<&str>> =
        finished.stdout.lines().map(|line| line.split("  # ").map(str::trim).collect()).collect();
    for expected in [
        ["workers = 2", "--workers"],
        ["keep_alive = \"7s\"", "STAUNCH_KEEP_ALIVE"],
        ["body_timeout = \"6s\"", "file staunch.toml:3"],
        ["root = \"x\"", "file staunch.toml:4"],
        ["no_cache = true", "--no-cache"],
        ["cache_size = \"256MiB\"", "default"],
    ] {
        assert!(lines.iter().any(|line| *line == expected), "{expected:?} is not in\n{}", finished.stdout);
    }
}

#[test]
fn the_file_may_be_named_by_a_variable() {
    let folder = Folder::with("workers = 1\nroot = '.'\n");
    let finished = finish(folder.staunch(&["config", "show"]).env("STAUNCH_CONFIG", "staunch.toml"));
    assert!(finished.stdout.contains("# file staunch.toml:1"), "{}{}", finished.stdout, finished.stderr);
}

#[test]
fn what_is_shown_is_a_file_and_hides_secrets() {
    let hash = "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW";
    let site =
        "[[site]]\nroot = '.'\nhosts = ['a']\n[[site.path]]\nmatch = '/*'\ncache_control = 'no-store'\n";
    let folder = Folder::with(site);
    let first = folder.run(&["config", "show", "-c", "staunch.toml"]).stdout;
    std::fs::write(folder.settings(), &first).expect("our own folder");
    let second = folder.run(&["config", "show", "-c", "staunch.toml"]).stdout;
    let values = |shown: &str| -> Vec<String> {
        shown.lines().map(|line| line.split("  # ").next().unwrap_or("").trim().to_owned()).collect()
    };
    assert!(first.contains("cache_control = \"no-store\""), "{first}");
    assert_eq!(values(&first), values(&second));

    let folder = Folder::with(&format!(
        "root = '.'\n[[path]]\nmatch = '*'\nbasic_auth = {{ users = {{ anna = '{hash}' }} }}"
    ));
    for arguments in
        [&["config", "show", "-c", "staunch.toml"][..], &["config", "show", "-c", "staunch.toml", "--json"]]
    {
        let finished = folder.run(arguments);
        assert!(
            finished.stdout.contains("anna") && finished.stdout.contains("\"***\""),
            "{}",
            finished.stdout
        );
        assert!(!finished.stdout.contains("$2b$"), "{}", finished.stdout);
    }
}

#[test]
fn json_has_the_shape_of_the_file() {
    let folder = Folder::with(
        "workers = 2\n[[site]]\nroot = '.'\nhosts = ['a']\n[[site.path]]\nmatch = '/x'\ndeny = true\n",
    );
    let finished = folder.run(&["config", "show", "-c", "staunch.toml", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(shown["workers"]["value"], 2);
    assert_eq!(shown["workers"]["origin"], "file staunch.toml:1");
    assert_eq!(shown["site"][0]["hosts"]["value"], serde_json::json!(["a"]));
    assert_eq!(shown["site"][0]["path"][0]["deny"]["value"], true);
}

#[test]
fn the_page_of_all_keys_is_the_committed_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let folder = Folder::with("");
    let page = std::fs::read_to_string(path).expect("the page");
    assert!(folder.run(&["config", "reference"]).stdout == page, "docs/configuration.md is old");
}

#[test]
fn the_example_is_a_file_that_passes() {
    let folder = Folder::with("");
    let example = folder.run(&["config", "example"]);
    assert_eq!(example.status.code(), Some(0), "{}", example.stderr);
    std::fs::write(folder.settings(), &example.stdout).expect("our own folder");
    let tested = folder.run(&["-t", "-c", "staunch.toml"]);
    assert_eq!(tested.status.code(), Some(0), "{}", tested.stderr);
    let help = folder.run(&["config", "--help"]).stdout;
    for command in ["show", "example", "reference"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(command)), "{command}: {help}");
    }
}

#[test]
fn completions_are_what_the_shells_take() {
    let folder = Folder::with("");
    for shell in ["bash", "zsh", "fish"] {
        let finished = folder.run(&["completions", shell]);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        assert!(finished.stdout.contains("keep-alive"), "{shell} knows no --keep-alive");
        if shell != "bash" && !is_installed(shell) {
            continue;
        }
        let script = folder.tree.root().join(shell);
        std::fs::write(&script, &finished.stdout).expect("our own folder");
        let checked = finish(Command::new(shell).arg("-n").arg(&script));
        assert!(checked.status.success(), "{shell}: {}", checked.stderr);
    }
    let refused = folder.run(&["completions", "tcsh"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("bash, zsh or fish"), "{}", refused.stderr);
}

#[test]
fn manual_pages_are_whole() {
    let folder = Folder::with("");
    let finished = folder.run(&["man", "pages"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let page = |name: &str| {
        let path = folder.tree.root().join("pages").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    for (name, words) in [
        ("staunch.1", &["EXIT STATUS", "SEE ALSO", "staunch\\-serve"][..]),
        ("staunch-serve.1", &["keep\\-alive", "STAUNCH_CONFIG", "78", "SEE ALSO"]),
        ("staunch-load.1", &["SEE ALSO"]),
        ("staunch-config-show.1", &["\\-\\-json"]),
        ("staunch.toml.5", &["keep_alive = TIME", "SS Pressure", "response_work", "SEE ALSO"]),
    ] {
        let text = page(name);
        words.iter().for_each(|word| assert!(text.contains(word), "`{word}` is not in {name}"));
    }
    for name in ["staunch-config-reference.1", "staunch-config-example.1"] {
        assert!(folder.tree.root().join("pages").join(name).exists(), "{name}");
    }
    if is_installed("groff") {
        for name in ["staunch.1", "staunch-serve.1", "staunch.toml.5"] {
            let path = folder.tree.root().join("pages").join(name);
            let checked = finish(Command::new("groff").args(["-man", "-ww", "-z", "-Tutf8"]).arg(&path));
            assert!(checked.status.success() && checked.stderr.is_empty(), "{name}: {}", checked.stderr);
        }
    }
}
