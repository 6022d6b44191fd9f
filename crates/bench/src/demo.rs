//! `cargo xtask demo`: stories of overload, each shown on this machine in under five minutes.
//!
//! The demo owns its progress on the terminal and the two files of each story, `bench/runs/overload.json` and
//! `.html`, `proxy.json` and `.html`. What is measured belongs to `gate.rs` and `generator.rs`. It must never
//! show a figure it has not measured, and never claim a bar: one round proves nothing.

mod model;
mod overload;
mod page;
mod proxied;
mod proxied_page;
mod record;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::gate::subject::Name;
use crate::setting::Setting;
use crate::setup::Programs;
use crate::{building, machine};
use overload::DemoPlan;

/// What is shown.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// What to show
    #[arg(value_enum)]
    story: Story,
    /// A staunch that is already built; without it one is built with --release
    #[arg(long, value_name = "FILE")]
    staunch: Option<PathBuf>,
    /// Servers to show of the story overload: nginx, staunch, apache
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = server)]
    servers: Vec<Name>,
    /// Length of one measurement of the story overload, in seconds
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Do not open the page
    #[arg(long)]
    quiet: bool,
}

/// The stories there are.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Story {
    /// Goodput against offered load, and under floods, with the gate and without
    Overload,
    /// Applications behind proxies, against offered load and when they change
    Proxy,
}

/// Shows it: 0 when everything was measured, 1 when something failed.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    match show(root, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn server(word: &str) -> Result<Name, String> {
    let found = Name::ALL.into_iter().find(|name| name.text() == word);
    found.ok_or_else(|| format!("there is no server '{word}'; there are nginx, staunch, apache"))
}

fn show(root: &Path, arguments: &Arguments) -> Result<(), String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let staunch = match &arguments.staunch {
        Some(given) => fs::canonicalize(given).map_err(|error| format!("{}: {error}", given.display()))?,
        None => build(root, &target)?,
    };
    let began = Instant::now();
    let page = match arguments.story {
        Story::Overload => overload(root, arguments, staunch, target.join("bench"))?,
        Story::Proxy => proxy(root, staunch, &target)?,
    };
    println!("it took {:.0} s", began.elapsed().as_secs_f64());
    if !arguments.quiet {
        open(&page);
    }
    Ok(())
}

/// The gate, off and on. Gives the page.
fn overload(
    root: &Path,
    arguments: &Arguments,
    staunch: PathBuf,
    scratch: PathBuf,
) -> Result<PathBuf, String> {
    let plan = DemoPlan::new(&arguments.servers, arguments.seconds, staunch.clone(), scratch.clone());
    let record = overload::run(&plan, root)?;
    let json = serde_json::to_string_pretty(&record).map_err(|error| error.to_string())?;
    let file = write(root, "overload.json", &(json + "\n"))?;
    let (curves, absences) = model::curves(&record, &file, &staunch, &scratch);
    let notes: Vec<String> =
        plan.notes().into_iter().chain(record.left_out.iter().cloned()).chain(absences).collect();
    notes.iter().for_each(|note| println!("note: {note}"));
    write(root, "overload.html", &page::html(&record, &curves, &notes))
}

/// Applications behind proxies. Gives the page.
fn proxy(root: &Path, staunch: PathBuf, target: &Path) -> Result<PathBuf, String> {
    let truth = match staunch.with_file_name("truth-server") {
        beside if beside.is_file() => beside,
        _ => building::truth_server(root, target)?,
    };
    let (scratch, tools) = (target.join("bench"), target.join("tools/bin"));
    let [floor, fan] = ["floor", "fan"].map(|name| scratch.join(name));
    let setting = Setting {
        root: root.to_path_buf(),
        programs: Programs { staunch, floor, fan, truth, oha: tools.join("oha"), tools },
        scratch,
        kinds: Vec::new(),
        rounds: 1,
        seconds: 1,
        record: false,
        progress: Setting::new_bar("proxy"),
    };
    let mut record = proxied::run(&setting)?;
    setting.progress.finish_and_clear();
    record.machine = machine::describe().into_iter().collect();
    record.commit = machine::commit(root);
    // A stored report names no folder of this machine.
    let short = |text: &String| text.replace(&*target.to_string_lossy(), "target");
    record.commands = record.commands.iter().map(short).collect();
    let json = serde_json::to_string_pretty(&record).map_err(|error| error.to_string())?;
    write(root, "proxy.json", &(json + "\n"))?;
    write(root, "proxy.html", &proxied_page::html(&record))
}

fn write(root: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let results = root.join("bench/runs");
    let path = results.join(name);
    let written = fs::create_dir_all(&results).and_then(|()| fs::write(&path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    println!("wrote bench/runs/{name}");
    Ok(path)
}

fn build(root: &Path, target: &Path) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "-p", "staunch", "-p", "staunch-instruments"]).current_dir(root);
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok(target.join("release/staunch"))
    } else {
        Err("staunch cannot be built".to_owned())
    }
}

/// Opens the page where there is a screen.
fn open(page: &Path) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let quiet = || Stdio::null();
    let opened =
        has_screen && Command::new("xdg-open").arg(page).stdout(quiet()).stderr(quiet()).spawn().is_ok();
    if !opened {
        println!("open {} in a browser", page.display());
    }
}
