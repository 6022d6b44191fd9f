//! Modules of `kernel/` in an emulated machine that ends at the first warning of its kernel.

use std::process::{Command, Output};

use crate::{SERIES_WITH_HEADERS, is_possible};
use staunch_tests::process::binary;

/// A script in a machine with a module.
fn run(series: &str, module: &str, script: &str) -> Output {
    let xtask = binary().with_file_name("xtask");
    assert!(xtask.exists(), "{} is missing: cargo build --workspace makes it", xtask.display());
    let path = std::env::temp_dir().join(format!("staunch-{}-{series}-{module}.sh", std::process::id()));
    std::fs::write(&path, script).expect("a script");
    let mut guest = Command::new(xtask);
    guest.args(["guest", "--kernel", series, "--seconds", "900", "--module", module, "--program"]);
    let output = guest.arg(binary()).arg(&path).output().expect("xtask runs");
    std::fs::remove_file(&path).expect("the script is there");
    output
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_module_is_built_loaded_and_unloaded() {
    if !is_possible() {
        return;
    }
    for series in SERIES_WITH_HEADERS {
        let output = run(series, "hello:fault=none", "lsmod; rmmod hello && echo unloaded");
        let (out, error) = said(&output);
        assert!(output.status.success() && out.contains("hello") && out.contains("unloaded"), "{out}{error}");
    }
}

/// Canaries: a module that leaks and one that sleeps where it must not end the machine, and the console says
/// which of the two it was.
#[test]
fn a_machine_ends_at_a_modules_fault() {
    if !is_possible() {
        return;
    }
    for (fault, word) in [("leak", "Slab cache still has objects"), ("sleep", "scheduling while atomic")] {
        let script = format!("insmod /modules/hello.ko fault={fault}; sleep 1; rmmod hello; echo survived");
        let output = run("6.1", "hello", &script);
        let (out, error) = said(&output);
        assert!(!output.status.success() && !out.contains("survived"), "{fault}: {out}{error}");
        assert!(error.contains(word) && error.contains("Kernel panic"), "{fault}: {error}");
    }
}

#[test]
fn kecho_serves_in_five_ways_and_unloads_under_load() {
    if !is_possible() {
        return;
    }
    for series in SERIES_WITH_HEADERS {
        let output = run(series, "kecho", include_str!("kecho.sh"));
        let (out, error) = said(&output);
        assert!(output.status.success(), "{series}: {out}{error}");
        for mode in ["kthread", "wq-percpu", "wq-unbound", "ready", "softirq"] {
            assert!(out.contains(&format!("{mode}: echoed, unloaded under load")), "{series}: {out}{error}");
        }
        for line in [
            "answered: 800 200",
            "paper: 12",
            "257th of wq-percpu: 0 bytes",
            "third of two: 0 bytes",
            "refused 1",
            "expired 1",
            "told: mode=fast: kthread, wq-percpu, wq-unbound, ready or softirq",
            "told: speaks=latin: echo or lab",
            "told: idle_s=0: 1 to 86400",
            "told: port=12345: cannot listen (error -98)",
        ] {
            assert!(out.lines().any(|said| said == line), "{series}: no {line:?} in\n{out}{error}");
        }
    }
}
