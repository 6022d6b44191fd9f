//! An emulated machine for a script, and what is put into it.
//!
//! This module owns the call of `cargo xtask guest` and the lines it gives back. It must never judge them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use staunch_tests::process::binary;

/// Scripts so far, for their names.
static SCRIPTS: AtomicU32 = AtomicU32::new(0);

/// A machine for a script: what is changed of it, and what it has beside the server.
pub(crate) struct Guest<'a> {
    pub(crate) series: &'a str,
    pub(crate) modules: &'a [&'a str],
    pub(crate) programs: &'a [PathBuf],
    pub(crate) words: &'a [&'a str],
}

impl Guest<'_> {
    /// Runs a script in the machine.
    pub(crate) fn run(&self, script: &str) -> Output {
        let xtask = binary().with_file_name("xtask");
        assert!(xtask.exists(), "{} is missing: cargo build --workspace makes it", xtask.display());
        let number = SCRIPTS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("staunch-{}-{number}.sh", std::process::id()));
        std::fs::write(&path, script).expect("a script");
        let mut guest = Command::new(xtask);
        guest.args(["guest", "--kernel", self.series, "--seconds", "3600"]).args(self.words);
        self.modules.iter().for_each(|module| {
            guest.args(["--module", module]);
        });
        self.programs.iter().for_each(|program| {
            guest.arg("--program").arg(program);
        });
        let output = guest.arg(&path).output().expect("xtask runs");
        std::fs::remove_file(&path).expect("the script is there");
        output
    }
}

/// Ways in which khttpd serves.
pub(crate) const KHTTPD_MODES: [&str; 4] = ["kthread", "wq", "ready", "softirq"];

/// The output of a script in a machine that came to its end.
pub(crate) struct Said {
    pub(crate) series: String,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl Guest<'_> {
    /// Runs a script that must succeed; what it said.
    pub(crate) fn say(&self, script: &str) -> Said {
        let output = self.run(script);
        let (out, error) = said(&output);
        let said = Said { series: self.series.to_owned(), out, error };
        assert!(output.status.success(), "{said}");
        said
    }
}

impl Said {
    /// How often a line was said.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.out.lines().filter(|said| *said == line).count()
    }

    /// Asserts that a line was said.
    pub(crate) fn has(&self, line: &str) {
        assert!(self.count(line) > 0, "no {line:?} in {self}");
    }

    /// Asserts that each line was said, behind this beginning.
    pub(crate) fn has_all(&self, beginning: &str, lines: &[&str]) {
        lines.iter().for_each(|line| self.has(&format!("{beginning}{line}")));
    }
}

impl fmt::Display for Said {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:\n{}{}", self.series, self.out, self.error)
    }
}

/// A program of these tests that was built with them.
pub(crate) fn program(name: &str) -> PathBuf {
    let path = binary().with_file_name(name);
    assert!(path.exists(), "{} is missing: cargo build --workspace makes it", path.display());
    path
}

/// The program of a file of C beside this one. It is static, for the machine has no libraries.
pub(crate) fn compiled(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-static"])
        .arg(format!("-I{}", here.join("../kernel/khttpd").display()))
        .arg(here.join("kernels").join(name).with_extension("c"))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("cc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

pub(crate) fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
