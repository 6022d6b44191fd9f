//! Modules under strain: peers of every manner, and unloading under them. The program `kernel-strain` does it
//! inside the machine.

use std::path::PathBuf;

use crate::modules::{Guest, program, said};
use crate::{is_in_depth, is_possible, series_in_depth};

/// Modules with their modes; behind a mode, further parameters.
const KECHO: (&str, &[&str]) = ("kecho", &["kthread", "wq-percpu", "wq-unbound", "ready", "softirq"]);
const KHTTPD: (&str, &[&str]) = ("khttpd", &["kthread", "wq", "ready", "softirq", "ready hand_over="]);

/// The modes that `make test` strains: where the network's own interrupts serve, where a worker is kept by
/// each connection, and where connections are handed over. `make soak` has all.
const STRAINED: [&str; 3] = ["softirq", "wq-percpu", "ready hand_over="];

/// All modes of a module in depth, else those.
fn strained(modes: &'static [&'static str]) -> Vec<&'static str> {
    modes.iter().copied().filter(|mode| is_in_depth() || STRAINED.contains(mode)).collect()
}

/// The kernel notes who allocated each object, by which `kernel-strain` finds those of a module.
const NOTED: [&str; 2] = ["--words", "slub_debug=FZPU slab_debug=FZPU"];

/// How often a module is unloaded under load: `make soak` asks for more.
fn rounds() -> String {
    std::env::var("STAUNCH_UNLOADS").unwrap_or_else(|_| "2".to_owned())
}

/// Modes as words for the shell.
fn quoted(modes: &[&str]) -> String {
    modes.iter().map(|mode| format!("'{mode}' ")).collect()
}

/// Runs the program for a module with these words; what it said.
fn strain(series: &str, module: &str, modes: &[&str], words: &str) -> String {
    let programs: [PathBuf; 1] = [program("kernel-strain")];
    let machine = [NOTED, ["--processors", "2"]].concat();
    let guest = Guest { series, modules: &[module], programs: &programs, words: &machine };
    let output = guest.run(&format!("exec kernel-strain {words} {module} {}", quoted(modes)));
    let (out, error) = said(&output);
    assert!(output.status.success(), "{series}: {out}{error}");
    for mode in modes {
        let last = format!("{module} {mode}: left behind: nothing");
        assert!(out.lines().any(|line| line == last), "{series}: {out}{error}");
    }
    out
}

fn under_strain(usual: &'static str, (module, modes): (&str, &'static [&'static str])) -> Vec<String> {
    if !is_possible() {
        return Vec::new();
    }
    let words = format!("--rounds {}", rounds());
    let modes = strained(modes);
    series_in_depth(usual).into_iter().map(|series| strain(series, module, &modes, &words)).collect()
}

#[test]
fn kecho_under_strain() {
    for said in under_strain("6.1", KECHO) {
        // A processor's own workers are fewer than the connections, and each of those keeps one.
        let waited = said.lines().find(|line| line.starts_with("kecho wq-percpu: crowd: "));
        assert!(waited.is_some_and(|line| !line.contains(" 0 of them had to wait")), "{said}");
    }
}

#[test]
fn khttpd_under_strain() {
    under_strain("6.12", KHTTPD);
}

/// Functions whose calls must have failed, for the test to have tried anything; those that give memory itself
/// have other names in each kernel.
const FAILED: [(&str, &[&str]); 2] = [
    ("kecho", &["alloc_workqueue", "sock_create", "kernel_bind", "kernel_listen", "kernel_accept"]),
    (
        "khttpd",
        &[
            "misc_register",
            "prepare_kernel_cred",
            "kern_path",
            "sock_create_kern",
            "register_pernet_device",
            "proc_create_net_single_write",
            "kernel_accept",
            "kernel_sendmsg",
            "tcp_sendmsg_locked",
            "vfs_path_lookup",
            "vfs_getattr",
            "dentry_open",
            "kernel_read",
            "iterate_dir",
        ],
    ),
];

/// For `make soak`: a machine for each module in which every call for memory fails in its turn, a hundred and
/// more.
mod in_depth {
    use super::*;

    /// Each call for memory fails once, at load and while it serves: a load fails cleanly, a peer hears an
    /// answer, the beginning of it or a refusal, and nothing is left behind.
    #[test]
    fn every_call_for_memory_may_fail() {
        if !is_possible() {
            return;
        }
        let programs = [program("kernel-strain")];
        for series in series_in_depth("6.12") {
            for ((module, modes), (_, functions)) in [KECHO, KHTTPD].into_iter().zip(FAILED) {
                let guest =
                    Guest { series, modules: &[module, "scarce"], programs: &programs, words: &NOTED };
                let output = guest.run(&format!("exec kernel-strain --scarce {module} {}", quoted(modes)));
                let (out, error) = said(&output);
                assert!(output.status.success(), "{series}: {out}{error}");
                println!("{series}\n{out}");
                // Calls come in another order now and then, so one mode alone may miss one.
                let tried = out.lines().filter(|line| line.contains(": calls that fail: "));
                assert_eq!(tried.clone().count(), modes.len(), "{series}: {out}{error}");
                let words: Vec<&str> = tried.flat_map(|line| line.split(' ')).collect();
                let missing: Vec<_> = functions.iter().filter(|name| !words.contains(name)).collect();
                assert!(missing.is_empty(), "{series} {module}: never failed: {missing:?} in {out}");
            }
        }
    }

    /// The canary of what is counted: memory that a module forgets is found once it is gone, and not where
    /// the call for it was made to fail.
    #[test]
    fn what_a_module_forgets_is_found() {
        if !is_possible() {
            return;
        }
        let programs = [program("kernel-strain")];
        let guest =
            Guest { series: "6.1", modules: &["hello", "scarce"], programs: &programs, words: &NOTED };
        let script = "kernel-strain --leaks hello || exit 2
            insmod /modules/hello.ko fault=none; rmmod hello; kernel-strain --leaks hello || exit 3
            insmod /modules/scarce.ko target=hello; echo 3 > /sys/module/scarce/parameters/fail
            insmod /modules/hello.ko fault=forget; rmmod hello; kernel-strain --leaks hello || exit 4
            cat /sys/module/scarce/parameters/counts; rmmod scarce
            insmod /modules/hello.ko fault=forget; rmmod hello; kernel-strain --leaks hello && exit 5
            exit 0";
        let output = guest.run(script);
        let (out, error) = said(&output);
        assert!(output.status.success() && out.contains("left behind"), "{out}{error}");
        // What it forgets was its third call, which failed before.
        assert!(out.contains("calls 3\nfailed kmalloc_trace"), "{out}{error}");
    }
}
