//! `-t`: prints whether the settings would do.

use staunch_program::Failure;
use staunch_program::output::remark;

use super::Loader;

/// Tests the settings and says so, in the lines that administrators know.
///
/// # Errors
/// All that is wrong, and at last that the test failed.
pub(crate) fn run(loader: &Loader) -> Result<(), Failure> {
    staunch_service::config::test(loader, &mut |line| remark(&format!("staunch: {line}\n")))
}
