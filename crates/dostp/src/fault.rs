//! Why a frame or a message was dropped, and how often.
//!
//! The names are those of `docs/dostp.md`, of the golden frames, of statistics and of the kernel module.

/// Why something was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Fewer bytes than a header has.
    Short,
    /// Not version 1.
    Version,
    /// Damaged, or of another cluster.
    Check,
    /// A type without meaning, or of transactions where there are none.
    Kind,
    /// A reserved flag, two that exclude each other, or joined frames that must not be.
    Flags,
    /// A source or destination that cannot be.
    Address,
    /// A port, or its absence, that does not go with the type.
    Port,
    /// Flags and sequence contradict each other.
    Fragment,
    /// The payload is longer than the frame, or not as long as its type demands.
    Length,
    /// For another node.
    Foreign,
    /// The checksum behind the payload is wrong.
    Sum,
    /// A greeting from another link address than it tells: some host passed it on.
    Relayed,
    /// No keys, other keys, or forged.
    Auth,
    /// A counter that came before.
    Replay,
    /// Another node has this node's address.
    Conflict,
    /// This node's own frame came back: its link address or boot number.
    Own,
    /// From another link address than the peer's.
    Impostor,
    /// Nothing is known of the peer, and there is no room or no proof.
    Unknown,
    /// No socket has the port.
    Closed,
    /// A message that came before.
    Duplicate,
    /// A fragment of a message that is not under way.
    Orphan,
    /// A fragment out of order, with its message.
    Order,
    /// A message beyond the size that was set.
    Size,
    /// A message that had to make room.
    Room,
    /// A message that was not complete in time.
    Expired,
    /// The socket's queue was full.
    Queue,
    /// A message to an address that did not answer.
    Unresolved,
    /// A challenge that went unanswered because there were too many.
    Unanswered,
}

impl Fault {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 28] = [
        Self::Short,
        Self::Version,
        Self::Check,
        Self::Kind,
        Self::Flags,
        Self::Address,
        Self::Port,
        Self::Fragment,
        Self::Length,
        Self::Foreign,
        Self::Sum,
        Self::Relayed,
        Self::Auth,
        Self::Replay,
        Self::Conflict,
        Self::Own,
        Self::Impostor,
        Self::Unknown,
        Self::Closed,
        Self::Duplicate,
        Self::Orphan,
        Self::Order,
        Self::Size,
        Self::Room,
        Self::Expired,
        Self::Queue,
        Self::Unresolved,
        Self::Unanswered,
    ];

    /// The name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Version => "version",
            Self::Check => "check",
            Self::Kind => "kind",
            Self::Flags => "flags",
            Self::Address => "address",
            Self::Port => "port",
            Self::Fragment => "fragment",
            Self::Length => "length",
            Self::Foreign => "foreign",
            Self::Sum => "sum",
            Self::Relayed => "relayed",
            Self::Auth => "auth",
            Self::Replay => "replay",
            Self::Conflict => "conflict",
            Self::Own => "own",
            Self::Impostor => "impostor",
            Self::Unknown => "unknown",
            Self::Closed => "closed",
            Self::Duplicate => "duplicate",
            Self::Orphan => "orphan",
            Self::Order => "order",
            Self::Size => "size",
            Self::Room => "room",
            Self::Expired => "expired",
            Self::Queue => "queue",
            Self::Unresolved => "unresolved",
            Self::Unanswered => "unanswered",
        }
    }

    /// Whether the bytes of the frame alone are at fault.
    pub fn is_of_bytes(self) -> bool {
        (self as usize) <= Self::Length as usize
    }
}

/// How often each fault occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drops([u64; Fault::ALL.len()]);

impl Drops {
    /// Counts a frame that was dropped for this fault.
    #[inline]
    pub fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// How many there were of one.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// Every fault that occurred, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Fault, u64)> + '_ {
        Fault::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Default for Drops {
    fn default() -> Self {
        Self([0; Fault::ALL.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_in_order() {
        for (number, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, number);
            assert_eq!(Fault::ALL.iter().filter(|other| other.name() == fault.name()).count(), 1);
        }
        assert!(Fault::Length.is_of_bytes() && !Fault::Foreign.is_of_bytes());
    }
}
