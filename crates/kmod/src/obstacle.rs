//! What keeps a host from loading modules, known before anything is tried.

use std::fs;
use std::path::Path;

use staunch_program::Failure;

use super::module::NO_RIGHT;

/// The bit of CAP_SYS_MODULE among a process's capabilities (capability.h).
const SYS_MODULE: u32 = 16;

/// The first thing that is in the way, if anything is. `host` is the folder with /proc and /sys.
pub(super) fn find(host: &Path) -> Option<Failure> {
    let read = |name: &str| fs::read_to_string(host.join(name)).ok();
    if read("proc/modules").is_none() {
        return Some(plain("this kernel loads no modules (it was built without CONFIG_MODULES)"));
    }
    if read("proc/sys/kernel/modules_disabled").is_some_and(|text| text.trim() == "1") {
        return Some(plain("no module can be loaded until the next boot (kernel.modules_disabled is 1)"));
    }
    if !read("proc/self/status").is_some_and(|text| may_load(&text)) {
        return Some(Failure { code: NO_RIGHT, text: "CAP_SYS_MODULE is missing: try as root".to_owned() });
    }
    None
}

/// Whether the kernel takes signed modules only, as with secure boot.
pub(super) fn is_locked_down(host: &Path) -> bool {
    lockdown(host).is_some_and(|text| !text.contains("[none]"))
}

/// Whether lockdown is in its mode `confidentiality`, in which not even root may trace the kernel.
pub(super) fn is_confidential(host: &Path) -> bool {
    lockdown(host).is_some_and(|text| text.contains("[confidentiality]"))
}

/// The modes of lockdown, with brackets around the one in force; `None` of a kernel without it.
fn lockdown(host: &Path) -> Option<String> {
    fs::read_to_string(host.join("sys/kernel/security/lockdown")).ok()
}

fn plain(words: &str) -> Failure {
    Failure { code: 1, text: words.to_owned() }
}

/// Whether the process of this /proc/PID/status may load modules.
fn may_load(status: &str) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = set.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    set.is_some_and(|set| set >> SYS_MODULE & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::may_load;

    #[test]
    fn the_right_to_load_is_one_bit() {
        assert!(may_load("Name:\ta\nCapEff:\t0000000000010000\n"));
        assert!(may_load("CapEff:\t000001ffffffffff\n"));
        assert!(!may_load("CapEff:\t000001fffffeffff\n"));
        assert!(!may_load("CapPrm:\t000001ffffffffff\n"));
    }
}
