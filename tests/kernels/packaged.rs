//! The package of the modules: what is in it builds as DKMS builds it, and `staunch kernel` loads it. In
//! depth that is the very module of the package; else one module is built of it, and the sources of all are
//! those of this tree, from which the machine's are built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::guest::{Said, said};
use crate::parts::command;
use crate::shared::SERVERS;
use crate::{USUAL_SERIES, is_in_depth, is_possible};
use staunch_tests::process::{binary, is_installed};

/// The modules in it.
const NAMES: [&str; 3] = ["khttpd", "kecho", "dostp"];

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
    let headers = run(xtask.args(["guest", "--kernel", USUAL_SERIES, "--headers"]));
    let (release, headers) = headers.trim().split_once(' ').expect("a release and a folder");

    let make = |words: &[&str]| {
        let mut make = Command::new("make");
        make.arg("-C").arg(&sources).args(words).arg(format!("KERNEL={release}"));
        run(make.arg(format!("BUILD={headers}")))
    };
    if !is_in_depth() {
        make(&["all", "MODULES=kecho"]);
        assert!(sources.join("kecho/kecho.ko").exists());
        make(&["clean", "MODULES=kecho"]);
        assert!(!sources.join("kecho/kecho.ko").exists());
        NAMES.iter().chain(&["include"]).for_each(|name| has_the_sources_of_this_tree(&sources, name));
        return loads_what_is_to_be_loaded(&SERVERS.said(USUAL_SERIES, &command(None), &[]));
    }
    make(&["all"]);
    for name in NAMES {
        assert!(sources.join(name).join(format!("{name}.ko")).exists(), "{name}");
    }
    let module = sources.join("khttpd/khttpd.ko");
    loads_what_is_to_be_loaded(&command(Some(&module)).alone(USUAL_SERIES, &[]));
    make(&["clean"]);
    assert!(!module.exists());
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

/// Every file of a folder that the compiler reads is in the package, as it stands here.
fn has_the_sources_of_this_tree(sources: &Path, folder: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel").join(folder);
    for file in fs::read_dir(&here).expect("sources").map(|entry| entry.expect("a file").path()) {
        let name = file.file_name().expect("a name");
        if file.extension().is_some_and(|end| end == "4") {
            continue;
        }
        let packed = fs::read(sources.join(folder).join(name)).unwrap_or_default();
        assert!(packed == fs::read(&file).expect("a source"), "{folder}/{} differs", name.display());
    }
}

/// The command loads, shows and unloads; what cannot be is told with the kernel's reason.
fn loads_what_is_to_be_loaded(said: &Said) {
    said.has("before: 3");
    said.has("staunch: khttpd is not loaded: listen=nowhere: cannot be listened on (error -22)");
    said.has("staunch: khttpd is not loaded: cache_kib=99999999: not within 0 and 67108864");
    said.has("staunch: --root /nowhere: No such file or directory (os error 2)");
    said.has("told: khttpd serves my site");
    said.has("hello");
    said.has("  mode           softirq");
    said.has("  answered       1");
    assert!(said.out.contains(r#""answered":1"#) && said.out.contains(r#""listing":"Y""#), "{said}");
    said.has("staunch: khttpd is in use: a process has /dev/khttpd open to take connections");
    said.has("told: khttpd is unloaded");
    said.has("after: 3");
}
