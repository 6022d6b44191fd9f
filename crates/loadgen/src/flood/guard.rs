//! Where a flood may go. Rule 1: by `lo`, or by a virtual cable inside a network namespace of its own. Rule
//! 2: to an address right behind that interface. Rule 3: never by hardware. Rule 4: answers to forged sources
//! stay here.
//!
//! It owns these rules and must never have an exception: no option and no privilege opens another way.

use std::net::SocketAddr;
use std::path::Path;

use rustix::io::Errno;
use staunch_netio::host::route::{self, Link, Route};

use super::plan::FloodPlan;
use super::source::Prefix;
use crate::Fault;

/// Kinds of interfaces that have no way to a wire of their own. A bridge, a VLAN or a tunnel may have one.
const VIRTUAL_KINDS: [&str; 2] = ["veth", "dummy"];
/// Settings of the whole system are shown to threads in the initial network namespace only...
const INITIAL_SETTING: &str = "/proc/sys/net/core/netdev_max_backlog";
/// ... and this one, of a namespace, in each.
const NAMESPACE_SETTING: &str = "/proc/sys/net/core/somaxconn";

/// How one gets into a network namespace.
const WAY_IN: &str =
    "ip netns add NAME, give it one end of a veth pair, then: ip netns exec NAME staunch load flood ...";

/// Which network namespace the calling thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Namespace {
    /// The one the machine's hardware is in.
    Initial,
    /// Another.
    Own,
    /// The kernel does not tell.
    Unknown,
}

/// All that the rules look at.
#[derive(Debug, Clone)]
struct Facts {
    interface: String,
    link: Link,
    /// `/sys/class/net/NAME/device` exists.
    has_device: bool,
    namespace: Namespace,
    destination: SocketAddr,
    sources: Prefix,
    /// The way to the destination.
    route: Option<Route>,
}

/// Whether the plan obeys the rules here and now, in the calling thread's network namespace. Tells the
/// interface.
///
/// # Errors
/// The rule that is broken, and how to obey it.
pub(super) fn link(plan: &FloodPlan) -> Result<Link, Fault> {
    let interface = &plan.interface;
    let link = route::link(interface).map_err(|error| {
        let absent = error.raw_os_error() == Some(Errno::NODEV.raw_os_error());
        let why = if absent { "is not in this network namespace".to_owned() } else { error.to_string() };
        Fault::new(format!("interface `{interface}` {why}"))
    })?;
    let facts = Facts {
        interface: interface.clone(),
        has_device: Path::new("/sys/class/net").join(interface).join("device").exists(),
        namespace: namespace(),
        destination: plan.destination,
        sources: plan.sources(),
        route: route::route(plan.destination.ip()).ok(),
        link,
    };
    judge(&facts).map_err(Fault::new)?;
    Ok(facts.link)
}

/// The rules.
fn judge(facts: &Facts) -> Result<(), String> {
    let Facts { interface, link, destination, sources, .. } = facts;
    if facts.has_device || link.has_parent {
        return Err(format!("interface `{interface}` is hardware: a flood never leaves the machine"));
    }
    if destination.is_ipv6() != sources.address().is_ipv6() {
        return Err(format!("{destination} and the sources {sources} are not of one family"));
    }
    if destination.port() == 0 {
        return Err(format!("{destination}: port 0 cannot be reached"));
    }
    if !link.is_up {
        return Err(format!("interface `{interface}` is down; run: ip link set {interface} up"));
    }
    if link.is_loopback { judge_loopback(facts) } else { judge_cable(facts) }
}

fn judge_loopback(facts: &Facts) -> Result<(), String> {
    let Facts { interface, destination, sources, .. } = facts;
    if !destination.ip().is_loopback() {
        return Err(format!(
            "by `{interface}` a flood goes to loopback addresses only, not to {destination}"
        ));
    }
    if !sources.address().is_loopback() {
        return Err(format!(
            "the answers to forged sources in {sources} would not stay in `{interface}`; take a part of \
             127.0.0.0/8, or ::1/128"
        ));
    }
    Ok(())
}

fn judge_cable(facts: &Facts) -> Result<(), String> {
    let Facts { interface, link, destination, .. } = facts;
    match facts.namespace {
        Namespace::Own => {}
        Namespace::Initial => {
            return Err(format!(
                "interface `{interface}` is in the initial network namespace; a flood goes by `lo`, or in a \
                 namespace of its own: {WAY_IN}"
            ));
        }
        Namespace::Unknown => {
            return Err(format!(
                "whether this is the initial network namespace cannot be told, because {NAMESPACE_SETTING} \
                 cannot be read; mount /proc"
            ));
        }
    }
    let kind = link.kind.as_deref().unwrap_or("unknown");
    if !VIRTUAL_KINDS.contains(&kind) {
        let allowed = VIRTUAL_KINDS.join(", ");
        return Err(format!(
            "interface `{interface}` is of kind {kind}, which may lead to a wire; allowed: {allowed}"
        ));
    }
    let on_link =
        |route: Route| route.index == link.index && !route.has_gateway && !route.is_local && route.is_unicast;
    if !facts.route.is_some_and(on_link) {
        let address = destination.ip();
        return Err(format!(
            "{address} is not right behind `{interface}` (a host of its network, without a router); see: \
             ip route get {address}"
        ));
    }
    Ok(())
}

/// Two signs must agree: what this system shows of its settings, and, where that may be read, the namespace
/// of the first process. (In a container that is the container's own; then a flood is refused without need,
/// not allowed without right.)
fn namespace() -> Namespace {
    let own = std::fs::read_link("/proc/thread-self/ns/net");
    let first = std::fs::read_link("/proc/1/ns/net");
    let same = matches!((own, first), (Ok(own), Ok(first)) if own == first);
    tell(same, Path::new(INITIAL_SETTING).exists(), Path::new(NAMESPACE_SETTING).exists())
}

fn tell(same_as_first_process: bool, has_initial_setting: bool, has_namespace_setting: bool) -> Namespace {
    match (same_as_first_process || has_initial_setting, has_namespace_setting) {
        (true, _) => Namespace::Initial,
        (false, true) => Namespace::Own,
        (false, false) => Namespace::Unknown,
    }
}

#[cfg(test)]
mod tests;
