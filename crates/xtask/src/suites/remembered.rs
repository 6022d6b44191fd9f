//! Suites that passed before and are what they were: not run again, as `go test` does not.
//!
//! It owns the files `target/tests/SUITE.passed`. What a suite's outcome may depend on makes a name: its
//! program's bytes; every file of the work tree that is no Rust source, for tests read scripts, pages, C and
//! vectors; the kernel and the packages of this machine; variables of ours and of CI; and, but for suites
//! known to run no program of this workspace, the bytes of all of those. It must never remember a failure,
//! and knows nothing where the work tree is not git's.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::parts;
use super::suite::Suite;

/// Packages whose suites run no program of this workspace but themselves.
const ON_THEIR_OWN: [&str; 17] = [
    "acme",
    "confine",
    "config",
    "dictionary",
    "doctor",
    "dostp",
    "engine",
    "figures",
    "gate",
    "lab",
    "live",
    "loadgen",
    "netio",
    "protocol",
    "queueing",
    "server",
    "tls",
];
/// The suite of theirs that does: an example's program.
const NOT_ALONE: &str = "engine-clients";
/// The programs that the tests of modules run; the server is not among them.
const OF_MODULES: &[&str] = &["xtask", "kernel-strain"];

/// Debian's list of what is installed. A tool that is missing skips tests, and a newer one may answer
/// otherwise.
const PACKAGES: &str = "/var/lib/dpkg/status";

/// What suites depend on, in the state of this run.
pub(super) struct Remembered {
    root: PathBuf,
    folder: PathBuf,
    /// A digest of each suite's program, by its path.
    programs: BTreeMap<PathBuf, String>,
    /// All that every suite depends on.
    tree: String,
    /// The programs that suites run, and their digests.
    built: Vec<(PathBuf, String)>,
}

impl Remembered {
    /// Looks at the tree and at what was built; `None` where that cannot be known.
    pub(super) fn look(root: &Path, folder: &Path, suites: &[Suite], built: &[PathBuf]) -> Option<Self> {
        let of = |programs: &[PathBuf]| {
            let files: Vec<OsString> = programs.iter().map(OsString::from).collect();
            Some(programs.iter().cloned().zip(digests(root, &files)?).collect::<Vec<_>>())
        };
        let programs: Vec<PathBuf> = suites.iter().map(|suite| suite.program.clone()).collect();
        Some(Self {
            root: root.to_owned(),
            folder: folder.to_owned(),
            programs: of(&programs)?.into_iter().collect(),
            tree: tree(root)?,
            built: of(built)?,
        })
    }

    /// How many tests of a suite passed, if it is what it was then.
    pub(super) fn passed(&self, suite: &Suite) -> Option<usize> {
        let text = fs::read_to_string(self.file(suite)).ok()?;
        let (name, passed) = text.trim().split_once(' ')?;
        (name == self.name(suite)?).then(|| passed.parse().ok())?
    }

    /// Notes that all tests of a suite passed, unless a file was changed meanwhile.
    pub(super) fn note(&self, suite: &Suite, passed: usize) {
        let is_as_before = tree(&self.root).is_some_and(|tree| tree == self.tree);
        if let Some(name) = self.name(suite).filter(|_| is_as_before) {
            // Where it cannot be written the suite runs again.
            let _ = fs::write(self.file(suite), format!("{name} {passed}\n"));
        }
    }

    fn file(&self, suite: &Suite) -> PathBuf {
        self.folder.join(format!("{}.passed", suite.name))
    }

    fn name(&self, suite: &Suite) -> Option<String> {
        let mut hasher = DefaultHasher::new();
        hasher.write(self.programs.get(&suite.program)?.as_bytes());
        hasher.write(self.tree.as_bytes());
        let runs = runs(suite);
        let is_run = |program: &Path| {
            runs.is_none_or(|names| {
                names.iter().any(|name| program.file_name().is_some_and(|file| file == *name))
            })
        };
        let run = self.built.iter().filter(|(program, _)| is_run(program));
        run.for_each(|(_, digest)| hasher.write(digest.as_bytes()));
        Some(format!("{:016x}", hasher.finish()))
    }
}

/// The names of the programs that a suite may run; `None` if that may be any.
fn runs(suite: &Suite) -> Option<&'static [&'static str]> {
    let package = suite.folder.file_name().and_then(|name| name.to_str());
    let is_on_its_own = package.is_some_and(|name| ON_THEIR_OWN.contains(&name));
    match suite.name.as_str() {
        NOT_ALONE => None,
        parts::MODULES => Some(OF_MODULES),
        _ => is_on_its_own.then_some(&[]),
    }
}

/// What every suite depends on: files, the kernel, variables.
fn tree(root: &Path) -> Option<String> {
    let mut tree = digests_text(root, &files(root)?)?;
    tree.push_str(&fs::read_to_string("/proc/sys/kernel/osrelease").ok()?);
    tree.extend(
        std::env::vars()
            .filter(|(name, _)| name == "CI" || name.starts_with("STAUNCH_"))
            .map(|(name, value)| format!("{name}={value}\n")),
    );
    Some(tree)
}

/// The files of the work tree, known to git or new, but for Rust sources, which are in the programs; and
/// [`PACKAGES`].
fn files(root: &Path) -> Option<Vec<OsString>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ":!*.rs"]);
    let output = git.current_dir(root).stderr(Stdio::null()).output().ok()?;
    let names = String::from_utf8(output.stdout).ok()?;
    let mut names: Vec<OsString> = names.split_terminator('\0').map(OsString::from).collect();
    let is_known = output.status.success() && !names.is_empty();
    names.push(PACKAGES.into());
    is_known.then_some(names)
}

/// A line for each of these files, by `sha256sum`: that one is built to be quick. A file that is not there
/// has none.
fn digests_text(root: &Path, files: &[OsString]) -> Option<String> {
    let mut text = String::new();
    for some in files.chunks(500) {
        let mut command = Command::new("sha256sum");
        let output = command.arg("--").args(some).current_dir(root).stderr(Stdio::null()).output().ok()?;
        text.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    Some(text)
}

/// A digest of each of these files, all of which are there.
fn digests(root: &Path, files: &[OsString]) -> Option<Vec<String>> {
    let text = digests_text(root, files)?;
    let digests: Vec<String> =
        text.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
    (digests.len() == files.len()).then_some(digests)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A work tree of git's with a page, a source, a program under test, and one that it may run.
    fn tree(name: &str) -> (PathBuf, Suite, PathBuf) {
        let root = std::env::temp_dir().join(format!("staunch-remembered-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("target")).expect("a folder");
        for (file, text) in [("page.md", "a"), ("a.rs", "a"), ("target/suite", "a"), ("target/server", "a")] {
            fs::write(root.join(file), text).expect("a file");
        }
        fs::write(root.join(".gitignore"), "/target\n").expect("a file");
        let made = Command::new("git").args(["init", "--quiet"]).current_dir(&root).status().expect("git");
        assert!(made.success());
        let suite = Suite {
            name: "s".into(),
            program: root.join("target/suite"),
            folder: root.join("engine"),
            words: Vec::new(),
        };
        (root.clone(), suite, root.join("target/server"))
    }

    /// Whether a suite that passed is run again once this was written to this file.
    fn is_run_again(name: &str, package: &str, file: &str) -> bool {
        let (root, mut suite, server) = tree(&format!("{name}-{package}"));
        suite.folder = root.join(package);
        let target = root.join("target");
        let look = |suite: &Suite| {
            Remembered::look(&root, &target, std::slice::from_ref(suite), std::slice::from_ref(&server))
                .expect("git's")
        };
        assert_eq!(look(&suite).passed(&suite), None);
        look(&suite).note(&suite, 7);
        assert_eq!(look(&suite).passed(&suite), Some(7));
        fs::write(root.join(file), "b").expect("a file");
        let passed = look(&suite).passed(&suite);
        fs::remove_dir_all(&root).expect("removed");
        passed.is_none()
    }

    #[test]
    fn a_suite_runs_again_when_what_it_depends_on_has_changed() {
        assert!(is_run_again("program", "protocol", "target/suite"));
        assert!(is_run_again("page", "protocol", "page.md"));
        assert!(is_run_again("new", "protocol", "new.sh"));
        assert!(is_run_again("server", "tests", "target/server"));
        assert!(!is_run_again("server", "protocol", "target/server"));
        assert!(!is_run_again("source", "tests", "a.rs"));
    }
}
