//! The heap and the wheel that deadlines of the modules are kept in, beside a plain array, with sanitizers.

use std::path::Path;
use std::process::Command;

use crate::driver;

/// Steps of a run, and runs, each from a seed of its own.
const STEPS: &str = "5000";
const SEEDS: u32 = 8;

#[test]
fn what_is_due_comes_out_and_nothing_else() {
    if driver::start().is_none() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deadlines");
    let output = Command::new("cc")
        .args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I"])
        .arg(root.join("kernel/include"))
        .arg(root.join("tests/khttpd/deadlines.c"))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("cc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for seed in 1..=SEEDS {
        let output = Command::new(&program).args([&seed.to_string(), STEPS]).output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "seed {seed}: {}", String::from_utf8_lossy(&said));
    }
}
