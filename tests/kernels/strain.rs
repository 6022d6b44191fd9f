//! Modules under strain: peers of every manner, and unloading under them. The program `kernel-strain` does it
//! inside the machine.

use crate::guest::{Guest, program, said};
use crate::parts::{KECHO, KHTTPD, NOTED, STRAINING, Strained};
use crate::shared::MODULES;
use crate::{USUAL_SERIES, is_possible, series_in_depth};

/// The output for a module's modes, each of which has left nothing behind.
fn under_strain(strained: &Strained) -> Vec<String> {
    if !is_possible() {
        return Vec::new();
    }
    let strain = |series: &'static str| {
        let said = MODULES.said(series, &strained.part(), &STRAINING);
        for mode in strained.modes() {
            said.has(&format!("{} {mode}: left behind: nothing", strained.module));
        }
        said.out
    };
    series_in_depth(USUAL_SERIES).into_iter().map(strain).collect()
}

#[test]
fn kecho_under_strain() {
    for said in under_strain(&KECHO) {
        // A processor's own workers are fewer than the connections, and each of those keeps one.
        let waited = said.lines().find(|line| line.starts_with("kecho wq-percpu: crowd: "));
        assert!(waited.is_some_and(|line| !line.contains(" 0 of them had to wait")), "{said}");
    }
}

#[test]
fn khttpd_under_strain() {
    under_strain(&KHTTPD);
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
            for (strained, (module, functions)) in [KECHO, KHTTPD].into_iter().zip(FAILED) {
                let modes = strained.modes();
                let guest =
                    Guest { series, modules: &[module, "scarce"], programs: &programs, words: &NOTED };
                let output = guest.run(&strained.call("--scarce"));
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
