//! The container image: its root is run as its `Containerfile` says, with io_uring forbidden as engines of
//! containers forbid it.
//!
//! It must never need an engine of containers: namespaces and chroot(8) are what one would use.

use std::fs;
use std::path::Path;
use std::process::Command;

use staunch_tests::process::is_installed;

use crate::chroot;
use crate::made::run;

/// The words of an instruction such as `CMD ["serve", "/srv"]`.
fn words(file: &str, instruction: &str) -> Vec<String> {
    let line = file.lines().find_map(|line| line.strip_prefix(instruction));
    let line = line.unwrap_or_else(|| panic!("no {instruction} in\n{file}"));
    serde_json::from_str(line.trim()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Starts the image in namespaces of its own, waits until it is healthy, asks it, and stops it.
const SCRIPT: &str = r#"
set -eu
ip link set lo up
mount -t proc proc "$ROOT/proc"
inside() { chroot --userspec="$OWNER" "$ROOT" /usr/bin/staunch "$@"; }
"$CONFINED" without io_uring chroot --userspec="$OWNER" "$ROOT" /usr/bin/staunch $SERVE >> "$OUT" 2>&1 &
server=$!
until inside $HEALTHY >> "$OUT"; do kill -0 $server; sleep 0.1; done
curl --silent --show-error --fail http://127.0.0.1:8080/hello.txt
echo "owner: $(awk '/^Uid:/ { print $2 }' "$ROOT/proc/$server/status")"
kill -TERM $server
wait $server
echo "code: $?"
cat "$OUT"
"#;

#[test]
fn the_image_serves_as_an_ordinary_user_without_io_uring() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: chroot needs root");
    }
    if std::env::var_os("STAUNCH_SOAK").is_none() {
        return println!("skipped: `make soak` builds the image's program, all of it for another C library");
    }
    if !["rustup", "musl-gcc", "unshare", "ip", "curl", "awk"].into_iter().all(is_installed) {
        return;
    }
    let folder = chroot::folder().join(format!("image-{}", std::process::id()));
    let beside = |name: &str| binary_folder().join(name).display().to_string();
    let out = folder.display().to_string();
    // Without optimisation: it is built for this test alone, and starts and answers once.
    let quickly = ["env", "CARGO_PROFILE_FAST_OPT_LEVEL=0"];
    run(1200, &[&quickly[..], &[&beside("xtask"), "container", "--profile", "fast", "--out", &out]].concat());
    let file = fs::read_to_string(folder.join("Containerfile")).expect("the instructions");
    let owner = file.lines().find_map(|line| line.strip_prefix("USER ")).expect("a user");
    fs::write(folder.join("root/srv/hello.txt"), "hello from an image\n").expect("a file");
    let healthy = words(&file, "HEALTHCHECK CMD ");
    assert_eq!(healthy[0], "/usr/bin/staunch");
    let mut command = Command::new("timeout");
    command.args([
        "100",
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        SCRIPT,
    ]);
    command.env("ROOT", folder.join("root")).env("OUT", folder.join("out")).env("OWNER", owner);
    command.env("CONFINED", beside("confined")).env("SERVE", words(&file, "CMD ").join(" "));
    command.env("HEALTHY", healthy[1..].join(" "));
    let output = command.output().expect("a shell");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for words in ["hello from an image", "owner: 65532", "code: 0", "epoll (", "running: PID"] {
        assert!(said.contains(words), "`{words}` is not in\n{said}\n{errors}");
    }
    fs::remove_dir_all(folder).expect("a folder of ours");
}

/// Where the programs of this build stand, whichever `staunch` is tested.
fn binary_folder() -> std::path::PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.parent().and_then(Path::parent).expect("a folder").to_owned()
}
