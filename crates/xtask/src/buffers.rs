//! `cargo xtask buffers`: where the buffers come from that a web server's host receives into.
//!
//! It owns the table: counts of `gate-buffers` by interface and work, and the shares that follow from them.
//! The script `bench/buffers.sh` lays the lines, in an emulated machine, or here in namespaces of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, ValueEnum as _};

use crate::guest::{Machine, Series};
use crate::install::succeed;
use crate::running::{cargo, output, target};

const SCRIPT: &str = "bench/buffers.sh";
/// Cards of the machine, the kernel's modules for them, and the script's words: model and both interfaces.
const CARDS: [&str; 2] = ["virtio-net-pci", "e1000"];
const MODULES: [&str; 4] = ["veth", "virtio_pci", "virtio_net", "e1000"];
const PAIRS: [&str; 6] = ["virtio_net", "eth0", "eth1", "e1000", "eth2", "eth3"];
/// Beginning of the names of beds that are a veth pair.
const VETH: &str = "veth";
/// The program that lays lines.
const IP: &str = "/bin/ip";
/// A machine that is not done by then hangs.
const SECONDS_MAX: u32 = 900;
/// The key of what was counted here.
const HERE: &str = "here";
/// The script here: names of namespaces are its own.
const APART: &str = "mkdir -p /run/netns && mount -t tmpfs none /run/netns && exec sh \"$0\"";

/// Where to count.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The kernel, a package of Debian, in an emulated machine; without it that of this machine, as root
    #[arg(long, value_enum)]
    kernel: Option<Series>,
    /// Write the table to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Numbers by interface, work and count.
type Rows = BTreeMap<String, f64>;

/// Counts and prints a table.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> ExitCode {
    match count(root, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("buffers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn count(root: &Path, arguments: &Arguments) -> Result<(), String> {
    let mut build = cargo();
    let what = ["build", "--quiet", "--profile", "fast", "--workspace", "--bin", "staunch"];
    build.args(what).args(["--example", "gate-buffers", "--manifest-path"]).arg(root.join("Cargo.toml"));
    succeed(&mut build)?;
    let said = match arguments.kernel {
        Some(series) => in_machine(root, series)?,
        None => here(root)?,
    };
    let rows = with_shares(rows(&said)?);
    let name = arguments.kernel.and_then(|series| Some(series.to_possible_value()?.get_name().to_owned()));
    let name = name.unwrap_or_else(|| HERE.to_owned());
    println!("Linux {name}:");
    rows.iter().for_each(|(row, number)| println!("{row:<44} {:>12}", (number * 100.0).round() / 100.0));
    let Some(file) = &arguments.json else { return Ok(()) };
    let text = serde_json::to_string_pretty(&BTreeMap::from([(name, rows)])).map_err(|e| e.to_string())?;
    fs::write(file, text + "\n").map_err(|error| format!("{}: {error}", file.display()))
}

fn programs(root: &Path) -> [PathBuf; 2] {
    let built = target(root).join("fast");
    [built.join("staunch"), built.join("examples/gate-buffers")]
}

fn in_machine(root: &Path, kernel: Series) -> Result<String, String> {
    let script = fs::read_to_string(root.join(SCRIPT)).map_err(|error| format!("{SCRIPT}: {error}"))?;
    let machine = Machine {
        kernel,
        programs: [&programs(root)[..], &[IP.into()]].concat(),
        modules: Vec::new(),
        stock: MODULES.map(str::to_owned).into(),
        cards: &CARDS,
        processors: 1,
        memory_mib: 2048,
        words: String::new(),
        files: Vec::new(),
        counted: true,
        seconds: SECONDS_MAX,
    };
    let mut said = String::new();
    let script = format!("set -- {}\n{script}", PAIRS.join(" "));
    match machine.run(root, &script, |line| said += &format!("{line}\n"))?.status {
        0 => Ok(said),
        status => Err(format!("{SCRIPT} ended with {status}\n{said}")),
    }
}

fn here(root: &Path) -> Result<String, String> {
    let [staunch, counter] = programs(root);
    let mut folders: Vec<PathBuf> =
        [staunch, counter].iter().filter_map(|p| Some(p.parent()?.into())).collect();
    folders.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    let path = std::env::join_paths(folders).map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "sh", "-c", APART]).arg(root.join(SCRIPT)).env("PATH", path);
    output(&mut command)
}

/// The numbers of lines `INTERFACE WORK NUMBER COUNT`.
fn rows(said: &str) -> Result<Rows, String> {
    let row = |line: &str| {
        let mut words = line.splitn(4, ' ');
        let row = (words.next()?, words.next()?, words.next()?.parse().ok()?, words.next()?);
        Some((format!("{} {} {}", row.0, row.1, row.3), row.2))
    };
    let rows = said.lines().map(|line| row(line).ok_or_else(|| format!("not understood: {line:?}")));
    match rows.collect::<Result<Rows, _>>()? {
        rows if rows.is_empty() => Err("nothing was counted".to_owned()),
        rows => Ok(rows),
    }
}

/// Adds shares in percent: of packets that are small, and of received buffers that the pools had ready. Pages
/// that were taken while packets were received may have been for something else, so the latter is a least.
/// The other one of two cards receives on the same processor into pages of its own, so they tell nothing
/// there, while a veth pair's other end needs none.
fn with_shares(mut rows: Rows) -> Rows {
    let beds: Vec<String> =
        rows.keys().filter_map(|row| Some(row.strip_suffix(" received small")?.to_owned())).collect();
    for bed in beds {
        let of = |name: &str| rows.get(&format!("{bed} {name}")).copied().unwrap_or_default();
        let sum = |names: &[&str]| names.iter().map(|name| of(name)).sum::<f64>();
        let received = of("received small") / sum(&["received small", "received large"]);
        let all = ["received small", "received large", "sent small", "sent large"];
        let small = sum(&["received small", "sent small"]) / sum(&all);
        let mut shares = vec![("received small", received), ("small", small)];
        let data = ["data page_pool", "data fragment", "data small head", "data other"];
        let missed = of("data other") + of("pages pool").max(of("pages receiving"));
        if bed.starts_with(VETH) {
            shares.push(("ready", 1.0 - missed / sum(&data)));
        }
        for (name, share) in shares {
            rows.insert(format!("{bed} {name}, %"), 100.0 * share);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_from_counts() {
        let card = with_shares(BTreeMap::from([("e1000 new received small".to_owned(), 1.0)]));
        assert!(!card.contains_key("e1000 new ready, %"));
        let said = "veth new 30 received small\nveth new 10 received large\nveth new 0 sent small\n\
            veth new 60 sent large\nveth new 38 data page_pool\nveth new 2 data other\n\
            veth new 1 pages pool\nveth new 2 pages receiving\n";
        let rows = with_shares(rows(said).expect("lines of counts"));
        assert_eq!(rows["veth new received small"], 30.0);
        assert_eq!(rows["veth new received small, %"], 75.0);
        assert_eq!(rows["veth new small, %"], 30.0);
        assert_eq!(rows["veth new ready, %"], 90.0);
    }

    #[test]
    fn what_is_no_count_is_told() {
        assert!(rows("gate-buffers: near0: no\n").is_err_and(|error| error.contains("near0")));
        assert!(rows("").is_err_and(|error| error.contains("nothing")));
    }
}
