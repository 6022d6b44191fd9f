//! Tools that come as modules of Go, each at one version, built once into `target/tools`.
//!
//! It must never install into the user's own folder. Debian 12 has a Go that is too old for them: where there
//! is no newer one they are left out, which is said and is no failure.

use std::path::Path;
use std::process::Command;

use super::cargo_tools::folder;
use super::command::succeed;
use super::needs::Purpose;

/// A tool that Go builds.
struct GoTool {
    /// The first task that needs it.
    purpose: Purpose,
    /// Name of the program.
    name: &'static str,
    module: &'static str,
    /// Where in the module its program stands.
    program: &'static str,
    /// The one version.
    version: &'static str,
    /// The oldest Go that builds it, as its go.mod says.
    go: (u32, u32),
    /// What it is for, in a few words.
    reason: &'static str,
}

const TOOLS: &[GoTool] = &[
    GoTool {
        purpose: Purpose::Test,
        name: "h2spec",
        module: "github.com/summerwind/h2spec",
        program: "/cmd/h2spec",
        version: "v2.2.1+incompatible",
        go: (1, 22),
        reason: "what a server of HTTP/2 must do, case by case",
    },
    GoTool {
        purpose: Purpose::Test,
        name: "pebble",
        module: "github.com/letsencrypt/pebble/v2",
        program: "/cmd/pebble",
        version: "v2.10.1",
        go: (1, 24),
        reason: "an authority of ACME to test with",
    },
    GoTool {
        purpose: Purpose::Test,
        name: "pebble-challtestsrv",
        module: "github.com/letsencrypt/pebble/v2",
        program: "/cmd/pebble-challtestsrv",
        version: "v2.10.1",
        go: (1, 24),
        reason: "the names that such an authority looks up",
    },
    GoTool {
        purpose: Purpose::Bench,
        name: "vegeta",
        module: "github.com/tsenart/vegeta/v12",
        program: "",
        version: "v12.12.0",
        go: (1, 22),
        reason: "open-loop load of Go before the gate",
    },
    GoTool {
        purpose: Purpose::Bench,
        name: "k6",
        module: "go.k6.io/k6",
        program: "",
        version: "v1.3.0",
        go: (1, 23),
        reason: "load by scripts before the gate",
    },
    GoTool {
        purpose: Purpose::Bench,
        name: "nats-server",
        module: "github.com/nats-io/nats-server/v2",
        program: "",
        version: "v2.15.3",
        go: (1, 26),
        reason: "a broker of messages beside DOSTP",
    },
    GoTool {
        purpose: Purpose::Bench,
        name: "nats",
        module: "github.com/nats-io/natscli",
        program: "/nats",
        version: "v0.5.1",
        go: (1, 26),
        reason: "requests by that broker, and their times",
    },
    GoTool {
        purpose: Purpose::Soak,
        name: "toxiproxy-server",
        module: "github.com/Shopify/toxiproxy/v2",
        program: "/cmd/server",
        version: "v2.12.0",
        go: (1, 23),
        reason: "a bad way between the proxy and an application",
    },
];

/// Whether every tool of a task is there, at its version, that can be built here.
pub(crate) fn are_installed(root: &Path, purpose: Purpose) -> bool {
    missing(root, purpose).all(|tool| !is_new_enough(go_version(), tool.go))
}

/// Builds what is missing.
///
/// # Errors
/// When Go fails; says so.
pub(crate) fn install(root: &Path, purpose: Purpose) -> Result<(), String> {
    let here = go_version();
    for tool in missing(root, purpose) {
        if is_new_enough(here, tool.go) {
            build(root, tool)?;
        } else {
            println!("left out: {}", too_old(tool, here));
        }
    }
    Ok(())
}

/// Says what is missing.
pub(crate) fn print_missing(root: &Path, purpose: Purpose) {
    for tool in missing(root, purpose) {
        println!("missing: {:<18} {}", format!("{} {}", tool.name, tool.version), tool.reason);
    }
}

fn missing(root: &Path, purpose: Purpose) -> impl Iterator<Item = &'static GoTool> {
    let folder = folder(root).join("bin");
    TOOLS.iter().filter(move |tool| tool.purpose <= purpose && !is_there(&folder, tool))
}

/// Each program of Go says of which modules it was built.
fn is_there(folder: &Path, tool: &GoTool) -> bool {
    let program = folder.join(tool.name);
    let said = Command::new("go").args(["version", "-m"]).arg(program).output();
    said.is_ok_and(|said| {
        let text = String::from_utf8_lossy(&said.stdout);
        text.lines().any(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            words.starts_with(&["mod", tool.module, tool.version])
        })
    })
}

fn build(root: &Path, tool: &GoTool) -> Result<(), String> {
    let source = format!("{}{}@{}", tool.module, tool.program, tool.version);
    println!("go install {source}");
    let folder = folder(root);
    // All that Go keeps besides stands here, may be written to (-modcacherw), and is removed.
    let workshop = folder.join("build-go");
    let mut command = Command::new("go");
    let made = workshop.join("bin");
    command.args(["install", &source]).env("GOBIN", &made).env("GOPATH", workshop.join("path"));
    command.env("GOCACHE", workshop.join("cache")).env("GOFLAGS", "-modcacherw -trimpath");
    command.env("GOMODCACHE", workshop.join("modules")).current_dir(root);
    succeed(&mut command)?;
    put(&made, &folder.join("bin"), tool.name)?;
    std::fs::remove_dir_all(&workshop).map_err(|error| format!("{}: {error}", workshop.display()))
}

/// Puts the one program that Go has made into a folder, by a name that says what it is: Go calls it as the
/// last folder of its source.
fn put(made: &Path, folder: &Path, name: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", made.display());
    let mut programs = std::fs::read_dir(made).map_err(failed)?;
    let program = programs.next().ok_or_else(|| format!("{}: Go has made nothing", made.display()))?;
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::rename(program.map_err(failed)?.path(), folder.join(name)).map_err(failed)
}

/// The version of the Go that is here.
fn go_version() -> Option<(u32, u32)> {
    let said = Command::new("go").args(["env", "GOVERSION"]).output().ok()?;
    version_of(&String::from_utf8_lossy(&said.stdout))
}

/// `go1.26.8` or `go1.19`.
fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().strip_prefix("go")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn is_new_enough(here: Option<(u32, u32)>, needed: (u32, u32)) -> bool {
    here.is_some_and(|here| here >= needed)
}

fn too_old(tool: &GoTool, here: Option<(u32, u32)>) -> String {
    let GoTool { name, version, go: (major, minor), .. } = tool;
    let here = here.map_or_else(|| "none".to_owned(), |(major, minor)| format!("{major}.{minor}"));
    format!("{name} {version} needs Go {major}.{minor} or later, here is {here}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_compared() {
        assert_eq!(version_of("go1.26.8\n"), Some((1, 26)));
        assert_eq!(version_of("go1.19"), Some((1, 19)));
        assert_eq!(version_of("devel"), None);
        assert!(is_new_enough(Some((1, 26)), (1, 23)) && !is_new_enough(Some((1, 19)), (1, 22)));
        assert!(!is_new_enough(None, (1, 22)));
        let left = too_old(&TOOLS[0], Some((1, 19)));
        assert_eq!(left, "h2spec v2.2.1+incompatible needs Go 1.22 or later, here is 1.19");
    }

    #[test]
    fn an_empty_folder_misses_the_tools_of_its_task_alone() {
        let nowhere = Path::new("/no such folder");
        let named = |purpose| {
            let tools = TOOLS.iter().filter(move |tool| tool.purpose <= purpose && !is_there(nowhere, tool));
            tools.map(|tool| tool.name).collect::<Vec<_>>()
        };
        assert_eq!(named(Purpose::Test), ["h2spec", "pebble", "pebble-challtestsrv"]);
        let of_bench = ["h2spec", "pebble", "pebble-challtestsrv", "vegeta", "k6", "nats-server", "nats"];
        assert_eq!(named(Purpose::Bench), of_bench);
        assert_eq!(named(Purpose::Soak).last(), Some(&"toxiproxy-server"));
    }
}
