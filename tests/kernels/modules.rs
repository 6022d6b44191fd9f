//! Modules of `kernel/` in an emulated machine that ends at the first warning of its kernel.

use std::path::PathBuf;
use std::process::Command;

use crate::guest::{Guest, KHTTPD_MODES, said};
use crate::parts::{built, fault, kecho, khttpd};
use crate::shared::MODULES;
use crate::{USUAL_SERIES, is_in_depth, is_possible, series_with_modules};
use staunch_tests::process::is_installed;

/// Every module is built, in depth for each kernel: for the newest by another Debian's compiler.
#[test]
fn modules_are_built_for_every_kernel() {
    if !is_possible() {
        return;
    }
    for series in series_with_modules(USUAL_SERIES) {
        let said = MODULES.said(series, &built(), &[]);
        assert!(said.out.contains("hello"), "{said}");
        said.has_all(
            "",
            &["unloaded", "kecho.ko", "khttpd.ko", "dostp.ko", "pair.ko", "scarce.ko", "ticking.ko"],
        );
    }
}

/// Canaries: a module that leaks ends the machine, and the console says why; in depth also one that sleeps
/// where it must not.
#[test]
fn a_machine_ends_at_a_modules_fault() {
    if !is_possible() {
        return;
    }
    let faults = [("leak", "kmem_cache_destroy"), ("sleep", "scheduling while atomic")];
    for (name, word) in faults.into_iter().take(if is_in_depth() { 2 } else { 1 }) {
        let (out, error) = MODULES.fallen(&fault(name));
        assert!(!out.contains("survived"), "{name}: {out}{error}");
        assert!(error.contains(word) && error.contains("Kernel panic"), "{name}: {error}");
    }
}

#[test]
fn kecho_serves_in_five_ways_and_unloads_with_a_connection() {
    if !is_possible() {
        return;
    }
    for series in series_with_modules(USUAL_SERIES) {
        let said = MODULES.said(series, &kecho(), &[]);
        let echoed = said.out.lines().filter(|line| line.contains("h   e   l   l   o  \\0   w")).count();
        assert_eq!(echoed, 5, "{said}");
        for mode in ["kthread", "wq-percpu", "wq-unbound", "ready", "softirq"] {
            said.has(&format!("{mode} unloaded"));
        }
        said.has("told: mode=fast: kthread, wq-percpu, wq-unbound, ready or softirq");
    }
}

/// What khttpd serves and what it does not, and what it says of parameters that cannot be.
#[test]
fn khttpd_serves_a_folder_in_each_way() {
    if !is_possible() {
        return;
    }
    for series in series_with_modules(USUAL_SERIES) {
        let said = MODULES.said(series, &khttpd(), &[]);
        for mode in KHTTPD_MODES {
            said.has_all(
                &format!("{mode} "),
                &["statuses: 200 200 404 403 403 301 404 ", "listed: 500", "unloaded"],
            );
        }
        said.has("nothing is left");
        said.has("told: listen=127.0.0.1:80: cannot be listened on (error -98)");
        for name in ["root= is missing", "root=/nowhere: ", "mode=odd: ", "connections=0: ", "head_ms=1: "] {
            assert!(said.out.contains(&format!("told: {name}")), "no {name:?} in {said}");
        }
    }
}

/// For `make soak`: DOSTP and the gate load the stock kernel's modules in each landing, and what is
/// compressed changes with `kernel/khttpd` alone.
mod in_depth {
    use super::*;

    /// Modules of the kernel's own packages are loaded with what they need: veth needs none, sctp others, and
    /// one that is only asked for by its name.
    #[test]
    fn modules_of_the_stock_kernel_are_loaded() {
        if !is_possible() || !is_installed("depmod") {
            return;
        }
        let guest = Guest {
            series: "6.1",
            modules: &[],
            programs: &[],
            words: &["--stock", "veth,crc32c_generic,sctp"],
        };
        let script = "ip link add name one type veth && ls /sys/class/net; cut -d' ' -f1 /proc/modules";
        let (out, error) = said(&guest.run(script));
        for name in ["one", "veth", "sctp", "libcrc32c"] {
            assert!(out.split_ascii_whitespace().any(|word| word == name), "{name}: {out}{error}");
        }
    }

    /// Files of this project, compressed in the kernel: as small as by `gzip -9`, and what comes out is the
    /// file.
    #[test]
    fn khttpd_compresses_as_well_as_gzip() {
        if !is_possible() {
            return;
        }
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        let corpus = ["docs/serving.md", "docs/giving-way.svg", "docs/load.md", "kernel/khttpd/cache.c"];
        let files = corpus.map(|name| root.join(name));
        let guest = Guest { series: "6.1", modules: &["khttpd"], programs: &files, words: &[] };
        let (out, error) = said(&guest.run(include_str!("gzip.sh")));
        for file in files {
            let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
            let output = Command::new("gzip").args(["-9nc"]).arg(&file).output().expect("gzip");
            let best = output.stdout.len();
            let line = out.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            let bytes: usize =
                line.and_then(|bytes| bytes.parse().ok()).unwrap_or_else(|| panic!("{out}{error}"));
            println!("{name}: {bytes} bytes, gzip -9: {best}");
            assert!(bytes <= best, "{name}: {bytes} bytes, gzip -9: {best}");
        }
        for line in ["plain: whole", "refused: plain", "switched off: plain"] {
            assert!(out.lines().any(|said| said == line), "no {line:?} in\n{out}{error}");
        }
    }
}
