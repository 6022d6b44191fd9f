//! Modules of `kernel/` in an emulated machine that ends at the first warning of its kernel.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use std::sync::atomic::{AtomicU32, Ordering};

use crate::{SERIES_WITH_HEADERS, every_series, is_in_depth, is_possible, series_with_modules};
use staunch_tests::process::{binary, is_installed};

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
        guest.args(["guest", "--kernel", self.series, "--seconds", "1800"]).args(self.words);
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

/// What a script said in a machine that came to its end.
pub(crate) struct Said {
    series: String,
    pub(crate) out: String,
    error: String,
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

/// A script in a machine with a module.
fn run(series: &str, module: &str, script: &str) -> Output {
    Guest { series, modules: &[module], programs: &[], words: &[] }.run(script)
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

/// Every module is built for each kernel of this Debian's, also for the one under which `make test` runs none
/// of its tests; in depth for the newest as well, whose compiler is another Debian's.
#[test]
fn modules_are_built_for_every_kernel() {
    if !is_possible() {
        return;
    }
    let modules = ["hello:fault=none", "kecho", "khttpd", "dostp", "pair", "scarce", "ticking"];
    let every = if is_in_depth() { every_series() } else { SERIES_WITH_HEADERS.to_vec() };
    for series in every {
        let guest = Guest { series, modules: &modules, programs: &[], words: &[] };
        let said = guest.say("lsmod; rmmod hello && echo unloaded; ls -1 /modules");
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
    let faults = [("leak", "Slab cache still has objects"), ("sleep", "scheduling while atomic")];
    for (fault, word) in faults.into_iter().take(if is_in_depth() { 2 } else { 1 }) {
        let script = format!("insmod /modules/hello.ko fault={fault}; sleep 1; rmmod hello; echo survived");
        let output = run("6.1", "hello", &script);
        let (out, error) = said(&output);
        assert!(!output.status.success() && !out.contains("survived"), "{fault}: {out}{error}");
        assert!(error.contains(word) && error.contains("Kernel panic"), "{fault}: {error}");
    }
}

#[test]
fn kecho_serves_in_five_ways_and_unloads_with_a_connection() {
    if !is_possible() {
        return;
    }
    for series in series_with_modules("6.1") {
        let output = run(series, "kecho", include_str!("kecho.sh"));
        let (out, error) = said(&output);
        assert!(output.status.success(), "{series}: {out}{error}");
        let echoed = out.lines().filter(|line| line.contains("h   e   l   l   o  \\0   w")).count();
        assert_eq!(echoed, 5, "{series}: {out}{error}");
        for mode in ["kthread", "wq-percpu", "wq-unbound", "ready", "softirq"] {
            assert!(out.contains(&format!("{mode} unloaded")), "{series}: {out}{error}");
        }
        let fault = "told: mode=fast: kthread, wq-percpu, wq-unbound, ready or softirq";
        assert!(out.lines().any(|line| line == fault), "{series}: {out}{error}");
    }
}

/// What khttpd serves and what it does not, and what it says of parameters that cannot be.
#[test]
fn khttpd_serves_a_folder_in_each_way() {
    if !is_possible() {
        return;
    }
    for series in series_with_modules("6.12") {
        let guest = Guest { series, modules: &["khttpd"], programs: &[], words: &[] };
        let said = guest.say(include_str!("khttpd.sh"));
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
