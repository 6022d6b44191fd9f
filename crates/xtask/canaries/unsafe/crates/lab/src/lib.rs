//! A laboratory that must never do this outside its models.
#![forbid(unsafe_code)]

/// Reads a byte.
pub fn read(from: *const u8) -> u8 {
    unsafe { *from }
}
