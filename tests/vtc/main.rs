//! Conversations between the clients and servers of varnishtest, with the program as shipped in the middle.
//!
//! A case is a file beside this one, in Varnish's language for tests (vtc): another author's client, another
//! author's server, HTTP/2 of a third reader. It must know nothing of the program but its command line. Each
//! case is a test of its own, on both engines. The proxy listens at a socket file in the folder of the case,
//! and varnishtest chooses the ports of its servers.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use staunch_tests::process::{binary, finish, is_installed};

/// The engines that each case runs on.
const ENGINES: [&str; 2] = ["uring", "epoll"];
/// How long a case may take, in seconds, as varnishtest is told.
const PATIENCE_S: &str = "120";

/// Every case, by the name of its file.
macro_rules! cases {
    ($($name:ident)*) => {
        const CASES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*
    };
}

cases! {
    ambiguous_answers ambiguous_requests asked_first chunked_request circle closed_at_rest codings
    cookies drained early_hints h2_connection h2_cookies h2_streams h2_upload hints_without_end
    hop_by_hop kept limit long_body methods not_repeated old_client one_is_away patience pipelined
    short_answer silent spoofed targets trusted tunnel tunnel_refused unasked until_the_end without_body
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vtc")
}

fn run(name: &str) {
    if !is_installed("varnishtest") {
        return;
    }
    for io in ENGINES {
        let mut command = Command::new("varnishtest");
        command.args(["-t", PATIENCE_S, "-D"]).arg(format!("staunch={}", binary().display()));
        command.args(["-D", &format!("io={io}")]).arg(folder().join(format!("{name}.vtc")));
        // The environment of this test sets nothing of the program.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let finished = finish(&mut command);
        assert!(finished.status.success(), "{name} by {io}:\n{}\n{}", finished.stdout, finished.stderr);
    }
}

#[test]
fn each_file_is_a_case() {
    let files = std::fs::read_dir(folder()).expect("the folder of this test");
    let names = files
        .map(|file| file.expect("an entry").path())
        .filter(|file| file.extension() == Some("vtc".as_ref()));
    let mut names: Vec<String> =
        names.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    let mut cases: Vec<&str> = CASES.to_vec();
    cases.sort_unstable();
    assert_eq!(names, cases);
}

/// A checker that finds nothing would pass everything.
#[test]
fn a_case_that_is_wrong_fails() {
    if !is_installed("varnishtest") {
        return;
    }
    let tree = staunch_tests::tree::Tree::with(&[]).expect("a folder");
    let file = tree.root().join("wrong.vtc");
    let text = std::fs::read_to_string(folder().join("kept.vtc")).expect("a case");
    std::fs::write(&file, text.replace("resp.status == 200", "resp.status == 201")).expect("a file");
    let mut command = Command::new("varnishtest");
    command.args(["-t", PATIENCE_S, "-D"]).arg(format!("staunch={}", binary().display()));
    let finished = finish(command.args(["-D", "io=epoll"]).arg(&file));
    assert!(!finished.status.success(), "{}", finished.stdout);
}
