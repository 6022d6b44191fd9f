//! `staunch top`: a running server, seen from its admin address.
//!
//! It asks once a second, and draws what changed since. It must never ask more often: who looks must not be a
//! load.

pub(crate) mod fetch;
mod figures;
mod view;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use clap::Args;
use console::Term;
use staunch_config::units;
use staunch_netio::clock;
use staunch_program::{Failure, output};
use staunch_server::metrics::Snapshot;

use figures::Rates;
pub(crate) use view::uptime;

use crate::control;
use crate::screen::{self, Screen};

/// Steps kept for the sparkline: as many as a wide terminal shows.
const STEPS_KEPT_MAX: usize = 240;
/// Between two looks, to say the first rates soon.
const FIRST_STEP: Duration = Duration::from_millis(250);

/// Where a server tells about itself.
#[derive(Args)]
pub(crate) struct Where {
    /// Admin address of the server, or its socket; else what `admin` is in its settings, or 127.0.0.1:9090
    #[arg(long, value_name = "ADDR|PATH")]
    admin: Option<String>,

    /// File with the server's settings; else that of the service, /etc/staunch/staunch.toml
    #[arg(long, short, value_name = "FILE", conflicts_with = "admin")]
    config: Option<PathBuf>,
}

impl Where {
    /// The admin address.
    fn admin(&self) -> Result<String, Failure> {
        control::admin_of(self.admin.as_deref(), self.config.clone())
    }
}

/// Prints how the limits of applications came to be.
///
/// # Errors
/// When the server cannot be asked, or has no application.
pub(crate) fn explain_proxy(place: &Where) -> Result<(), Failure> {
    output::print(&fetch::page(&place.admin()?, "/proxy")?);
    Ok(())
}

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Where,

    /// Time between two looks
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "1s")]
    interval: Duration,

    /// Show one moment, and end
    #[arg(long)]
    once: bool,

    /// Print the server's figures as JSON, and end
    #[arg(long)]
    json: bool,
}

/// Looks until a key ends it; once, where there is no terminal.
///
/// # Errors
/// When the server cannot be asked.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let admin = arguments.place.admin()?;
    if arguments.json {
        output::print(&format!("{}\n", fetch::text(&admin)?.trim_end()));
        return Ok(ExitCode::SUCCESS);
    }
    let first = look(&admin)?;
    let terminal = Term::buffered_stdout();
    if arguments.once || !terminal.is_term() {
        clock::pause(FIRST_STEP.max(arguments.interval.min(Duration::from_secs(1))));
        let second = look(&admin)?;
        let rates = Rates::between(&first.0, &second.0, second.1 - first.1);
        for line in
            view::lines(&second.0, &rates, &VecDeque::new(), None, usize::from(terminal.size().1).max(80))
        {
            output::print(&format!("{line}\n"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    follow((&admin, arguments.interval), &terminal, first)?;
    Ok(ExitCode::SUCCESS)
}

/// The figures, and when they were taken, in nanoseconds.
fn look(admin: &str) -> Result<(Snapshot, u64), String> {
    let snapshot = fetch::snapshot(admin)?;
    Ok((snapshot, clock::now_ns()))
}

fn follow(
    (admin, interval): (&str, Duration),
    terminal: &Term,
    mut before: (Snapshot, u64),
) -> Result<(), String> {
    let keys = screen::keys();
    let mut screen = Screen::new(terminal);
    let mut kept = VecDeque::with_capacity(STEPS_KEPT_MAX);
    let mut step = FIRST_STEP;
    loop {
        match keys.recv_timeout(step) {
            Ok(key) if screen::ends(&key) => return Ok(()),
            Ok(_) => continue,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => clock::pause(step),
        }
        step = interval;
        match look(admin) {
            Ok(now) => {
                let rates = Rates::between(&before.0, &now.0, now.1 - before.1);
                if kept.len() == STEPS_KEPT_MAX {
                    kept.pop_front();
                }
                kept.push_back(rates.requests_per_s);
                let (height, width) = terminal.size();
                let colour = console::colors_enabled();
                let lines = view::lines(&now.0, &rates, &kept, Some(colour), usize::from(width));
                screen.draw(&lines, usize::from(height));
                before = now;
            }
            // A server that is restarted comes back.
            Err(error) => screen.draw(&[error, "asking again; q: end".to_owned()], 3),
        }
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let length = units::duration(text)?;
    if length < Duration::from_millis(100) { Err("at least 100ms".to_owned()) } else { Ok(length) }
}
