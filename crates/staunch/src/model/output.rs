//! Standard output of the command.

use std::io::{self, Write};

/// Prints. Nobody reading is no reason to fail.
pub(crate) fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
