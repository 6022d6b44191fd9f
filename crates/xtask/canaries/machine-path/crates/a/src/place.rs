//! Where things are.

pub const PLACE: &str = "/tmp/staunch";
