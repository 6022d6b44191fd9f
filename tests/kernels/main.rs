//! The server (`closing`) and the modules of `kernel/` under the kernels of Debian 12 and 13 and under the
//! newest one, in emulated machines.
//!
//! A script says what happened, line by line; here is what has to be so. `cargo xtask guest` makes the
//! machine.
#![forbid(unsafe_code)]

mod cache;
mod closing;
mod conversations;
mod creation;
mod dostp;
mod dostp_guest;
mod gate;
mod guest;
mod handover;
mod listings;
mod modules;
mod namespaces;
mod packaged;
mod parts;
mod pieces;
mod shared;
mod strain;
mod talk;
mod timers;
mod trace;

use staunch_tests::process::is_installed;

/// The kernels that modules are built for by this Debian's compiler.
const SERIES_WITH_HEADERS: [&str; 2] = ["6.1", "6.12"];
/// The one of them that `make test` has: most of the time there goes into building modules for a kernel, and
/// before its tests into fetching it. `make soak` has all.
const USUAL_SERIES: &str = "6.12";

/// Whether each test runs under every kernel it can, as `make soak` wants and says by STAUNCH_UNLOADS. In
/// `make test` each runs under one, in a machine that tests share: emulated machines are slow.
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
