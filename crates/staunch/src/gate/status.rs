//! `staunch gate status`: a running gate, seen through its socket.
//!
//! It takes what the gate sends, once a second. It must never ask the program or its maps itself.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use clap::Args;
use console::{Key, Term};
use staunch_gate::snapshot::{self, Snapshot};
use staunch_netio::clock;
use staunch_program::output;

use super::view;
use crate::screen::{self, Screen};

/// Steps kept for the sparkline: as many as a wide terminal shows.
const STEPS_KEPT_MAX: usize = 240;
/// Before a gate that ended is looked for again.
const PAUSE: Duration = Duration::from_secs(1);

/// What the command line says.
#[derive(Args)]
pub(super) struct Arguments {
    /// Interface of the gate to watch [default: the first there is]
    #[arg(long, short, value_name = "NAME")]
    interface: Option<String>,

    /// Show one moment, and end
    #[arg(long)]
    once: bool,

    /// Print figures as JSON, a line a second; with --once one line
    #[arg(long)]
    json: bool,
}

/// What comes while it is watched.
enum Look {
    Seen(Box<Snapshot>),
    Lost(String),
    Pressed(Key),
}

/// Looks until a key ends it; once, where there is no terminal.
///
/// # Errors
/// When there is no gate to look at.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let interface = arguments.interface.as_deref();
    let terminal = Term::buffered_stdout();
    if arguments.json {
        snapshot::follow(interface, |snapshot| print_json(&snapshot) && !arguments.once)?;
    } else if arguments.once || !terminal.is_term() {
        // What is piped is read by a program, or by who scrolls: nothing is cut.
        let width = if terminal.is_term() { usize::from(terminal.size().1) } else { usize::MAX };
        for line in view::lines(&snapshot::ask(interface)?, &VecDeque::new(), None, width) {
            output::print(&format!("{line}\n"));
        }
    } else {
        // A gate that is not there is an error; one that goes away later is waited for.
        snapshot::ask(interface)?;
        watch(arguments.interface.clone(), &terminal);
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether somebody took it.
fn print_json(snapshot: &Snapshot) -> bool {
    use std::io::Write as _;
    let line = serde_json::to_string(snapshot).unwrap_or_default();
    writeln!(std::io::stdout(), "{line}").is_ok()
}

fn watch(interface: Option<String>, terminal: &Term) {
    let (sender, looks) = mpsc::channel();
    let pressed = sender.clone();
    screen::on_keys(move |key| pressed.send(Look::Pressed(key)).is_ok());
    thread::spawn(move || follow(interface.as_deref(), &sender));
    let mut screen = Screen::new(terminal);
    let mut kept = VecDeque::with_capacity(STEPS_KEPT_MAX);
    for look in looks {
        match look {
            Look::Pressed(key) if screen::ends(&key) => return,
            Look::Pressed(_) => {}
            Look::Seen(snapshot) => {
                if kept.len() == STEPS_KEPT_MAX {
                    kept.pop_front();
                }
                kept.push_back(snapshot.rates.offered_per_s);
                let (height, width) = terminal.size();
                let colour = console::colors_enabled();
                let lines = view::lines(&snapshot, &kept, Some(colour), usize::from(width));
                screen.draw(&lines, usize::from(height));
            }
            Look::Lost(error) => screen.draw(&[error, "looking again; q: end".to_owned()], 3),
        }
    }
}

/// Follows a gate, and the next one when it ends, until nobody watches.
fn follow(interface: Option<&str>, sender: &Sender<Look>) {
    loop {
        let seen = |snapshot| sender.send(Look::Seen(Box::new(snapshot))).is_ok();
        let error = snapshot::follow(interface, seen).err().unwrap_or_else(|| "the gate ended".to_owned());
        if sender.send(Look::Lost(error)).is_err() {
            return;
        }
        clock::pause(PAUSE);
    }
}
