//! `staunch kernel` on hosts that cannot load the module, and where it is not loaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use staunch_tests::process::binary;

/// A folder with files of /proc and /sys.
struct Host(PathBuf);

impl Host {
    fn with(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("kernel-host-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        Self(folder)
    }

    /// The exit code, and all that was printed.
    fn says(&self, words: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(binary());
        let output = command.args(["kernel", "--host"]).arg(&self.0).args(words).output().expect("staunch");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }
}

const MAY: (&str, &str) = ("proc/self/status", "CapEff:\t000001ffffffffff\n");
const MODULES: (&str, &str) = ("proc/modules", "");

fn load(host: &Host) -> (Option<i32>, String) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).display().to_string();
    let said = host.says(&["load", "--root", &here, "--module", "/nothing.ko"]);
    assert!(said.1.contains(&format!("`staunch serve {here}`")), "{}", said.1);
    said
}

#[test]
fn what_keeps_a_host_from_loading_is_told_before_it_is_tried() {
    let (code, text) = load(&Host::with("none", &[MAY]));
    assert!(code == Some(1) && text.contains("CONFIG_MODULES"), "{text}");
    let sealed = ("proc/sys/kernel/modules_disabled", "1\n");
    let (code, text) = load(&Host::with("sealed", &[MAY, MODULES, sealed]));
    assert!(code == Some(1) && text.contains("until the next boot"), "{text}");
    let (code, text) = load(&Host::with("user", &[MODULES, ("proc/self/status", "CapEff:\t0\n")]));
    assert!(code == Some(77) && text.contains("CAP_SYS_MODULE"), "{text}");
    let (code, text) = load(&Host::with("able", &[MODULES, MAY]));
    assert!(code == Some(1) && text.contains("/nothing.ko: No such file"), "{text}");
}

#[test]
fn what_cannot_be_a_parameter_is_refused() {
    let host = Host::with("parameters", &[MODULES, MAY]);
    let here = env!("CARGO_MANIFEST_DIR");
    let (code, text) = host.says(&["load", "--root", here, "listing"]);
    assert!(code == Some(1) && text.contains("NAME=VALUE"), "{text}");
    let (code, text) = host.says(&["load", "--root", "/no such folder"]);
    assert!(code == Some(1) && text.contains("--root /no such folder: "), "{text}");
}

#[test]
fn a_module_is_shown_as_the_kernel_shows_it() {
    let (code, text) = Host::with("absent", &[]).says(&["status"]);
    assert!(code == Some(3) && text == "khttpd is not loaded\n", "{text}");
    let place = |name: &str| format!("sys/module/khttpd/parameters/{name}");
    let (root, counts) = (place("root"), place("counts"));
    let host = Host::with("loaded", &[(&root, "/srv/www\n"), (&counts, "accepted 12345\nconnections 2\n")]);
    let (code, text) = host.says(&["status"]);
    let wanted = "khttpd is loaded\n  accepted       12 345\n  connections    2\n  root           /srv/www\n";
    assert!(code == Some(0) && text == wanted, "{text}");
    let (code, text) = host.says(&["status", "--json"]);
    let wanted =
        r#"{"loaded":true,"parameters":{"root":"/srv/www"},"counts":{"accepted":12345,"connections":2}}"#;
    assert!(code == Some(0) && text.trim_end() == wanted, "{text}");
}

#[test]
fn what_keeps_requests_from_being_traced_is_told() {
    let (code, text) = Host::with("untraced", &[]).says(&["trace"]);
    assert!(code == Some(3) && text.contains("`staunch kernel load --root DIR` loads it"), "{text}");
    let mode = ("sys/module/khttpd/parameters/mode", "ready\n");
    let (code, text) = Host::with("traceless", &[mode]).says(&["trace"]);
    assert!(code == Some(1) && text.contains("mount -t tracefs tracefs /sys/kernel/tracing"), "{text}");
    let (code, text) = Host::with("impatient", &[mode]).says(&["trace", "--seconds", "0"]);
    assert!(code == Some(2) && text.contains("--seconds <N>"), "{text}");
}
