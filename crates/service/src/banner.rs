//! The start-up block, and the progress of preparation for whoever watches.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use staunch_config::groups::Content;
use staunch_config::units::Wire;
use staunch_config::units::show_size;
use staunch_config::{Config, Site};
use staunch_confine::Confinement;
use staunch_engine::Engine;
use staunch_netio::host::khttpd;
use staunch_server::log::LineQueue;
use staunch_server::{Progress, SitesShared};

use crate::confinement;
use crate::parts::Parts;
use crate::reach::OwnAddresses;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Work longer than this gets a bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the block tells of, beside the engine.
pub(crate) struct Told<'a> {
    pub(crate) config: &'a Config,
    /// Whether the settings stand in a file.
    pub(crate) has_file: bool,
    pub(crate) host: OwnAddresses,
    pub(crate) confinement: &'a Confinement,
    pub(crate) parts: &'a Parts,
}

/// Says what is served, where, and by what means.
pub(crate) fn print<M: Send + 'static>(out: &LineQueue, told: &Told<'_>, engine: &Engine<M>) {
    let (io, why_io) = engine.backend();
    let (connections, why_connections) = engine.connections_max();
    let mut lines = Vec::new();
    let mut line = |text: String| lines.push(text);
    let sites = &told.config.sites;
    match &sites[..] {
        [site] => line(format!("staunch {VERSION} serving {}", served(site))),
        sites => line(format!("staunch {VERSION} serving {} sites", sites.len())),
    }
    told.host.lines("http", engine.addresses()).into_iter().for_each(&mut line);
    told.host.lines("https", engine.secured_addresses()).into_iter().for_each(&mut line);
    for (file, is_secured) in engine.socket_files() {
        let protocol = if *is_secured { "https" } else { "http" };
        line(format!("listening on unix:{} ({protocol}, this machine only)", file.display()));
    }
    if told.config.network.behind_khttpd {
        line(format!("  khttpd       what it does not serve, by {}", khttpd::DEVICE));
    }
    if sites.len() > 1 {
        sites.iter().for_each(|site| line(format!("  site         {}", describe_site(site))));
    }
    let has_files = sites.iter().any(|site| site.content.root.is_some());
    if has_files {
        line(format!("  listing      {}", listing(sites, told.has_file)));
    }
    line(format!("  engine       {io} ({why_io})"));
    line(format!("  workers      {}", engine.describe_workers()));
    line(format!("  connections  at most {connections} ({why_connections})"));
    let (memory_bytes, why_memory) = engine.memory_budget_bytes();
    line(format!("  memory       at most {} for slow peers ({why_memory})", show_size(memory_bytes)));
    line(format!("  sandbox      {}", told.confinement));
    told.parts.describe(told.config).into_iter().for_each(&mut line);
    if let Some(advice) = confinement::advice() {
        line(format!("  user         {advice}"));
    }
    if has_files {
        line(format!("  content      {}", describe(&told.config.default_site().content)));
    }
    out.say(&lines.join("\n"));
}

/// A folder by its whole name.
fn full(root: &Path) -> String {
    root.canonicalize().unwrap_or_else(|_| root.into()).display().to_string()
}

fn describe_site(site: &Site) -> String {
    let hosts = match (site.hosts.is_empty(), site.default) {
        (true, _) => "every other host".into(),
        (false, true) => format!("{} and every other host", site.hosts.join(", ")),
        (false, false) => site.hosts.join(", "),
    };
    format!("{hosts}: {}", served(site))
}

/// What a site serves: a folder, or what an application answers.
fn served(site: &Site) -> String {
    match (&site.content.root, &site.content.proxy) {
        (Some(root), Some(application)) if application.wire == Wire::FastCgi => {
            format!("files of {}, and what {} answers", full(root), application.name())
        }
        (_, Some(application)) => format!("what {} answers", application.name()),
        (Some(root), None) => full(root),
        (None, None) => "no files".into(),
    }
}

/// What a folder without index page answers, and how that is changed.
fn listing(sites: &[Site], has_file: bool) -> String {
    let listed = sites.iter().filter(|site| site.content.listing == Some(true)).count();
    if listed == 0 {
        let index = sites[0].content.index.join(" or ");
        let is_one = sites.iter().all(|site| site.content.index == sites[0].content.index);
        let index = if is_one { &index } else { "their index page" };
        let how = if has_file { "listing = true" } else { "--listing on" };
        return format!("off: folders without {index} answer 403 ({how})");
    }
    if listed == sites.len() {
        let how = if has_file { "listing = false" } else { "--listing off" };
        return format!("on: folders without an index page are listed ({how})");
    }
    format!("on for {listed} of {} sites: their folders without an index page are listed", sites.len())
}

/// How the content of a site is held.
fn describe(content: &Content) -> String {
    if content.no_cache {
        return "read from disk for every request (--no-cache)".into();
    }
    let size = show_size(content.cache_size);
    let codings: Vec<&str> = content.encodings.iter().flatten().map(|coding| coding.name()).collect();
    if codings.is_empty() {
        format!("held in memory up to {size}, not encoded")
    } else {
        format!("held in memory up to {size}; {} prepared in the background", codings.join(", "))
    }
}

/// Reports on a thread of its own what was prepared, with a bar if it takes long and somebody watches.
pub(crate) fn watch_preparation(sites: &Arc<SitesShared>, out: &Arc<LineQueue>) {
    let (sites, out) = (Arc::clone(sites), Arc::clone(out));
    // tidy: allow(clock): a progress bar is about real time.
    let started = Instant::now();
    let watch = move || {
        let mut bar = None;
        let mut progress = sites.progress();
        while !progress.done {
            // tidy: allow(clock): looking again is all this thread does.
            thread::sleep(Duration::from_millis(if started.elapsed() < PATIENCE { 20 } else { 200 }));
            progress = sites.progress();
            if started.elapsed() > PATIENCE && std::io::stderr().is_terminal() {
                show(bar.get_or_insert_with(new_bar), &progress);
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        out.say(&summary(&progress, started.elapsed()));
    };
    // Without the thread the server serves all the same, only the report is missing.
    let _ = thread::Builder::new().name("progress".into()).spawn(watch);
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("  preparing    {bar:30} {pos}/{len} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn show(bar: &ProgressBar, progress: &Progress) {
    bar.set_length(progress.files as u64);
    bar.set_position(progress.prepared as u64);
    bar.set_message(format!("files, {} held", show_size(progress.bytes_held)));
}

/// `1 file`, `2 files`.
fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn summary(progress: &Progress, taken: Duration) -> String {
    format!(
        "  prepared     {}: {}, {}, {} held, in {:.1} s",
        counted(progress.files, "file"),
        counted(progress.prepared, "answer"),
        counted(progress.encodings_done, "encoding"),
        show_size(progress.bytes_held),
        taken.as_secs_f64()
    )
}
