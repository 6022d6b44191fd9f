//! Modules of `kernel/` in an emulated machine that ends at the first warning of its kernel.

use std::path::PathBuf;
use std::process::{Command, Output};

use std::sync::atomic::{AtomicU32, Ordering};

use crate::{SERIES_WITH_HEADERS, is_possible};
use staunch_tests::process::binary;

/// Scripts so far, for their names.
static SCRIPTS: AtomicU32 = AtomicU32::new(0);

/// A script in a machine with a module.
fn run(series: &str, module: &str, script: &str) -> Output {
    run_with(series, module, script, &[binary()])
}

/// A script in a machine with a module and these programs.
fn run_with(series: &str, module: &str, script: &str, programs: &[PathBuf]) -> Output {
    let xtask = binary().with_file_name("xtask");
    assert!(xtask.exists(), "{} is missing: cargo build --workspace makes it", xtask.display());
    let number = SCRIPTS.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("staunch-{}-{number}.sh", std::process::id()));
    std::fs::write(&path, script).expect("a script");
    let mut guest = Command::new(xtask);
    guest.args(["guest", "--kernel", series, "--seconds", "1800", "--module", module]);
    for program in programs {
        guest.arg("--program").arg(program);
    }
    let output = guest.arg(&path).output().expect("xtask runs");
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
fn kecho_serves_in_five_ways_and_unloads_with_a_connection() {
    if !is_possible() {
        return;
    }
    for series in SERIES_WITH_HEADERS {
        let output = run(series, "kecho", include_str!("kecho.sh"));
        let (out, error) = said(&output);
        assert!(output.status.success(), "{series}: {out}{error}");
        let echoed = out.lines().filter(|line| line.contains("h   e   l   l   o  \\0   w")).count();
        assert_eq!(echoed, 5, "{series}: {out}{error}");
        for mode in ["kthread", "wq-percpu", "wq-unbound", "ready", "softirq"] {
            assert!(out.contains(&format!("{mode} unloaded")), "{series}: {out}{error}");
        }
        let fault = "told: mode=fast: kthread, wq-percpu, wq-unbound, ready or softirq";
        assert!(out.lines().any(|line| line == fault), "{series}: {out}{error}");
    }
}

/// So many conversations khttpd holds; the others need encodings, rules or hosts, which it has not. It may
/// not fall.
const HELD_MIN: usize = 288;

#[test]
fn conversations_are_held_with_khttpd() {
    if !is_possible() {
        return;
    }
    let bundle = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("conversations");
    std::fs::write(&bundle, staunch_tests::suite::bundle(&staunch_tests::suite::wire_folder()))
        .expect("a file");
    let player = binary().with_file_name("kernel-wire");
    assert!(player.exists(), "{} is missing: cargo build --workspace makes it", player.display());
    let output = run_with("6.1", "khttpd", "kernel-wire ready /bin/conversations", &[player, bundle]);
    let (out, error) = said(&output);
    assert!(output.status.success(), "{out}{error}");
    let held = out.lines().find_map(|line| line.strip_prefix("held ")?.split(' ').next()?.parse().ok());
    println!("{}", out.lines().last().unwrap_or_default());
    assert!(held.is_some_and(|held: usize| held >= HELD_MIN), "{out}{error}");
}
