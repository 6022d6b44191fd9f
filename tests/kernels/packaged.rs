//! The package of the modules: what is in it builds as DKMS builds it, and `staunch kernel` loads it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::is_possible;
use crate::modules::{Guest, said};
use staunch_tests::process::{binary, is_installed};

/// The kernel that it is built for.
const SERIES: &str = "6.1";

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, error) = said(&output);
    assert!(output.status.success(), "{command:?}: {out}{error}");
    out
}

/// The package, unpacked.
fn unpacked(folder: &Path) -> PathBuf {
    let _ = fs::remove_dir_all(folder);
    let mut xtask = Command::new(binary().with_file_name("xtask"));
    let package = run(xtask.args(["deb", "--modules", "--out"]).arg(folder));
    if is_installed("lintian") {
        let words = ["--allow-root", "--fail-on", "error", package.trim()];
        run(Command::new("lintian").args(words));
    }
    let tree = folder.join("unpacked");
    run(Command::new("dpkg-deb").args(["-R", package.trim()]).arg(&tree));
    tree
}

#[test]
fn the_package_of_modules_builds_and_its_module_is_loaded() {
    if !is_possible() || !is_installed("dpkg-deb") {
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("staunch-dkms");
    let tree = unpacked(&folder);
    let version = env!("CARGO_PKG_VERSION");
    let sources = tree.join("usr/src").join(format!("staunch-{version}"));
    let mut xtask = Command::new(binary().with_file_name("xtask"));
    let headers = run(xtask.args(["guest", "--kernel", SERIES, "--headers"]));
    let (release, headers) = headers.trim().split_once(' ').expect("a release and a folder");

    let make = |aim: &str| {
        let mut make = Command::new("make");
        make.arg("-C").arg(&sources).arg(aim).arg(format!("KERNEL={release}"));
        run(make.arg(format!("BUILD={headers}")))
    };
    make("all");
    for name in ["khttpd", "kecho", "dostp"] {
        assert!(sources.join(name).join(format!("{name}.ko")).exists(), "{name}");
    }
    loads_what_is_to_be_loaded(&sources.join("khttpd/khttpd.ko"));
    make("clean");
    assert!(!sources.join("khttpd/khttpd.ko").exists());
    if is_installed("dkms") {
        let place = |name: &str| format!("--{name}={}", folder.join(name).display());
        fs::create_dir_all(folder.join("dkmstree")).expect("a folder");
        let mut dkms = Command::new("dkms");
        dkms.args(["build", "-m", "staunch", "-v", version, "-k", release]);
        dkms.arg(format!("--kernelsourcedir={headers}")).arg(place("dkmstree"));
        dkms.arg(format!("--sourcetree={}", tree.join("usr/src").display()));
        run(&mut dkms);
    }
}

/// `staunch kernel` in the machine: loads, shows and unloads; what cannot be is told with the kernel's
/// reason.
fn loads_what_is_to_be_loaded(module: &Path) {
    let programs = [binary(), module.to_owned()];
    let guest = Guest { series: SERIES, modules: &[], programs: &programs, words: &[] };
    let (out, error) = said(&guest.run(include_str!("command.sh")));
    let has = |line: &str| assert!(out.lines().any(|said| said == line), "no {line:?} in\n{out}{error}");
    has("before: 3");
    has("staunch: khttpd is not loaded: listen=nowhere: cannot be listened on (error -22)");
    has("staunch: khttpd is not loaded: cache_kib=99999999: not within 0 and 67108864");
    has("staunch: --root /nowhere: No such file or directory (os error 2)");
    has("told: khttpd serves my site");
    has("hello");
    has("  mode           softirq");
    has("  answered       1");
    assert!(out.contains(r#""answered":1"#) && out.contains(r#""listing":"Y""#), "{out}");
    has("staunch: khttpd is in use: a process has /dev/khttpd open to take connections");
    has("told: khttpd is unloaded");
    has("after: 3");
}
