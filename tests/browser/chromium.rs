//! The browser, and the scripts that drive it.
//!
//! It must never skip a test silently: a missing program is named, and is a failure when `CI` is true.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use staunch_tests::process::is_installed;

/// The program that shows the pages.
pub(crate) struct Browser {
    program: String,
}

/// The browser, if all that is needed is installed.
pub(crate) fn browser() -> Option<Browser> {
    let program = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    (is_installed(&program) && is_installed("node")).then_some(Browser { program })
}

impl Browser {
    /// Its name.
    #[allow(dead_code, reason = "of the suites that share this file one starts it by itself")]
    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// Runs a script of this folder to its end.
    pub(crate) fn run(&self, script: &str, words: &[impl AsRef<OsStr>]) -> Output {
        Command::new("node")
            .arg(self::script(script))
            .args(words)
            .env("CHROMIUM", &self.program)
            .stdin(Stdio::null())
            .output()
            .expect("node starts")
    }
}

/// The path of a script of this folder.
pub(crate) fn script(name: &str) -> PathBuf {
    repository().join("tests/browser").join(name)
}

/// The root of the repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a member of the workspace")
}

/// Where pictures stand: two above the executable of this test and its `deps`.
pub(crate) fn pictures(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.ancestors().nth(3).expect("a folder of the build").join(name)
}
