//! A view that is drawn over itself on a terminal, and the keys that end it.
//!
//! It must never read keys when standard input is not a terminal: they belong to somebody else.

use std::io::IsTerminal as _;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use console::{Key, Term};

/// Keys of the terminal, read by a thread that ends with the program.
pub(crate) fn keys() -> Receiver<Key> {
    let (sender, keys) = mpsc::channel();
    on_keys(move |key| sender.send(key).is_ok());
    keys
}

/// Gives each key as it is pressed, until `more` says no.
pub(crate) fn on_keys(mut more: impl FnMut(Key) -> bool + Send + 'static) {
    if !std::io::stdin().is_terminal() {
        return;
    }
    // Without the thread there are no keys, and Ctrl-C ends the program all the same.
    let _ = thread::Builder::new().name("keys".into()).spawn(move || {
        let terminal = Term::stdout();
        while let Ok(key) = terminal.read_key() {
            if !more(key) {
                return;
            }
        }
    });
}

/// Whether a key ends a view.
pub(crate) fn ends(key: &Key) -> bool {
    matches!(key, Key::Char('q' | 'Q') | Key::Escape | Key::CtrlC)
}

/// What was drawn, to be drawn over.
pub(crate) struct Screen<'a> {
    terminal: &'a Term,
    lines_drawn: usize,
}

impl<'a> Screen<'a> {
    /// Nothing is drawn yet.
    pub(crate) fn new(terminal: &'a Term) -> Self {
        Self { terminal, lines_drawn: 0 }
    }

    /// A terminal that went away is no reason to complain.
    pub(crate) fn draw(&mut self, lines: &[String], height: usize) {
        let _ = self.terminal.move_cursor_up(self.lines_drawn);
        let _ = self.terminal.clear_to_end_of_screen();
        // What scrolled out at the top could not be drawn over.
        let shown = &lines[..lines.len().min(height.saturating_sub(1))];
        for line in shown {
            let _ = self.terminal.write_line(line);
        }
        let _ = self.terminal.flush();
        self.lines_drawn = shown.len();
    }
}
