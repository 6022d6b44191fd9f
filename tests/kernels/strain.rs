//! Modules under strain: peers of every manner, and unloading under them. The program `kernel-strain` does it
//! inside the machine.

use std::path::PathBuf;

use crate::modules::{Guest, program, said};
use crate::{SERIES_WITH_HEADERS, is_possible};

/// Modules with their modes.
const KECHO: (&str, &[&str]) = ("kecho", &["kthread", "wq-percpu", "wq-unbound", "ready", "softirq"]);
const KHTTPD: (&str, &[&str]) = ("khttpd", &["kthread", "wq", "ready", "softirq"]);

/// How often a module is unloaded under load; `make soak` asks for more.
fn rounds() -> String {
    std::env::var("STAUNCH_UNLOADS").unwrap_or_else(|_| "4".to_owned())
}

/// Runs the program for a module with these words; what it said.
fn strain(series: &str, (module, modes): (&str, &[&str]), words: &str) -> String {
    let programs: [PathBuf; 1] = [program("kernel-strain")];
    let guest = Guest { series, modules: &[module], programs: &programs, words: &["--processors", "2"] };
    let output = guest.run(&format!("exec kernel-strain {words} {module} {}", modes.join(" ")));
    let (out, error) = said(&output);
    assert!(output.status.success(), "{series}: {out}{error}");
    for mode in modes {
        let last = format!("{module} {mode}: left behind: nothing");
        assert!(out.lines().any(|line| line == last), "{series}: {out}{error}");
    }
    out
}

fn under_strain(server: (&str, &[&str])) -> Vec<String> {
    if !is_possible() {
        return Vec::new();
    }
    let words = format!("--rounds {}", rounds());
    SERIES_WITH_HEADERS.into_iter().map(|series| strain(series, server, &words)).collect()
}

#[test]
fn kecho_under_strain() {
    for said in under_strain(KECHO) {
        // A processor's own workers are fewer than the connections, and each of those keeps one.
        let waited = said.lines().find(|line| line.starts_with("kecho wq-percpu: crowd: "));
        assert!(waited.is_some_and(|line| !line.contains(" 0 of them had to wait")), "{said}");
    }
}

#[test]
fn khttpd_under_strain() {
    under_strain(KHTTPD);
}

/// The canary of what is counted: memory that a module forgets is found once it is gone.
#[test]
fn what_a_module_forgets_is_found() {
    if !is_possible() {
        return;
    }
    let programs = [program("kernel-strain")];
    let guest = Guest { series: "6.1", modules: &["hello"], programs: &programs, words: &[] };
    let script = "kernel-strain --leaks hello || exit 2
        insmod /modules/hello.ko fault=none; rmmod hello; kernel-strain --leaks hello || exit 3
        insmod /modules/hello.ko fault=forget; rmmod hello; kernel-strain --leaks hello && exit 4
        exit 0";
    let output = guest.run(script);
    let (out, error) = said(&output);
    assert!(output.status.success() && out.contains("left behind"), "{out}{error}");
}
