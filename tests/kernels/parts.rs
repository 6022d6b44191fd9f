//! Parts of tests that run in machines they share, or in depth in one of their own.
//!
//! This module owns the script of each part, and what that needs in the machine. It must never judge what a
//! part says.

use std::path::{Path, PathBuf};

use crate::dostp_guest::{golden_frames, guest_program};
use crate::guest::{Guest, Said, program, said};
use crate::is_in_depth;
use staunch_tests::process::binary;
use staunch_tests::suite;

/// The script that a test runs in a machine, and the files it has there beside those of every machine.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) modules: Vec<&'static str>,
    /// Modules of the kernel's own packages, which are loaded before.
    pub(crate) stock: Vec<&'static str>,
    pub(crate) programs: Vec<PathBuf>,
    pub(crate) script: String,
}

impl Part {
    /// A script that needs nothing.
    fn of(name: &'static str, script: impl Into<String>) -> Self {
        let (modules, stock, programs) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, modules, stock, programs, script: script.into() }
    }

    /// The output of the part in a machine of its own.
    pub(crate) fn alone(&self, series: &str, words: &[&str]) -> Said {
        self.guest(series, &self.words(words)).say(&self.script)
    }

    /// A machine of its own that falls: its lines, and those of its kernel.
    pub(crate) fn fallen(&self, series: &str) -> (String, String) {
        let output = self.guest(series, &[]).run(&self.script);
        assert!(!output.status.success(), "{}: the machine did not fall", self.name);
        said(&output)
    }

    /// The machine that it needs.
    pub(crate) fn guest<'a>(&'a self, series: &'a str, words: &'a [&'a str]) -> Guest<'a> {
        Guest { series, modules: &self.modules, programs: &self.programs, words }
    }

    /// The words of that machine beside these.
    pub(crate) fn words<'a>(&'a self, others: &[&'a str]) -> Vec<&'a str> {
        others.iter().copied().chain(self.stock.iter().flat_map(|name| ["--stock", *name])).collect()
    }
}

/// The server, a visitor who stays, and four hundred who leave.
pub(crate) fn closing() -> Part {
    let programs = vec![binary(), binary().with_file_name("staunch-load")];
    Part { programs, ..Part::of("closing", include_str!("closing.sh")) }
}

/// The module of the stock kernel that `dostp` needs; its own needs are loaded with it.
pub(crate) const DOSTP_NEEDS: &str = "libchacha20poly1305";

/// Golden frames of DOSTP, and a node of user space.
pub(crate) fn golden() -> Part {
    Part {
        modules: vec!["pair", "dostp"],
        stock: vec![DOSTP_NEEDS],
        programs: vec![PathBuf::from("/bin/ip"), guest_program(), golden_frames(), binary()],
        ..Part::of("golden", include_str!("dostp.sh"))
    }
}

/// Names of hostile heads among conversations.
pub(crate) const HOSTILE: &str = "f000";

/// The conversations whose names have this word, held with khttpd.
pub(crate) fn conversations(word: &str) -> Part {
    let bundle = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("conversations");
    std::fs::write(&bundle, suite::bundle(&suite::wire_folder())).expect("a file");
    Part {
        modules: vec!["khttpd"],
        programs: vec![program("kernel-wire"), bundle],
        ..Part::of("conversations", format!("kernel-wire ready /bin/conversations {word}"))
    }
}

/// The form of the gate that has every part of its program: the verifier looks at one for half a minute.
pub(crate) const LARGEST: [&str; 1] = ["most"];

/// The gate in these forms, on an interface.
pub(crate) fn gate(forms: &[&str]) -> Part {
    let script = format!("forms='{}'\n{}", forms.join(" "), include_str!("gate.sh"));
    Part {
        stock: vec!["veth"],
        programs: vec![PathBuf::from("/bin/ip"), binary()],
        ..Part::of("gate", script)
    }
}

/// `staunch kernel` with this module, or the one that is built for the machine.
pub(crate) fn command(module: Option<&Path>) -> Part {
    let file = module.map_or("/modules/khttpd.ko", |_| "/bin/khttpd.ko");
    Part {
        modules: if module.is_none() { vec!["khttpd"] } else { Vec::new() },
        programs: [binary()].into_iter().chain(module.map(Path::to_owned)).collect(),
        ..Part::of("command", format!("module={file}\n{}", include_str!("command.sh")))
    }
}

/// Every module is built, and one is loaded before the script runs.
pub(crate) fn built() -> Part {
    let modules = vec!["hello:fault=none", "kecho", "khttpd", "dostp", "pair", "scarce", "ticking"];
    Part { modules, ..Part::of("built", "lsmod; rmmod hello && echo unloaded; ls -1 /modules") }
}

/// kecho in each of its ways.
pub(crate) fn kecho() -> Part {
    Part { modules: vec!["kecho"], ..Part::of("kecho", include_str!("kecho.sh")) }
}

/// khttpd in each of its ways.
pub(crate) fn khttpd() -> Part {
    Part { modules: vec!["khttpd"], ..Part::of("khttpd", include_str!("khttpd.sh")) }
}

/// A module with a fault that ends its machine.
pub(crate) fn fault(fault: &'static str) -> Part {
    let script = format!("insmod /modules/hello.ko fault={fault}; sleep 1; rmmod hello; echo survived");
    Part { modules: vec!["hello"], ..Part::of(fault, script) }
}

/// A module that is strained, and its modes; behind a mode, further parameters.
pub(crate) struct Strained {
    pub(crate) module: &'static str,
    name: &'static str,
    all: &'static [&'static str],
}

pub(crate) const KECHO: Strained = Strained {
    module: "kecho",
    name: "strained-kecho",
    all: &["kthread", "wq-percpu", "wq-unbound", "ready", "softirq"],
};
pub(crate) const KHTTPD: Strained = Strained {
    module: "khttpd",
    name: "strained-khttpd",
    all: &["kthread", "wq", "ready", "softirq", "ready hand_over="],
};

/// The modes that `make test` strains: where the network's own interrupts serve, where a worker is kept by
/// each connection, and where connections are handed over. `make soak` has all.
const USUAL_MODES: [&str; 3] = ["softirq", "wq-percpu", "ready hand_over="];

/// The kernel notes who allocated each object, by which `kernel-strain` finds those of a module.
pub(crate) const NOTED: [&str; 2] = ["--words", "slub_debug=FZPU slab_debug=FZPU"];
/// That, and two processors.
pub(crate) const STRAINING: [&str; 4] = [NOTED[0], NOTED[1], "--processors", "2"];

impl Strained {
    /// All modes of the module in depth, else the usual ones.
    pub(crate) fn modes(&self) -> Vec<&'static str> {
        self.all.iter().copied().filter(|mode| is_in_depth() || USUAL_MODES.contains(mode)).collect()
    }

    /// The call of `kernel-strain` with these words for all of those.
    pub(crate) fn call(&self, words: &str) -> String {
        let modes: String = self.modes().iter().map(|mode| format!("'{mode}' ")).collect();
        format!("exec kernel-strain {words} {} {modes}", self.module)
    }

    /// Peers of every manner, and unloading under them: so often as `make soak` says, or twice.
    pub(crate) fn part(&self) -> Part {
        let rounds = std::env::var("STAUNCH_UNLOADS").unwrap_or_else(|_| "2".to_owned());
        Part {
            modules: vec![self.module],
            programs: vec![program("kernel-strain")],
            ..Part::of(self.name, self.call(&format!("--rounds {rounds}")))
        }
    }
}
