//! Keys and signals while a run goes on: Ctrl-C ends it with its summary, a second one at once; arrows change
//! an open loop's rate.
//!
//! It must never read keys that belong to somebody else: only when both ends are a terminal.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use console::{Key, Term};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use staunch_loadgen::RunControl;

/// What one press changes the rate by.
const STEP: f64 = 1.1;

/// Exit code of a program ended by SIGINT.
const INTERRUPTED: i32 = 130;

/// Lets the first SIGINT or SIGTERM end the run in order, and the second one at once.
///
/// # Errors
/// When the kernel refuses a handler.
pub(crate) fn end_on_signal(control: &RunControl) -> Result<(), String> {
    let stop = control.stop_flag();
    for signal in [SIGINT, SIGTERM] {
        // In this order: the flag is not set yet when the first signal comes.
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| format!("cannot watch for signals: {error}"))?;
    }
    Ok(())
}

/// Follows the keys of a terminal until the program ends.
pub(crate) fn follow(control: &Arc<RunControl>) {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return;
    }
    let control = Arc::clone(control);
    // Without the thread the run is the same but for the keys.
    let _ = thread::Builder::new().name("keys".into()).spawn(move || {
        let terminal = Term::stderr();
        let stop: Arc<AtomicBool> = control.stop_flag();
        while let Ok(key) = terminal.read_key() {
            match key {
                Key::ArrowUp | Key::Char('+') => control.set_factor(control.factor() * STEP),
                Key::ArrowDown | Key::Char('-') => control.set_factor(control.factor() / STEP),
                Key::Char('0') => control.set_factor(1.0),
                Key::Char('q') => stop.store(true, Ordering::Relaxed),
                _ => {}
            }
        }
    });
}
