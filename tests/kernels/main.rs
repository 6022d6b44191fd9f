//! The server under the kernels of Debian 12 and 13 and under the newest one, in an emulated machine: what it
//! runs on there, and that connections end and leave nothing behind. Modules of `kernel/` are in `modules`.
//!
//! A script says what happened, line by line; here is what has to be so. `cargo xtask guest` makes the
//! machine.
#![forbid(unsafe_code)]

mod cache;
mod conversations;
mod creation;
mod dostp;
mod gate;
mod handover;
mod listings;
mod modules;
mod namespaces;
mod packaged;
mod pieces;
mod strain;
mod talk;
mod timers;
mod trace;

use std::process::Command;

use staunch_tests::process::{binary, is_installed};

/// The kernels that modules are built for by this Debian's compiler.
const SERIES_WITH_HEADERS: [&str; 2] = ["6.1", "6.12"];

/// Whether each test runs under every kernel it can, as `make soak` wants and says by STAUNCH_UNLOADS. In
/// `make test` each runs under one, which the test names: emulated machines are slow, and every kernel has
/// some of the tests.
fn is_in_depth() -> bool {
    std::env::var_os("STAUNCH_UNLOADS").is_some()
}

/// Every kernel that modules can be built for here: those, and the newest one where this user is root.
fn every_series() -> Vec<&'static str> {
    let mut series = SERIES_WITH_HEADERS.to_vec();
    if rustix::process::geteuid().is_root() {
        series.push("newest");
    } else {
        println!("skipped: modules for the newest kernel are built in a Debian 13, which needs root");
    }
    series
}

/// The kernels that a test of a module runs under: `usual` alone if that is there, or in depth all.
fn series_with_modules(usual: &'static str) -> Vec<&'static str> {
    let every = every_series();
    if is_in_depth() || !every.contains(&usual) { every } else { vec![usual] }
}

/// As [`series_with_modules`], in depth also under the kernel that looks for faults by KASAN and lockdep.
fn series_in_depth(usual: &'static str) -> Vec<&'static str> {
    if is_in_depth() { [every_series(), vec!["debug-6.1"]].concat() } else { vec![usual] }
}

/// As [`series_with_modules`] for what does not run under the newest kernel.
fn series_with_headers(usual: &'static str) -> Vec<&'static str> {
    if is_in_depth() { SERIES_WITH_HEADERS.to_vec() } else { vec![usual] }
}

/// Whether there is an emulator, and where kernels come from. Tells what is missing.
fn is_possible() -> bool {
    is_installed("qemu-system-x86_64") && is_installed("apt-get")
}

/// What the script says, under a kernel of this series. `None`, with a reason, where there is no emulator.
fn said_under(series: &str) -> Option<String> {
    if !is_possible() {
        return None;
    }
    let (staunch, xtask) = (binary(), binary().with_file_name("xtask"));
    assert!(xtask.exists(), "{} is missing: cargo build --workspace makes it", xtask.display());
    let output = Command::new(xtask)
        .args(["guest", "--kernel", series, "--seconds", "1800"])
        .arg("--program")
        .arg(&staunch)
        .arg("--program")
        .arg(staunch.with_file_name("staunch-load"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/closing.sh"))
        .output()
        .expect("xtask runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(said)
}

/// Four hundred are answered and end while one is idle; gives what was said of the engine, and how the server
/// ended that was to run on io_uring.
fn closes_while_one_is_idle(series: &str) -> Option<(String, String)> {
    let said = said_under(series)?;
    let value = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name:?} in\n{said}")).trim().to_owned()
    };
    assert_eq!(value("answered:"), "400", "{said}");
    let sockets: u32 = value("sockets left:").parse().expect("a number");
    assert!(sockets < 20, "{said}");
    assert_eq!(value("server:"), "lives", "{said}");
    Some((value("  engine"), value("asked for by name:")))
}

/// Before Linux 6.13 io_uring closes a connection only when older ones have ended: one idle visitor kept all
/// others waiting for the end of their answers, and kept their sockets; under 6.1 it also gave a place away
/// before it said that it was free, and the server ended.
fn falls_back_to_epoll(series: &str) {
    let Some((engine, ended)) = closes_while_one_is_idle(series) else { return };
    assert!(engine.starts_with("epoll (io_uring: ") && engine.contains("at once"), "{engine}");
    assert_eq!(ended, "78");
}

#[test]
fn linux_6_12() {
    falls_back_to_epoll("6.12");
}

/// For `make soak`: second kernels. The host of a landing is itself one under which io_uring is whole.
mod in_depth {
    use super::*;

    #[test]
    fn linux_6_1() {
        falls_back_to_epoll("6.1");
    }

    #[test]
    fn the_newest_linux() {
        let Some((engine, ended)) = closes_while_one_is_idle("newest") else { return };
        assert!(engine.starts_with("io_uring (every operation"), "{engine}");
        assert_eq!(ended, "0");
    }
}
