//! Bad excuses.

// tidy: allow(file-length): it is long
pub struct Long;
// tidy: allow(clock):
pub struct Late;
