//! Network interfaces, in the network namespace of the calling thread.
//!
//! It owns how one is found by its name, and what is said when it is not there or already taken. It must
//! never change one.

use std::io;

use staunch_netio::host::route;

use crate::fault::GateError;

/// The number of an interface.
///
/// # Errors
/// There is none of this name; what the kernel says.
pub fn find(name: &str) -> Result<u32, GateError> {
    match route::link(name) {
        Ok(link) => Ok(link.index),
        Err(error) if is_missing(&error) => Err(GateError::NoInterface(name.to_owned())),
        Err(error) => Err(GateError::Kernel(format!("interface '{name}': {error}"))),
    }
}

/// The XDP program on an interface, if there is one.
///
/// # Errors
/// What the kernel says; ENODEV when the interface is gone.
pub fn program_on(index: u32) -> io::Result<Option<u32>> {
    route::xdp_program(index)
}

/// # Errors
/// Another program is there.
pub(crate) fn expect_free(name: &str, index: u32) -> Result<(), GateError> {
    match program_on(index) {
        Ok(None) => Ok(()),
        Ok(Some(id)) => Err(GateError::Busy { interface: name.to_owned(), id, name: program_name(id) }),
        Err(error) => Err(GateError::Kernel(format!("interface '{name}': {error}"))),
    }
}

/// ENODEV from the kernel; EINVAL or ERANGE for what cannot be a name.
fn is_missing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::NODEV, Errno::INVAL, Errno::RANGE]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn program_name(id: u32) -> String {
    aya::programs::loaded_programs()
        .filter_map(Result::ok)
        .find(|program| program.id() == id)
        .and_then(|program| program.name_as_str().map(str::to_owned))
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "without a name".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_and_others_are_not() {
        let index = find("lo").unwrap();
        assert!(index > 0);
        assert!(program_on(index).is_ok());
        for name in ["nosuchlink", "a name that is much too long for an interface", ""] {
            assert!(matches!(find(name), Err(GateError::NoInterface(said)) if said == name), "{name}");
        }
        assert!(program_on(u32::MAX / 2).is_err());
    }
}
