//! What looks at every packet beside the server: connection tracking, and programs that listen in.
//!
//! It must never advise to take a filter away: only tables that are too small, and programs nobody remembers.

use crate::check::{Check, Judge, Verdict};
use crate::host::Host;
use crate::limits::FILLED_PERCENT_MAX;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "net.netfilter.nf_conntrack_max",
        rule: "the connections of the host's size, where connections are tracked",
        reason: "Connections the firewall remembers. When the table is full new ones are dropped in \
                 silence, whatever the server could do.",
        source: "Documentation/networking/nf_conntrack-sysctl.rst",
        judge: Judge::Sysctl(table),
    },
    Check {
        name: "packet sockets",
        rule: "none, or known ones",
        reason: "A program with an AF_PACKET socket (a DHCP client, tcpdump, a monitor) may be handed a \
                 copy of every packet, which costs some per cent. Know who it is; leave what is needed.",
        source: "packet(7)",
        judge: Judge::Host(sniffers),
    },
];

fn table(host: &Host) -> Verdict {
    const NAME: &str = "net.netfilter.nf_conntrack_max";
    let Some(most) = host.sysctl_number(NAME) else { return Verdict::not_here() };
    let used = host.sysctl_number("net.netfilter.nf_conntrack_count").unwrap_or(0);
    let wanted = host.connections();
    let value = format!("{used} of {most}");
    if used.saturating_mul(100) >= most.saturating_mul(FILLED_PERCENT_MAX) {
        Verdict::matters(value, wanted.max(most.saturating_mul(2))).settable()
    } else if used > 0 && most < wanted {
        Verdict::advise(value, wanted).settable()
    } else {
        Verdict::ok(value)
    }
}

fn sniffers(host: &Host) -> Verdict {
    let Some(text) = host.text("proc/net/packet") else { return Verdict::not_here() };
    match text.lines().count().saturating_sub(1) {
        0 => Verdict::ok("none"),
        count => Verdict::advise(count, "see who: ss --packet --processes"),
    }
}
