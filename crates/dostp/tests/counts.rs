//! Instructions of the hot paths, counted by callgrind: a count that grows is a change for the worse.
//!
//! The counts are those of the profile the tests are built with. Where valgrind or the program is missing,
//! the test says so and skips; with CI=true it fails.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What is counted, and its bound: a tenth above what was counted when it was set (92, 62, 590, 8239). A
/// message of twelve fragments copies 17 808 bytes, which are 2 234 instructions of those.
const BOUNDS: [(&str, u64); 4] = [("decode", 101), ("encode", 68), ("node", 649), ("reassembly", 9_062)];

/// The example `counted`, which stands beside the folder of this test.
fn counted() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().and_then(Path::parent).ok_or("this test stands in no folder")?;
    let program = folder.join("examples/counted");
    if program.exists() { Ok(program) } else { Err(format!("{} was not built", program.display())) }
}

/// Instructions of the whole program.
fn instructions(program: &Path, work: &str, times: u32) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([work, &times.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let collected = said.lines().find_map(|line| line.split("Collected : ").nth(1));
    Ok(collected.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("no count: {said}")))
}

/// The slope: what happens once does not count.
fn of_one(work: &str) -> Result<u64, String> {
    let program = counted()?;
    Ok((instructions(&program, work, 3_000)? - instructions(&program, work, 1_000)?) / 2_000)
}

#[test]
fn hot_paths_take_no_more_instructions_than_they_did() {
    if !is_optimised() {
        println!("skipped: built without optimisation");
        return;
    }
    for (work, bound) in BOUNDS {
        match of_one(work) {
            Ok(count) => {
                println!("{work}: {count}");
                assert!(count <= bound, "{work}: {count} instructions, at most {bound}");
                assert!(count > 10, "{work}: {count} instructions: nothing was counted");
            }
            Err(reason) if std::env::var_os("CI").is_none_or(|ci| ci != "true") => {
                println!("skipped: {reason}");
            }
            Err(reason) => panic!("{reason}"),
        }
    }
}

/// Whether this was built by a profile that optimises: its folder is not that of `dev`.
fn is_optimised() -> bool {
    std::env::current_exe().is_ok_and(|own| !own.components().any(|part| part.as_os_str() == "debug"))
}
