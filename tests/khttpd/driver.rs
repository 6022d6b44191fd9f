//! The program of C files, built once, started by each test.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// A running program.
pub(crate) struct Driver {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

/// Builds the program if that was not done, and starts it. `None` where it cannot be built, which is said.
pub(crate) fn start() -> Option<Driver> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let program = match BUILT.get_or_init(build) {
        Ok(program) => program,
        Err(reason) if std::env::var_os("CI").is_none_or(|ci| ci != "true") => {
            println!("skipped: {reason}");
            return None;
        }
        Err(reason) => panic!("{reason}"),
    };
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    Some(Driver { child, input, output })
}

fn build() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project").to_path_buf();
    let probe = Command::new("cc")
        .args(["-fsanitize=address,undefined", "-x", "c", "-", "-o"])
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("sanitizers"))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .and_then(|mut child| {
            child.stdin.take().expect("a pipe").write_all(b"int main(void) { return 0; }\n")?;
            child.wait()
        });
    if !probe.as_ref().is_ok_and(std::process::ExitStatus::success) {
        return Err(format!("cc does not build with -fsanitize=address,undefined ({probe:?})"));
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("khttpd-driver");
    let folder = root.join("kernel/khttpd");
    let output = Command::new("cc")
        .args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I"])
        .arg(&folder)
        .args(FREESTANDING.map(|name| folder.join(name)))
        .arg(root.join("tests/khttpd/driver.c"))
        .arg("-o")
        .arg(&program)
        .output()
        .map_err(|error| format!("cc: {error}"))?;
    // What does not compile is a fault, wherever it is found.
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(program)
}

/// The files that compile in the kernel and here.
const FREESTANDING: [&str; 15] = [
    "answer.c",
    "body.c",
    "condition.c",
    "date.c",
    "encoding.c",
    "fields.c",
    "listing.c",
    "mime.c",
    "output.c",
    "path.c",
    "piece.c",
    "range.c",
    "request.c",
    "target.c",
    "text.c",
];

impl Driver {
    /// Asks one question. The answer, or what the program said when it ended.
    pub(crate) fn ask(&mut self, letter: u8, input: &[u8]) -> Result<String, String> {
        let length = u32::try_from(input.len()).expect("a short input").to_le_bytes();
        let frame = [&[letter][..], &length, input].concat();
        let mut size = [0; 4];
        let asked = self.input.write_all(&frame).and_then(|()| self.output.read_exact(&mut size));
        let mut answer = vec![0; u32::from_le_bytes(size) as usize];
        match asked.and_then(|()| self.output.read_exact(&mut answer)) {
            Ok(()) => String::from_utf8(answer).map_err(|error| error.to_string()),
            Err(_) => {
                let mut said = String::new();
                let told = self.child.stderr.take().expect("a pipe").read_to_string(&mut said);
                Err(told.map_or_else(|error| error.to_string(), |_| said))
            }
        }
    }

    /// Asks one question that has an answer.
    pub(crate) fn must(&mut self, letter: u8, input: &[u8]) -> String {
        self.ask(letter, input).unwrap_or_else(|said| panic!("{:?}:\n{said}", String::from_utf8_lossy(input)))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
