//! Tries a publication again until the server can take it, or says that it never will.
//!
//! It must never try again what was refused for a reason that time does not change.

use std::time::Duration;

use staunch_program::output::remark;

use super::topic_writer::{PutFault, TopicWriter};

/// Time between two tries: a server is back within seconds.
const RETRY: Duration = Duration::from_secs(1);

/// Changes a topic, and tries again every second while the server is away or asks for that. The first wait is
/// told.
///
/// # Errors
/// What the server refuses.
pub(super) fn patiently(
    writer: &mut TopicWriter,
    change: impl Fn(&mut TopicWriter) -> Result<(), PutFault>,
) -> Result<(), PutFault> {
    let mut is_told = false;
    loop {
        match change(writer) {
            Err(PutFault::Later(said)) => {
                if !is_told {
                    remark(&format!("staunch: {said}; trying again every second\n"));
                }
                is_told = true;
                // tidy: allow(clock): a server that comes back tells nobody.
                std::thread::sleep(RETRY);
            }
            became => return became,
        }
    }
}
