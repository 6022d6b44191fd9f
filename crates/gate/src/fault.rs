//! Why the gate cannot be put up or taken further, in words that name the fault and the place.
//!
//! It owns the sorting of what the kernel says. It must never try anything again.

use std::error::Error;
use std::fmt;
use std::io;

/// Why there is no gate.
#[derive(Debug)]
pub enum GateError {
    /// Capabilities this process lacks, by name.
    Privilege(Vec<&'static str>),
    /// There is no interface of this name.
    NoInterface(String),
    /// Another program is on the interface.
    Busy {
        /// Name of the interface.
        interface: String,
        /// The other program's number.
        id: u32,
        /// Its name, if the kernel tells it.
        name: String,
    },
    /// What was asked for contradicts itself or the host.
    Refused(String),
    /// What the kernel does not allow or cannot do.
    Kernel(String),
}

/// What loading programs, putting them on interfaces and watching connections need.
pub(crate) const CAPABILITIES: [&str; 3] = ["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"];

impl GateError {
    /// Sorts an error of the loader.
    pub(crate) fn of_kernel(what: &str, error: &(dyn Error + 'static)) -> Self {
        match system_error(error) {
            // Capabilities were looked at before, so those of another user namespace are meant. EACCES is
            // what the verifier says of a program.
            Some(said) if said.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error()) => {
                Self::Privilege(CAPABILITIES.to_vec())
            }
            _ => Self::Kernel(format!("{what}: {}", chain(error))),
        }
    }
}

impl fmt::Display for GateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Privilege(missing) => write!(
                out,
                "the gate needs the {} {}, which this process does not have; run it as root, or give it \
                 those (setcap, or AmbientCapabilities= of systemd), outside any user namespace",
                if missing.len() == 1 { "capability" } else { "capabilities" },
                missing.join(", ")
            ),
            Self::NoInterface(name) => {
                write!(out, "there is no interface '{name}' in this network namespace")
            }
            Self::Busy { interface, id, name } => write!(
                out,
                "interface '{interface}' already has an XDP program: '{name}', number {id}. It was left \
                 alone; take it off first (ip link set dev {interface} xdp off, or end what put it there)"
            ),
            Self::Refused(why) | Self::Kernel(why) => out.write_str(why),
        }
    }
}

impl Error for GateError {}

/// What the system said, somewhere behind an error.
pub(crate) fn system_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// An error with those behind it, each said once. What the verifier wrote is long; its end says why.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_fault_and_the_place() {
        let busy = GateError::Busy { interface: "eth0".to_owned(), id: 7, name: "filter".to_owned() };
        let said = [
            (GateError::Privilege(vec!["CAP_BPF"]), "the capability CAP_BPF, which"),
            (GateError::Privilege(CAPABILITIES.to_vec()), "CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"),
            (GateError::NoInterface("eth7".to_owned()), "no interface 'eth7'"),
            (busy, "interface 'eth0' already has an XDP program: 'filter', number 7"),
        ];
        for (error, words) in said {
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn what_the_kernel_forbids_is_a_matter_of_privilege() {
        let forbidden = io::Error::from_raw_os_error(1);
        assert!(matches!(GateError::of_kernel("load", &forbidden), GateError::Privilege(_)));
        let other = io::Error::from_raw_os_error(22);
        assert!(
            matches!(GateError::of_kernel("load", &other), GateError::Kernel(text) if text.contains("load"))
        );
    }
}
