//! The emulated machine: started, listened to, ended.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::debug;
use super::headers;
use super::image::{self, ImageContent};
use super::kernel::{self, Kernel, Series};
use super::module::{self, Module};
use super::stock;

/// Words of the kernel's command line: the same addresses each time, no delays that faults of processors make
/// necessary, no self-tests of ciphers (they run for seconds after boot, beside what is counted), warnings on
/// the console. The kernel does not try whether its timer ticks: on a busy host the ticks come late, and the
/// boot ended with "IO-APIC + timer doesn't work".
const KERNEL_WORDS: &str = "console=ttyS0 loglevel=5 nokaslr panic=-1 mitigations=off cryptomgr.notests=1 \
    no_timer_check";
/// The machine ends at the first warning, fault or task that hangs: a test that comes to its end had none.
const WATCH_WORDS: &str = "panic_on_warn=1 oops=panic hung_task_panic=1";
/// Freed objects of the kernel are poisoned and looked at, but where instructions are counted. `FZPU` also
/// notes who allocated each, which is a quarter of a machine's work: `--words` asks for it.
const POISON_WORDS: &str = "slub_debug=FZP slab_debug=FZP";
/// So many of the kernel's last lines are told when the machine ends before the script does: a warning and
/// the panic it ends in have some seventy together.
const CONSOLE_LINES_MAX: usize = 150;
/// What the kernel says of locks that are taken wrongly: its check of them warns in words, and goes on.
const LOCK_WORDS: [&str; 4] =
    ["possible circular", "possible recursive", "inconsistent lock", "suspicious RCU"];
/// A clock that goes by instructions, and a fixed beginning.
const COUNTED: [&str; 6] = ["-icount", "shift=0,sleep=off", "-rtc", "base=2024-01-01,clock=vm", "-seed", "1"];

/// A machine, described.
pub(crate) struct Machine {
    /// What it boots.
    pub(crate) kernel: Series,
    /// Programs of this machine to be found in its /bin.
    pub(crate) programs: Vec<PathBuf>,
    /// Modules of `kernel/`, built for what it boots.
    pub(crate) modules: Vec<Module>,
    /// Modules of the kernel's own packages, by name; they are loaded first.
    pub(crate) stock: Vec<String>,
    /// Models of network cards; it has two of each, which lie on one line.
    pub(crate) cards: &'static [&'static str],
    /// How many processors the machine has.
    pub(crate) processors: u8,
    /// How much memory the machine has.
    pub(crate) memory_mib: u32,
    /// Further words for the kernel's command line.
    pub(crate) words: String,
    /// Files in its root folder, by name.
    pub(crate) files: Vec<(&'static str, String)>,
    /// Whether its clocks count instructions: a nanosecond each.
    pub(crate) counted: bool,
    /// Seconds after which it is ended.
    pub(crate) seconds: u32,
}

/// Boots of a machine whose kernel falls before the script begins.
const BOOTS_MAX: usize = 3;

/// How the script ended.
pub(crate) struct Said {
    /// Its exit status.
    pub(crate) status: i32,
}

/// The kernel of a series, fetched or built if it is not there.
fn kernel_of(root: &Path, series: Series) -> Result<Kernel, String> {
    match series {
        Series::Debug6_1 => debug::kernel(root),
        Series::V6_1 | Series::V6_12 | Series::Newest => kernel::kernel(root, series),
    }
}

/// The release of a kernel, and the folder of its headers, fetched if they are not there.
///
/// # Errors
/// apt cannot fetch them.
pub(super) fn headers(root: &Path, series: Series) -> Result<(String, PathBuf), String> {
    let _one_at_a_time = kernel::lock(root)?;
    let kernel = kernel_of(root, series)?;
    let headers = headers::headers(&kernel, series)?;
    let tree = headers.root.map_or_else(
        || headers.tree.clone(),
        |inside| inside.folder().join(headers.tree.strip_prefix("/").unwrap_or(&headers.tree)),
    );
    Ok((kernel.release, tree))
}

impl Machine {
    /// Boots, runs the script, and gives its end; each line it says goes to `hear` at once.
    ///
    /// # Errors
    /// QEMU, a kernel, a program or a module is missing; or the machine did not come to the script's end, as
    /// after a warning or a fault of the kernel: its last lines are told.
    pub(crate) fn run(&self, root: &Path, script: &str, mut hear: impl FnMut(&str)) -> Result<Said, String> {
        let folder = std::env::temp_dir().join(format!("staunch-guest-{}", std::process::id()));
        let work = folder.with_extension("stock");
        let Prepared { kernel, stock, modules } = self.prepared(root, &work)?;
        let content = ImageContent {
            programs: &self.programs,
            modules: &[&stock[..], &modules].concat(),
            load: &(loads(&stock) + &self.load()),
            files: &self.files,
            script,
        };
        let image = image::make(&folder, &content)?;
        let _ = std::fs::remove_dir_all(&work);
        let mut boots = 1;
        let outcome = loop {
            match self.boot(&kernel.image, &image, &mut hear)? {
                Boot::Over(outcome) => break outcome,
                // The emulated processors of QEMU fall now and then while a kernel changes its own code;
                // nothing of ours has run by then.
                Boot::Fell(lines) if boots == BOOTS_MAX => break Err(lines),
                Boot::Fell(_) => {
                    eprintln!("guest: the kernel fell before the script began; it is booted again")
                }
            }
            boots += 1;
        };
        let _ = std::fs::remove_dir_all(&folder);
        outcome
    }

    /// Boots once.
    fn boot(&self, kernel: &Path, image: &Path, hear: &mut impl FnMut(&str)) -> Result<Boot, String> {
        let mut child = self
            .command(kernel, image)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("qemu-system-x86_64: {error}"))?;
        let printed = child.stdout.take().map(BufReader::new).ok_or("no output of QEMU")?;
        let mut console = VecDeque::new();
        let heard = listen(printed, hear, &mut console);
        let status = child.wait().map_err(|error| error.to_string())?;
        if let Some(said) = heard.said {
            return Ok(Boot::Over(Ok(said)));
        }
        let fell = !heard.has_begun && console.iter().any(|line| line.contains("Kernel panic"));
        let lines = Vec::from(console).join("\n");
        let limit_s = self.seconds;
        let why = format!("the machine did not come to the script's end in {limit_s} s ({status})\n{lines}");
        Ok(if fell { Boot::Fell(why) } else { Boot::Over(Err(why)) })
    }

    /// The kernel and the modules, fetched and built if they are not there: by one process at a time, for
    /// others need the same files. `work` is for files of this machine alone.
    fn prepared(&self, root: &Path, work: &Path) -> Result<Prepared, String> {
        let _one_at_a_time = kernel::lock(root)?;
        let kernel = kernel_of(root, self.kernel)?;
        let stock = stock::files(&kernel, self.kernel, &self.stock, work)?;
        let modules = self.modules.iter().map(|module| module::built(root, &kernel, self.kernel, module));
        let modules = modules.collect::<Result<Vec<_>, _>>()?;
        Ok(Prepared { kernel, stock, modules })
    }

    /// The lines of a shell that load modules, each or none.
    fn load(&self) -> String {
        let loaded = self.modules.iter().filter_map(|module| Some((module, module.parameters.as_ref()?)));
        loaded
            .map(|(module, words)| format!("insmod /modules/{}.ko {words} || exit\n", module.name))
            .collect()
    }

    fn command(&self, kernel: &Path, image: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.arg(self.seconds.to_string()).arg("qemu-system-x86_64");
        command.args(["-accel", "tcg", "-cpu", "max", "-nic", "none"]);
        command.args(["-smp", &self.processors.to_string(), "-m", &format!("{}M", self.memory_mib)]);
        command.args(["-display", "none", "-serial", "stdio", "-monitor", "none", "-no-reboot"]);
        command.args(cards(self.cards));
        if self.counted {
            command.args(COUNTED);
        }
        command.arg("-kernel").arg(kernel).arg("-initrd").arg(image).args(["-append", &self.kernel_words()]);
        command
    }

    fn kernel_words(&self) -> String {
        let poison = if self.counted { "" } else { POISON_WORDS };
        [KERNEL_WORDS, WATCH_WORDS, poison, &self.words].join(" ")
    }
}

/// The outcome of a boot.
enum Boot {
    /// The script has ended, or the machine has failed for good.
    Over(Result<Said, String>),
    /// The kernel has fallen before the script began, with these last lines.
    Fell(String),
}

/// Words of a machine that were heard.
struct Heard {
    /// How the script ended, if it did.
    said: Option<Said>,
    /// Whether the script has begun.
    has_begun: bool,
}

/// QEMU's words for cards: a hub for each model, with two of them.
fn cards(models: &[&str]) -> Vec<String> {
    let card = |(hub, model): (usize, &&str), end: usize| {
        let (name, address) = (format!("line{hub}{end}"), format!("52:54:00:00:0{hub}:0{end}"));
        let line = format!("hubport,id={name},hubid={hub}");
        ["-netdev".to_owned(), line, "-device".to_owned(), format!("{model},netdev={name},mac={address}")]
    };
    models.iter().enumerate().flat_map(|one| [card(one, 0), card(one, 1)].concat()).collect()
}

/// What a machine is made of.
struct Prepared {
    kernel: Kernel,
    /// In the order of loading.
    stock: Vec<PathBuf>,
    modules: Vec<PathBuf>,
}

/// The lines of a shell that load files in this order.
fn loads(files: &[PathBuf]) -> String {
    let names = files.iter().filter_map(|file| file.file_name()?.to_str());
    names.map(|name| format!("insmod /modules/{name} || exit\n")).collect()
}

/// Takes the lines between the words of the first process, and keeps the kernel's last ones in `console`.
/// Nothing is said if the last word does not come, or the kernel has said that a lock was taken wrongly.
fn listen(printed: impl BufRead, hear: &mut impl FnMut(&str), console: &mut VecDeque<String>) -> Heard {
    let (mut has_begun, mut is_faulty) = (false, false);
    for line in printed.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches('\r');
        if let Some(status) = line.strip_prefix("guest: ends ") {
            let status = status.parse().ok().filter(|_| has_begun && !is_faulty);
            return Heard { said: status.map(|status| Said { status }), has_begun };
        }
        if line.ends_with("guest: begins") {
            has_begun = true;
        } else if is_of_the_kernel(line) {
            is_faulty |= LOCK_WORDS.iter().any(|words| line.contains(words));
            console.push_back(line.to_owned());
            if console.len() > CONSOLE_LINES_MAX {
                console.pop_front();
            }
        } else if has_begun {
            hear(line);
        }
    }
    Heard { said: None, has_begun }
}

/// Whether the kernel says a line: with the time before it, as in `[    1.234567] text`.
fn is_of_the_kernel(line: &str) -> bool {
    let stamp = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    stamp.is_some_and(|(stamp, _)| stamp.trim_start().parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(printed: &[u8]) -> (Option<i32>, Vec<String>, Vec<String>) {
        let (mut heard, mut console) = (Vec::new(), VecDeque::new());
        let said = listen(printed, &mut |line| heard.push(line.to_owned()), &mut console).said;
        (said.map(|said| said.status), heard, console.into())
    }

    #[test]
    fn the_scripts_lines_and_status_are_told_from_the_rest() {
        let printed =
            b"SeaBIOS\r\n\x1b[2Jguest: begins\r\none\r\n[   12.345678] noise\r\n[two] 2\r\nguest: ends 3\r\n";
        let (status, lines, console) = heard(printed);
        assert_eq!((status, lines), (Some(3), vec!["one".to_owned(), "[two] 2".to_owned()]));
        assert_eq!(console, ["[   12.345678] noise"]);
        assert_eq!(heard(b""), (None, vec![], vec![]));
        let locks =
            b"guest: begins\n[    1.0] WARNING: possible circular locking dependency\nguest: ends 0\n";
        assert_eq!(heard(locks).0, None);
    }

    #[test]
    fn two_cards_of_a_model_lie_on_one_line() {
        let words = cards(&["e1000"]).join(" ");
        let expected = "-netdev hubport,id=line00,hubid=0 -device e1000,netdev=line00,mac=52:54:00:00:00:00 \
            -netdev hubport,id=line01,hubid=0 -device e1000,netdev=line01,mac=52:54:00:00:00:01";
        assert_eq!(words, expected);
    }

    #[test]
    fn the_end_of_a_machine_is_told_by_the_kernels_last_lines() {
        let printed =
            "guest: begins\n".to_owned() + &"[    1.000000] Kernel panic\n".repeat(2 * CONSOLE_LINES_MAX);
        let (status, lines, console) = heard(printed.as_bytes());
        assert_eq!((status, lines.len(), console.len()), (None, 0, CONSOLE_LINES_MAX));
    }
}
