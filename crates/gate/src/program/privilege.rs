//! What this process may do.
//!
//! It owns the look at its capabilities. It must never ask for more.

use rustix::thread::{CapabilitySet, capabilities};

use crate::fault::{CAPABILITIES, GateError};

/// # Errors
/// The capabilities that are missing, by name.
pub(super) fn check() -> Result<(), GateError> {
    let sets = capabilities(None)
        .map_err(|error| GateError::Kernel(format!("the capabilities of this process: {error}")))?;
    let missing = missing(sets.effective);
    if missing.is_empty() { Ok(()) } else { Err(GateError::Privilege(missing)) }
}

/// CAP_SYS_ADMIN stands for the two that were split from it (capabilities(7)).
fn missing(has: CapabilitySet) -> Vec<&'static str> {
    let needed = [
        CapabilitySet::BPF | CapabilitySet::SYS_ADMIN,
        CapabilitySet::NET_ADMIN,
        CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN,
    ];
    let pairs = CAPABILITIES.into_iter().zip(needed);
    pairs.filter(|(_, any)| !has.intersects(*any)).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(missing(CapabilitySet::empty()), CAPABILITIES);
        assert_eq!(missing(CapabilitySet::SYS_ADMIN), ["CAP_NET_ADMIN"]);
        assert_eq!(missing(CapabilitySet::BPF | CapabilitySet::NET_ADMIN), ["CAP_PERFMON"]);
        assert!(missing(CapabilitySet::all()).is_empty());
    }
}
