//! Documents that several checks go by. It must never name a page that is not of the kernel's own tree.

/// The network's sysctls.
pub(super) const IP_SYSCTL: &str = "Documentation/networking/ip-sysctl.rst";
/// Sysctls below net.core.
pub(super) const NET_SYSCTL: &str = "Documentation/admin-guide/sysctl/net.rst";
/// Sharing packets among processors.
pub(super) const SCALING: &str = "Documentation/networking/scaling.rst";
