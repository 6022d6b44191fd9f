//! A crate that must never do this.

/// Reads a byte: "unsafe".
pub fn read(from: *const u8) -> u8 {
    unsafe { *from }
}
