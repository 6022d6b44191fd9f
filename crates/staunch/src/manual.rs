//! Manual pages and completions, made from the flags themselves.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man as Page;
use staunch_netio::clock;
use staunch_program::{Failure, output};

/// For which shell.
#[derive(Args)]
pub(crate) struct Completions {
    /// Shell that the completions are for
    #[arg(value_name = "bash|zsh|fish", value_parser = shell)]
    shell: Shell,
}

/// Where to.
#[derive(Args)]
pub(crate) struct Man {
    /// Folder for all pages; without it, the page of `staunch` goes to standard output
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

fn shell(text: &str) -> Result<Shell, String> {
    match text {
        "bash" => Ok(Shell::Bash),
        "zsh" => Ok(Shell::Zsh),
        "fish" => Ok(Shell::Fish),
        _ => Err("write bash, zsh or fish".into()),
    }
}

/// Prints what a shell needs to complete the words of this command.
pub(crate) fn completions(mut command: Command, wanted: &Completions) {
    let mut script = Vec::new();
    clap_complete::generate(wanted.shell, &mut command, "staunch", &mut script);
    print(&script);
}

/// Writes the pages of this command and its subcommands.
///
/// # Errors
/// They cannot be written.
pub(crate) fn man(mut command: Command, wanted: &Man) -> Result<(), Failure> {
    command.build();
    let pages = pages(&command, "staunch");
    let Some(folder) = &wanted.folder else {
        print(&page(&command, "staunch", &pages)?);
        return Ok(());
    };
    let failed = |path: &Path, error: std::io::Error| format!("cannot write {}: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (name, command) in &pages {
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, page(command, name, &pages)?).map_err(|error| failed(&path, error))?;
    }
    let path = folder.join("staunch.toml.5");
    let text = staunch_config::reference::manual(env!("CARGO_PKG_VERSION"), &date());
    std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
    Ok(())
}

/// Every subcommand that is shown, by the name of its page.
fn pages<'a>(command: &'a Command, name: &str) -> Vec<(String, &'a Command)> {
    let mut all = vec![(name.to_owned(), command)];
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        all.extend(pages(inner, &format!("{name}-{}", inner.get_name())));
    }
    all
}

fn page(command: &Command, name: &str, all: &[(String, &Command)]) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::new();
    render(command, name, all, &mut out).map_err(|error| format!("{name}.1: {error}"))?;
    Ok(out)
}

fn render(
    command: &Command,
    name: &str,
    all: &[(String, &Command)],
    out: &mut Vec<u8>,
) -> Result<(), std::io::Error> {
    let version = env!("CARGO_PKG_VERSION");
    let named = command.clone().name(name.to_owned()).version(version);
    let usage = named.clone().render_usage().to_string();
    let man = Page::new(named)
        .title(name)
        .date(date())
        .source(format!("staunch {version}"))
        .manual("User Commands");
    man.render_title(out)?;
    man.render_name_section(out)?;
    // Not the library's: a list of sixty flags without their values helps nobody.
    let words = usage.trim_start_matches("Usage:").trim().replace('-', "\\-").replace('\n', "\n.br\n");
    writeln!(out, ".SH SYNOPSIS\n{words}")?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if name == "staunch" || name == "staunch-serve" {
        out.write_all(EXIT_STATUS.as_bytes())?;
    } else if let Some(words) = command.get_after_help() {
        // Examples and exit codes, line by line as they stand in the help.
        // `\&` keeps a line that begins with a dot from being a request.
        let plain = |line: &str| format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-"));
        let lines: String = words.to_string().lines().map(plain).collect();
        write!(out, ".SH NOTES\n.nf\n{lines}.fi\n")?;
    }
    if name == "staunch-serve" {
        out.write_all(FILES.as_bytes())?;
    }
    let others: Vec<String> = all
        .iter()
        .filter(|(other, _)| is_beside(other, name))
        .map(|(other, _)| format!(".BR {} (1),", other.replace('-', "\\-")))
        .collect();
    writeln!(out, ".SH \"SEE ALSO\"\n{}", others.join("\n"))?;
    writeln!(out, ".BR staunch.toml (5)")
}

/// Whether two pages stand one below the other, such as `staunch-load` and `staunch-load-sweep`.
fn is_beside(other: &str, name: &str) -> bool {
    let above = |page: &str| page.rsplit_once('-').map(|(above, _)| above.to_owned());
    above(other).as_deref() == Some(name) || above(name).as_deref() == Some(other)
}

/// The day of the pages: of the sources if `SOURCE_DATE_EPOCH` tells it (reproducible-builds.org), else
/// today.
fn date() -> String {
    let told = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.trim().parse().ok());
    let time = told.map_or_else(clock::unix_time, |seconds| UNIX_EPOCH + Duration::from_secs(seconds));
    humantime::format_rfc3339_seconds(time).to_string().chars().take(DATE_LENGTH).collect()
}

/// Of `2026-11-24`.
const DATE_LENGTH: usize = 10;

const EXIT_STATUS: &str = r#".SH "EXIT STATUS"
.TP
.B 0
All went well.
.TP
.B 1
It could not run: an address is taken, a folder is missing.
.TP
.B 2
It was called wrongly.
.TP
.B 3
A threshold was crossed.
.TP
.B 78
The configuration cannot be used: the file, a variable of the environment, limits that cannot all hold.
.TP
.BR 126 ", " 127
The program of
.BR "staunch load" ", " model " and " lab
cannot be started, or is missing.
"#;

const FILES: &str = r#".SH ENVIRONMENT
.TP
.B STAUNCH_CONFIG
Name of the file with settings, where no flag names one.
.TP
.BI STAUNCH_ KEY
The value of a key, such as
.BR STAUNCH_KEEP_ALIVE=60s ;
a flag goes before it, the file after it.
.SH FILES
.TP
.I /etc/staunch/staunch.toml
Settings of the service, as the package installs it.
"#;

fn print(text: &[u8]) {
    output::print(&String::from_utf8_lossy(text));
}
