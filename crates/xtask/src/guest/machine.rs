//! The emulated machine: started, listened to, ended.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::image;
use super::kernel::{self, Series};

/// The machine's memory.
const MEMORY: &str = "2048M";
/// No noise of the kernel, the same addresses each time, no delays that faults of processors make necessary.
const KERNEL_WORDS: &str = "console=ttyS0 quiet nokaslr panic=-1 mitigations=off";
/// A clock that goes by instructions, and a fixed beginning.
const COUNTED: [&str; 6] = ["-icount", "shift=0,sleep=off", "-rtc", "base=2024-01-01,clock=vm", "-seed", "1"];

/// A machine of one processor.
pub(crate) struct Machine {
    /// What it boots.
    pub(crate) kernel: Series,
    /// Programs of this machine to be found in its /bin.
    pub(crate) programs: Vec<PathBuf>,
    /// Files in its root folder, by name.
    pub(crate) files: Vec<(&'static str, String)>,
    /// Whether its clocks count instructions: a nanosecond each.
    pub(crate) counted: bool,
    /// Seconds after which it is ended.
    pub(crate) seconds: u32,
}

/// How the script ended.
pub(crate) struct Said {
    /// Its exit status.
    pub(crate) status: i32,
}

impl Machine {
    /// Boots, runs the script, and gives its end; each line it says goes to `hear` at once.
    ///
    /// # Errors
    /// QEMU, a kernel or a program is missing; or the machine did not come to the script's end.
    pub(crate) fn run(&self, root: &Path, script: &str, mut hear: impl FnMut(&str)) -> Result<Said, String> {
        let kernel = kernel::image(root, self.kernel)?;
        let folder = std::env::temp_dir().join(format!("staunch-guest-{}", std::process::id()));
        let image = image::make(&folder, &self.programs, &self.files, script)?;
        let mut child = self
            .command(&kernel, &image)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("qemu-system-x86_64: {error}"))?;
        let printed = child.stdout.take().map(BufReader::new).ok_or("no output of QEMU")?;
        let said = listen(printed, &mut hear);
        let ended = child.wait();
        let _ = std::fs::remove_dir_all(&folder);
        said.ok_or_else(|| match ended {
            Ok(status) => {
                format!("the machine did not come to the script's end in {} s ({status})", self.seconds)
            }
            Err(error) => error.to_string(),
        })
    }

    fn command(&self, kernel: &Path, image: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.arg(self.seconds.to_string()).arg("qemu-system-x86_64");
        command.args(["-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", MEMORY, "-nic", "none"]);
        command.args(["-display", "none", "-serial", "stdio", "-monitor", "none", "-no-reboot"]);
        if self.counted {
            command.args(COUNTED);
        }
        command.arg("-kernel").arg(kernel).arg("-initrd").arg(image).args(["-append", KERNEL_WORDS]);
        command
    }
}

/// Takes the lines between the words of the first process. `None` if the last of them does not come.
fn listen(printed: impl BufRead, hear: &mut impl FnMut(&str)) -> Option<Said> {
    let mut has_begun = false;
    for line in printed.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches('\r');
        if let Some(status) = line.strip_prefix("guest: ends ") {
            return has_begun.then_some(Said { status: status.parse().ok()? });
        }
        if line.ends_with("guest: begins") {
            has_begun = true;
        } else if has_begun {
            hear(line);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_lines_and_status_are_told_from_the_rest() {
        let printed = b"SeaBIOS\r\n\x1b[2Jguest: begins\r\none\r\ntwo\r\nguest: ends 3\r\nreboot\r\n";
        let mut heard = Vec::new();
        let said = listen(&printed[..], &mut |line| heard.push(line.to_owned())).expect("an end");
        assert_eq!((heard, said.status), (vec!["one".to_owned(), "two".to_owned()], 3));
        assert!(listen(&b"guest: begins\nKernel panic\n"[..], &mut |_| ()).is_none());
        assert!(listen(&b""[..], &mut |_| ()).is_none());
    }
}
