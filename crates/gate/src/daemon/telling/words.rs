//! The words of events, and of what is set once.

use crate::controller::{Corrected, Hint, Policy};
use crate::observation::State;
use crate::program::Reject;

/// What the operator should know.
pub(super) fn hint_text(hint: Hint) -> String {
    match hint {
        Hint::LoadWithoutSyn { reads_per_s, syn_per_s } => format!(
            "the server is at its limit by {reads_per_s} reads a second on standing connections, at \
             {syn_per_s} SYN a second: shedding SYN does not help; limit requests in the server"
        ),
        Hint::SmallQueue { places } => format!(
            "accept queue of {places} bounds this server; raise its backlog: until then all are let in"
        ),
        Hint::FloodPassed { syn_per_s } => format!(
            "{syn_per_s} SYN a second come that few stand behind; nobody waits because of them and reception \
             has room, so they are left to the kernel's SYN cookies"
        ),
        Hint::Corrected(Corrected { thought, waiting }) => format!(
            "{thought} connections seemed to wait and the line did not move for a second; by their sockets \
             {waiting} do, and only these are counted from now on"
        ),
    }
}

pub(super) fn state_word(state: State) -> &'static str {
    match state {
        State::Open => "open",
        State::Shedding => "shedding",
    }
}

pub(super) fn policy_word(policy: Policy) -> &'static str {
    match policy {
        Policy::Queue => "queue",
        Policy::Paper => "paper",
        Policy::Either => "either",
    }
}

pub(super) fn reject_word(reject: Reject) -> &'static str {
    match reject {
        Reject::Drop => "drop",
        Reject::Reset => "reset",
        Reject::Cookie => "cookie",
    }
}
