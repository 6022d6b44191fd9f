//! How much memory this machine has.

/// Physical memory in bytes.
pub fn total_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    #[allow(clippy::unnecessary_cast, reason = "the field's type differs between processors")]
    let total = info.totalram as u64;
    total * u64::from(info.mem_unit.max(1))
}
