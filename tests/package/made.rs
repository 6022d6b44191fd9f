//! The package as made by `cargo xtask deb`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use staunch_tests::process;

use crate::chroot;

/// Runs a command to its end, or for so many seconds. Returns what it printed; panics when it fails.
pub(crate) fn run(seconds: u32, arguments: &[&str]) -> String {
    let output = Command::new("timeout").arg(seconds.to_string()).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {}\n{out}{err}", output.status);
    format!("{out}{err}")
}

/// The package, made once for all tests of this program.
pub(crate) fn package() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let test = std::env::current_exe().expect("the path of this test");
        let xtask = test.parent().and_then(Path::parent).expect("a folder").join("xtask");
        assert!(xtask.exists(), "{} is missing: cargo build --workspace makes it", xtask.display());
        let (xtask, binary) = (xtask.display().to_string(), process::binary().display().to_string());
        let out = chroot::folder().join("package").display().to_string();
        // Packed as hard as for users it would take a minute, and is unpacked three times and thrown away.
        run(200, &[&xtask, "deb", "--binary", &binary, "--level", "0", "--out", &out]);
        let version = env!("CARGO_PKG_VERSION");
        let architecture = run(10, &["dpkg", "--print-architecture"]);
        Path::new(&out).join(format!("staunch_{version}_{}.deb", architecture.trim()))
    })
}

/// Whether a package can be made here at all.
pub(crate) fn is_possible() -> bool {
    ["dpkg-deb", "strip", "gzip"].into_iter().all(process::is_installed)
}

#[test]
fn debian_finds_no_error_in_it() {
    if !is_possible() || !process::is_installed("lintian") {
        return;
    }
    let package = package().display().to_string();
    let found = run(120, &["lintian", "--allow-root", "--fail-on", "error", &package]);
    assert!(!found.lines().any(|line| line.starts_with("E:")), "{found}");
}

#[test]
fn every_file_in_it_is_roots_and_none_may_be_changed_by_others() {
    if !is_possible() {
        return;
    }
    let list = run(60, &["dpkg-deb", "--contents", &package().display().to_string()]);
    assert!(list.lines().count() > 20, "{list}");
    for line in list.lines() {
        let mut words = line.split_whitespace();
        let mode = words.next().expect("a mode");
        assert_eq!(words.next(), Some("root/root"), "{line}");
        assert!(matches!(mode, "drwxr-xr-x" | "-rwxr-xr-x" | "-rw-r--r--" | "lrwxrwxrwx"), "{line}");
    }
    for path in [
        "./usr/bin/staunch",
        "./usr/lib/staunch/staunch-load",
        "./etc/staunch/staunch.toml",
        "./usr/share/staunch/empty/",
        "./usr/share/man/man1/staunch-doctor.1.gz",
        "./usr/share/man/man1/staunch-load-sweep.1.gz",
        "./usr/share/man/man5/staunch.toml.5.gz",
    ] {
        assert!(list.contains(path), "{path}\n{list}");
    }
}
