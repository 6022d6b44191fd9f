//! The service as systemd runs it: a clean Debian is booted in a container, with the package installed.
//!
//! It must never reach the host's systemd or network. What cannot be seen in a folder is seen here: that the
//! unit's confinement leaves the server what it needs.

use std::fs;
use std::process::Command;

use staunch_tests::process;

use crate::chroot::Chroot;
use crate::made::{is_possible, package};

/// Runs the script once the service was started, then powers off.
const SCRIPT_UNIT: &str = "
[Unit]
After=staunch.service
[Service]
Type=oneshot
StandardOutput=file:/said
StandardError=file:/said
ExecStart=/bin/bash /booted.sh
ExecStopPost=/bin/systemctl poweroff --force
[Install]
WantedBy=multi-user.target
";

/// What the script must have said, in this order.
const EXPECTED: &[&str] = &[
    "== started: active, notify, page 1",
    "== confined: CapEff: 0000000000000400;NoNewPrivs: 1;Seccomp: 2;",
    "== user: staunch",
    "== reloaded: code 0, same process yes, page 1",
    "== first instruction: code 0, active, page 1",
    "== tested without a word: code 0",
    "== commands: 1 1",
    "== reload by hand: code 0, page 1",
    "== reload of what is not there: code 1, page 1",
    "== reloaded wrongly: code 1, active, page 1",
    "== upgraded: another process yes, active, page 1",
    "== killed: started anew yes, page 1",
    "== stopped: success, code 0",
];

#[test]
fn systemd_starts_reloads_upgrades_and_stops_it() {
    if !is_possible() || !process::is_installed("systemd-nspawn") {
        return;
    }
    let Some(debian) = Chroot::new() else { return };
    let write = |path: &str, text: &str| fs::write(debian.root().join(path), text).expect("a file");
    fs::copy(package(), debian.root().join("staunch.deb")).expect("the package");
    debian.run(&["dpkg", "--install", "/staunch.deb"]);
    write("booted.sh", include_str!("booted.sh"));
    write("etc/systemd/system/script.service", SCRIPT_UNIT);
    debian.run(&["systemctl", "enable", "script.service"]);
    let root = debian.root().display().to_string();
    let booted = Command::new("timeout")
        .args(["--kill-after=5", "100", "systemd-nspawn", "--register=no", "--keep-unit", "--quiet"])
        .args(["--private-network", "--link-journal=no", "--directory", &root, "--boot"])
        // Today's hierarchy of control groups, whatever that of the host is.
        .env("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1")
        .output()
        .expect("systemd-nspawn");
    let said = fs::read_to_string(debian.root().join("said")).unwrap_or_else(|error| {
        let console = String::from_utf8_lossy(&booted.stdout);
        panic!("it was not booted: {error}\n{console}{}", String::from_utf8_lossy(&booted.stderr))
    });
    let found: Vec<&str> = said.lines().filter(|line| line.starts_with("==")).collect();
    assert_eq!(found, EXPECTED, "{said}");
}
