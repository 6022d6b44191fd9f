//! The package's life on a clean Debian: installed, checked, serving, upgraded, removed, purged.

use std::collections::BTreeMap;
use std::fs;

use crate::chroot::Chroot;
use crate::made::{is_possible, package, run};

/// The configured server, as its own user and with the folder that its unit gives it (`RuntimeDirectory`), in
/// a namespace where nobody else is on its port; then a client.
const SERVE_AND_ASK: &str = "
set -e
ip link set lo up
mount -t proc proc \"$1/proc\"
mount -t tmpfs tmpfs \"$1/run\"
chroot \"$1\" install --directory --owner=staunch --group=staunch --mode=755 /run/staunch
chroot \"$1\" setpriv --reuid=staunch --regid=staunch --init-groups \
    staunch serve --config /etc/staunch/staunch.toml >\"$1/said\" 2>&1 &
curl --silent --show-error --fail --retry 20 --retry-delay 1 --retry-connrefused --max-time 60 \
    http://127.0.0.1:8080/ || { cat \"$1/said\"; exit 1; }
";

#[test]
fn it_is_installed_serves_and_leaves_nothing_behind() {
    if !is_possible() {
        return;
    }
    let Some(debian) = Chroot::new() else { return };
    let before = debian.files();
    install(&debian);
    programs_work(&debian);
    units_are_right(&debian);
    serves(&debian);
    install(&debian);
    fs::create_dir_all(debian.root().join("var/log/staunch")).expect("a folder");
    fs::write(debian.root().join("var/log/staunch/access.log"), "a line\n").expect("a log");

    debian.run(&["dpkg", "--remove", "staunch"]);
    assert!(debian.root().join("etc/staunch/staunch.toml").exists(), "settings stay until a purge");
    assert!(debian.root().join("var/log/staunch/access.log").exists(), "logs stay until a purge");
    assert!(!debian.root().join("usr/bin/staunch").exists());
    debian.run(&["dpkg", "--purge", "staunch"]);
    assert_eq!(difference(&before, &debian.files()), Vec::<String>::new(), "something was left behind");
}

fn install(debian: &Chroot) {
    fs::copy(package(), debian.root().join("staunch.deb")).expect("the package");
    debian.run(&["dpkg", "--install", "/staunch.deb"]);
    fs::remove_file(debian.root().join("staunch.deb")).expect("the package");
    let users = fs::read_to_string(debian.root().join("etc/passwd")).expect("users");
    assert_eq!(users.lines().filter(|line| line.starts_with("staunch:")).count(), 1, "{users}");
}

fn programs_work(debian: &Chroot) {
    let version = debian.run(&["staunch", "--version"]);
    assert_eq!(version.trim(), concat!("staunch ", env!("CARGO_PKG_VERSION")));
    let tested = debian.run(&["staunch", "serve", "-t", "--config", "/etc/staunch/staunch.toml"]);
    assert!(tested.contains("test is successful"), "{tested}");
    let broken = debian.root().join("broken.toml");
    fs::write(&broken, "lisen = [\"127.0.0.1:8080\"]\n").expect("a file");
    let refused = debian.run(&["sh", "-c", "staunch serve -t --config /broken.toml; test $? = 78"]);
    assert!(refused.contains("lisen") && refused.contains("listen"), "{refused}");
    fs::remove_file(broken).expect("the file");
}

fn units_are_right(debian: &Chroot) {
    for unit in ["staunch.service", "staunch.socket"] {
        let path = format!("/lib/systemd/system/{unit}");
        let found = debian.run(&["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", &path]);
        assert!(!found.contains(unit), "{found}");
    }
    // That a mistake would be found.
    let right =
        fs::read_to_string(debian.root().join("lib/systemd/system/staunch.service")).expect("the unit");
    let broken = debian.root().join("lib/systemd/system/broken.service");
    fs::write(&broken, right.replace("Type=notify", "Type=guess")).expect("a unit");
    let verify = "systemd-analyze verify --man=no /lib/systemd/system/broken.service 2>&1 || true";
    let found = debian.run(&["sh", "-c", verify]);
    assert!(found.contains("guess"), "{found}");
    fs::remove_file(broken).expect("the unit");
    // 0 is wholly confined, 10 not at all; in tenths.
    let service = "/lib/systemd/system/staunch.service";
    debian.run(&["systemd-analyze", "security", "--offline=true", "--threshold=25", service]);
    let enabled = debian.root().join("etc/systemd/system/multi-user.target.wants/staunch.service");
    assert!(fs::symlink_metadata(enabled).is_ok(), "the service is not enabled");
}

fn serves(debian: &Chroot) {
    let root = debian.root().display().to_string();
    let inside = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c"];
    let page = run(90, &[&inside[..], &[SERVE_AND_ASK, "sh", &root]].concat());
    assert!(page.contains("<h1>Staunch is running</h1>"), "{page}");
    fs::remove_file(debian.root().join("said")).expect("what it said");
}

/// Lines for whatever is not the same.
fn difference(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let gone = before.iter().filter(|(path, was)| after.get(*path) != Some(was));
    let come = after.iter().filter(|(path, is)| before.get(*path) != Some(is));
    let gone = gone.map(|(path, was)| format!("- {path}: {was}"));
    gone.chain(come.map(|(path, is)| format!("+ {path}: {is}"))).collect()
}
