//! `cargo xtask guest`: a script in a machine of its own, under a kernel of Debian's, emulated by QEMU.
//!
//! It owns kernels that were fetched (`target/tools/kernels`) and the making of the guest's file system from
//! programs of this machine and modules of `kernel/`. It must never install or run anything of the guest
//! here. Order: kernel, headers, module, image, machine; the script's exit status is the chore's.
//!
//! The machine ends at the first warning of its kernel. It is slow (no KVM is asked for) and has no network
//! but its loopback. With `--counted` one instruction takes one nanosecond of its time, so what its clocks
//! say are instructions, the same in each run.

mod apt;
mod debug;
mod headers;
mod image;
mod kernel;
mod machine;
mod module;
mod stock;
mod toolroot;
mod unpacked;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

pub(crate) use kernel::Series;
pub(crate) use machine::Machine;
use machine::Said;
pub(crate) use module::Module;

/// What to run, and where.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The kernel: a package of Debian
    #[arg(long, value_enum, default_value = "6.1")]
    kernel: Series,
    /// Copy this program into the machine, with its libraries, as /bin/NAME; may be given several times
    #[arg(long = "program", value_name = "FILE")]
    programs: Vec<PathBuf>,
    /// Build this module of kernel/ for the kernel, to be found as /modules/NAME.ko; with a colon and its
    /// parameters it is loaded before the script runs, with a plus and a word it is compiled with that word
    /// defined; may be given several times
    #[arg(long = "module", value_name = "NAME[+DEFINE][:PARAMETERS]")]
    modules: Vec<Module>,
    /// Load these modules of the kernel's own packages first, with what they need; separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    stock: Vec<String>,
    /// Processors of the machine
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    processors: u8,
    /// Memory of the machine in MiB
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    #[arg(value_parser = clap::value_parser!(u32).range(256..))]
    memory: u32,
    /// Further words for the kernel's command line; the last one of a name counts
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    words: String,
    /// Make the machine's clocks count instructions; needs one processor
    #[arg(long, conflicts_with = "processors")]
    counted: bool,
    /// End the machine after so many seconds
    #[arg(long, default_value_t = 300)]
    seconds: u32,
    /// Only fetch headers for modules, and print the kernel's release and their folder
    #[arg(long)]
    headers: bool,
    /// The script, for busybox's shell
    #[arg(required_unless_present = "headers")]
    script: Option<PathBuf>,
}

/// Runs the script and prints what it says. Fails as the script does.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    let said = match &arguments.script {
        Some(script) if !arguments.headers => run_script(root, arguments, script),
        _ => machine::headers(root, arguments.kernel).map(|(release, tree)| {
            println!("{release} {}", tree.display());
            Said { status: 0 }
        }),
    };
    match said {
        Ok(Said { status: 0 }) => ExitCode::SUCCESS,
        Ok(Said { status }) => {
            eprintln!("guest: the script ended with {status}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("guest: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_script(root: &Path, arguments: &Arguments, script: &Path) -> Result<Said, String> {
    let script = std::fs::read_to_string(script).map_err(|error| format!("{}: {error}", script.display()))?;
    let machine = Machine {
        kernel: arguments.kernel,
        programs: arguments.programs.clone(),
        modules: arguments.modules.clone(),
        stock: arguments.stock.clone(),
        cards: &[],
        processors: arguments.processors,
        memory_mib: arguments.memory,
        words: arguments.words.clone(),
        files: Vec::new(),
        counted: arguments.counted,
        seconds: arguments.seconds,
    };
    machine.run(root, &script, |line| println!("{line}"))
}
