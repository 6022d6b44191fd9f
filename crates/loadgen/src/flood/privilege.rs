//! Which privileges a way to the network needs, and whether the calling thread has them.
//!
//! It must never acquire one.

use rustix::thread::{CapabilitySet, capabilities};

use super::plan::Method;
use crate::Fault;

/// Whether one of these ways, the best first, is open to the calling thread.
///
/// # Errors
/// Which capability is missing, and the way out.
pub(super) fn check(methods: &[Method]) -> Result<(), Fault> {
    let held = held();
    if methods.iter().any(|&method| missing(method, held).is_none()) {
        return Ok(());
    }
    let names = methods.last().and_then(|&method| missing(method, held)).unwrap_or_default();
    Err(Fault::new(format!(
        "a flood makes raw segments, and this process lacks {names} for that; run it as root, for instance: \
         sudo ip netns exec NAME staunch load flood ..."
    )))
}

/// What the calling thread lacks for this way.
pub(super) fn lacks(method: Method) -> Option<String> {
    missing(method, held())
}

fn held() -> CapabilitySet {
    capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective)
}

/// CAP_SYS_ADMIN stands for both that BPF needs (capabilities(7)).
fn missing(method: Method, held: CapabilitySet) -> Option<String> {
    let needed: &[(CapabilitySet, &str)] = match method {
        Method::LiveFrames if held.contains(CapabilitySet::SYS_ADMIN) => &[],
        Method::LiveFrames => &[(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN")],
        Method::PacketSocket | Method::RawSocket => &[(CapabilitySet::NET_RAW, "CAP_NET_RAW")],
    };
    let absent: Vec<&str> =
        needed.iter().filter(|(capability, _)| !held.contains(*capability)).map(|&(_, name)| name).collect();
    (!absent.is_empty()).then(|| absent.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Method::{LiveFrames, PacketSocket, RawSocket};

    #[test]
    fn each_way_names_what_it_lacks() {
        let (none, raw) = (CapabilitySet::empty(), CapabilitySet::NET_RAW);
        let (bpf, admin) = (CapabilitySet::BPF, CapabilitySet::NET_ADMIN);
        for (method, held, expected) in [
            (LiveFrames, none, Some("CAP_BPF and CAP_NET_ADMIN")),
            (LiveFrames, bpf, Some("CAP_NET_ADMIN")),
            (LiveFrames, admin | raw, Some("CAP_BPF")),
            (LiveFrames, bpf | admin, None),
            (LiveFrames, CapabilitySet::SYS_ADMIN, None),
            (PacketSocket, none, Some("CAP_NET_RAW")),
            (RawSocket, bpf | admin, Some("CAP_NET_RAW")),
            (RawSocket, raw, None),
        ] {
            assert_eq!(missing(method, held).as_deref(), expected, "{method} with {held:?}");
        }
    }
}
