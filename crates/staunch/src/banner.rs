//! The start-up block, and the progress of preparation for whoever watches.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use staunch_confine::Confinement;
use staunch_engine::Engine;
use staunch_server::{Progress, SitesShared};

use crate::confinement;
use crate::units::show_size;

/// Work longer than this gets a bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// Says what is served, where, and by what means.
pub(crate) fn print<M: Send + 'static>(
    root: &Path,
    engine: &Engine<M>,
    content: &str,
    confinement: &Confinement,
    gate: Option<&str>,
) {
    let root = root.canonicalize().unwrap_or_else(|_| root.into());
    let (io, why_io) = engine.backend();
    let (connections, why_connections) = engine.connections_max();
    let mut out = std::io::stdout().lock();
    let mut line = |text: String| {
        // Nobody reading the block is no reason not to serve.
        let _ = writeln!(out, "{text}");
    };
    line(format!("staunch {} serving {}", env!("CARGO_PKG_VERSION"), root.display()));
    for address in engine.addresses() {
        line(format!("listening on http://{address}"));
    }
    line(format!("  engine       {io} ({why_io})"));
    line(format!("  workers      {}", engine.describe_workers()));
    line(format!("  connections  at most {connections} ({why_connections})"));
    line(format!("  sandbox      {confinement}"));
    if let Some(gate) = gate {
        line(format!("  gate         {gate}"));
    }
    if let Some(advice) = confinement::advice() {
        line(format!("  user         {advice}"));
    }
    line(format!("  content      {content}"));
}

/// Reports on a thread of its own what was prepared, with a bar if it takes long and somebody watches.
pub(crate) fn watch_preparation(sites: &Arc<SitesShared>) {
    let sites = Arc::clone(sites);
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
        let text = summary(&progress, started.elapsed());
        let _ = writeln!(std::io::stdout(), "{text}");
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

fn summary(progress: &Progress, taken: Duration) -> String {
    format!(
        "  prepared     {} files: {} answers, {} encodings, {} held, in {:.1} s",
        progress.files,
        progress.prepared,
        progress.encodings_done,
        show_size(progress.bytes_held),
        taken.as_secs_f64()
    )
}
