//! The module's name, and what the command's exit codes say of it.

/// The module's name.
pub(super) const NAME: &str = "khttpd";

/// Exit code: the module is not loaded.
pub(super) const NOT_LOADED: u8 = 3;

/// Exit code: a right is missing (EX_NOPERM of sysexits.h).
pub(super) const NO_RIGHT: u8 = 77;
