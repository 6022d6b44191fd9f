//! The header of a frame: sixteen bytes in, fields or a fault out, and back.
//!
//! It must never look behind the header, or know who receives.

use crate::check::check;
use crate::fault::Fault;
use crate::limits::HEADER_BYTES;

/// The version this code speaks.
const VERSION: u8 = 1;

/// The address that means all nodes.
pub const EVERYBODY: u16 = 0xffff;

/// What a frame is for: the `type` of its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A datagram or a piece of one.
    Data = 1,
    /// A node starts, or says that it is there.
    Hello = 2,
    /// The answer to a challenge.
    HelloReply = 3,
    /// Asks one node whether it is there.
    Probe = 4,
    /// A node leaves.
    Bye = 5,
    /// Two nodes have one address.
    Conflict = 6,
    /// Asks for a transaction.
    Request = 7,
    /// The outcome of a transaction.
    Reply = 8,
    /// The outcome has come.
    Ack = 9,
}

impl Kind {
    /// All of them, by number.
    pub const ALL: [Self; 9] = [
        Self::Data,
        Self::Hello,
        Self::HelloReply,
        Self::Probe,
        Self::Bye,
        Self::Conflict,
        Self::Request,
        Self::Reply,
        Self::Ack,
    ];

    /// Whether a greeting is its payload, and no port its destination.
    pub fn is_control(self) -> bool {
        (Self::Hello as u8..=Self::Conflict as u8).contains(&(self as u8))
    }

    /// Whether a message of this kind may have several fragments.
    pub fn is_fragmented(self) -> bool {
        matches!(self, Self::Data | Self::Request | Self::Reply)
    }

    /// Its name on the page and in the tools.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "DATA",
            Self::Hello => "HELLO",
            Self::HelloReply => "HELLO-REPLY",
            Self::Probe => "PROBE",
            Self::Bye => "BYE",
            Self::Conflict => "CONFLICT",
            Self::Request => "REQUEST",
            Self::Reply => "REPLY",
            Self::Ack => "ACK",
        }
    }

    #[inline]
    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).wrapping_sub(1)).copied()
    }
}

/// The flags of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(u8);

impl Flags {
    /// The first fragment of a message.
    pub const FIRST: Self = Self(0x01);
    /// The last fragment of a message.
    pub const FINAL: Self = Self(0x02);
    /// Counter and tag follow the payload.
    pub const AUTH: Self = Self(0x04);
    /// A checksum follows the payload.
    pub const SUM: Self = Self(0x08);
    /// Sent with priority.
    pub const PRIORITY: Self = Self(0x10);
    /// Another frame follows right behind this one.
    pub const MORE: Self = Self(0x20);
    /// First and last: a message in one frame.
    pub const WHOLE: Self = Self(0x03);

    /// Every flag with its name.
    pub const NAMES: [(Self, &'static str); 6] = [
        (Self::FIRST, "FIRST"),
        (Self::FINAL, "FINAL"),
        (Self::AUTH, "AUTH"),
        (Self::SUM, "SUM"),
        (Self::PRIORITY, "PRIORITY"),
        (Self::MORE, "MORE"),
    ];

    /// Whether all of these are set.
    pub fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and those.
    #[must_use]
    pub fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// These and not those.
    #[must_use]
    pub fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    /// The byte of the header.
    pub fn bits(self) -> u8 {
        self.0
    }

    fn from_bits(bits: u8) -> Option<Self> {
        let both = Self::SUM.0 | Self::AUTH.0;
        (bits & 0xc0 == 0 && bits & both != both).then_some(Self(bits))
    }
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the frame is for.
    pub kind: Kind,
    /// Flags of the frame.
    pub flags: Flags,
    /// The sender's address.
    pub source: u16,
    /// The receiver's address, or [`EVERYBODY`].
    pub destination: u16,
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The number of the message, counted by the sender's socket.
    pub message_id: u16,
    /// Bytes of payload in this frame.
    pub length: u16,
    /// The number of this fragment.
    pub sequence: u8,
}

impl Header {
    /// The sixteen bytes, for this cluster.
    #[inline]
    pub fn encode(&self, cluster: u8) -> [u8; HEADER_BYTES] {
        let [source_high, source_low] = self.source.to_be_bytes();
        let [destination_high, destination_low] = self.destination.to_be_bytes();
        let [from_high, from_low] = self.source_port.to_be_bytes();
        let [to_high, to_low] = self.destination_port.to_be_bytes();
        let [id_high, id_low] = self.message_id.to_be_bytes();
        let [length_high, length_low] = self.length.to_be_bytes();
        let mut bytes = [
            VERSION << 4 | self.kind as u8,
            self.flags.0,
            source_high,
            source_low,
            destination_high,
            destination_low,
            from_high,
            from_low,
            to_high,
            to_low,
            id_high,
            id_low,
            length_high,
            length_low,
            self.sequence,
            0,
        ];
        bytes[HEADER_BYTES - 1] = check(cluster, &bytes);
        bytes
    }

    /// Reads the first sixteen bytes of a frame and checks all that can be known from them alone.
    ///
    /// # Errors
    /// The first fault, in the order of `docs/dostp.md`. [`Fault::Length`] is not looked for: that needs the
    /// rest of the frame.
    #[inline]
    pub fn decode(frame: &[u8], cluster: u8) -> Result<Self, Fault> {
        Self::decode_whole(frame, cluster).map_or_else(|| Self::decode_any(frame, cluster), Ok)
    }

    /// The header of a datagram in one frame without a trailer, as most are. `None` for all others and for
    /// all faults: then [`Header::decode_any`] says which.
    #[inline]
    pub(crate) fn decode_whole(frame: &[u8], cluster: u8) -> Option<Self> {
        Self::decode_datagram::<{ Flags::WHOLE.0 }>(frame, cluster)
    }

    /// The header of such a datagram that another frame follows.
    #[inline]
    pub(crate) fn decode_joined(frame: &[u8], cluster: u8) -> Option<Self> {
        let header = Self::decode_datagram::<{ Flags::WHOLE.0 | Flags::MORE.0 }>(frame, cluster)?;
        (header.destination != EVERYBODY).then_some(header)
    }

    /// The header of a datagram in one frame, with these flags and no others.
    #[inline]
    fn decode_datagram<const FLAGS: u8>(frame: &[u8], cluster: u8) -> Option<Self> {
        const KIND: u8 = VERSION << 4 | Kind::Data as u8;
        let bytes = frame.first_chunk::<HEADER_BYTES>()?;
        let [KIND, flags, .., 0, sum] = *bytes else { return None };
        if flags != FLAGS {
            return None;
        }
        // Three bytes are known, and so is their share of the check.
        let mut known = *bytes;
        (known[0], known[1], known[14]) = (KIND, FLAGS, 0);
        let header = Self::of(bytes, Kind::Data, Flags(FLAGS));
        let is_right = check(cluster, &known) == sum
            && header.source.wrapping_add(1) > 1
            && header.destination != 0
            && header.source_port != 0
            && header.destination_port != 0;
        is_right.then_some(header)
    }

    /// Any header, and its first fault.
    #[inline(never)]
    pub(crate) fn decode_any(frame: &[u8], cluster: u8) -> Result<Self, Fault> {
        let bytes = frame.first_chunk::<HEADER_BYTES>().ok_or(Fault::Short)?;
        if bytes[0] >> 4 != VERSION {
            return Err(Fault::Version);
        }
        if check(cluster, bytes) != bytes[15] {
            return Err(Fault::Check);
        }
        let kind = Kind::from_number(bytes[0] & 0x0f).ok_or(Fault::Kind)?;
        let header = Self::of(bytes, kind, Flags::from_bits(bytes[1]).ok_or(Fault::Flags)?);
        if header.flags.has(Flags::MORE) && !header.may_be_joined() {
            return Err(Fault::Flags);
        }
        header.judge()?;
        Ok(header)
    }

    /// Whether other frames may stand before or behind this one: a whole datagram to a node.
    pub fn may_be_joined(&self) -> bool {
        self.kind == Kind::Data && self.flags.has(Flags::WHOLE) && self.destination != EVERYBODY
    }

    /// Whether a frame with this header may stand right behind one with that, which bears MORE: between the
    /// same ports of the same nodes.
    pub fn may_follow(&self, before: &Self) -> bool {
        let way =
            |header: &Self| (header.source, header.destination, header.source_port, header.destination_port);
        self.may_be_joined() && way(self) == way(before)
    }

    /// The fields as they stand.
    #[inline]
    fn of(bytes: &[u8; HEADER_BYTES], kind: Kind, flags: Flags) -> Self {
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        Self {
            kind,
            flags,
            source: word(2),
            destination: word(4),
            source_port: word(6),
            destination_port: word(8),
            message_id: word(10),
            length: word(12),
            sequence: bytes[14],
        }
    }

    /// Whether the fields agree with each other.
    fn judge(&self) -> Result<(), Fault> {
        if self.source == 0 || self.source == EVERYBODY || !self.is_destination_right() {
            return Err(Fault::Address);
        }
        let ports_right = if self.kind.is_control() {
            self.source_port | self.destination_port | self.message_id == 0
        } else {
            self.source_port != 0 && self.destination_port != 0
        };
        if !ports_right {
            return Err(Fault::Port);
        }
        if self.is_fragment_right() { Ok(()) } else { Err(Fault::Fragment) }
    }

    fn is_destination_right(&self) -> bool {
        match self.kind {
            Kind::Data => self.destination != 0,
            Kind::Hello | Kind::Bye => self.destination == EVERYBODY,
            _ => self.destination != 0 && self.destination != EVERYBODY,
        }
    }

    fn is_fragment_right(&self) -> bool {
        let first = self.flags.has(Flags::FIRST);
        let last = self.flags.has(Flags::FINAL);
        if !self.kind.is_fragmented() {
            return first && last && self.sequence == 0;
        }
        first == (self.sequence == 0) && (last || (self.length != 0 && self.sequence != u8::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Header = Header {
        kind: Kind::Data,
        flags: Flags::WHOLE,
        source: 7,
        destination: 8,
        source_port: 1000,
        destination_port: 2000,
        message_id: 1,
        length: 5,
        sequence: 0,
    };

    #[test]
    fn the_fields_stand_where_the_page_says() {
        let bytes = DATA.encode(0);
        assert_eq!(bytes[..15], [0x11, 3, 0, 7, 0, 8, 3, 0xe8, 7, 0xd0, 0, 1, 0, 5, 0]);
        assert_eq!(Header::decode(&bytes, 0), Ok(DATA));
        assert_eq!(Header::decode(&bytes, 1), Err(Fault::Check));
        assert_eq!(Header::decode(&bytes[..15], 0), Err(Fault::Short));
    }

    #[test]
    fn faults_are_told_apart() {
        let control =
            Header { kind: Kind::Probe, source_port: 0, destination_port: 0, message_id: 0, ..DATA };
        let table = [
            (Header { flags: Flags(0x43), ..DATA }, Fault::Flags),
            (Header { flags: Flags(0x83), ..DATA }, Fault::Flags),
            (Header { flags: Flags(0x21), ..DATA }, Fault::Flags),
            (Header { flags: Flags(0x23), destination: EVERYBODY, ..DATA }, Fault::Flags),
            (Header { flags: Flags(0x23), kind: Kind::Ack, ..DATA }, Fault::Flags),
            (Header { flags: Flags(0x23), ..control }, Fault::Flags),
            (Header { flags: Flags(0x0f), ..DATA }, Fault::Flags),
            (Header { source: 0, ..DATA }, Fault::Address),
            (Header { source: EVERYBODY, ..DATA }, Fault::Address),
            (Header { destination: 0, ..DATA }, Fault::Address),
            (Header { kind: Kind::Request, destination: EVERYBODY, ..DATA }, Fault::Address),
            (Header { kind: Kind::Hello, ..control }, Fault::Address),
            (Header { destination_port: 0, ..DATA }, Fault::Port),
            (Header { source_port: 0, ..DATA }, Fault::Port),
            (Header { message_id: 1, ..control }, Fault::Port),
            (Header { sequence: 1, ..DATA }, Fault::Fragment),
            (Header { flags: Flags::FINAL, ..DATA }, Fault::Fragment),
            (Header { flags: Flags::FIRST, length: 0, ..DATA }, Fault::Fragment),
            (Header { flags: Flags::default(), sequence: 255, ..DATA }, Fault::Fragment),
            (Header { flags: Flags::FIRST, ..control }, Fault::Fragment),
            (Header { kind: Kind::Ack, flags: Flags::FINAL, sequence: 1, ..DATA }, Fault::Fragment),
        ];
        for (header, fault) in table {
            assert_eq!(Header::decode(&header.encode(3), 3), Err(fault), "{header:?}");
        }
        let joined = Header { flags: Flags(0x23), ..DATA };
        assert!([control, joined].iter().all(|header| Header::decode(&header.encode(3), 3).is_ok()));
    }

    proptest::proptest! {
        /// Whatever is understood is written again as it was.
        #[test]
        fn bytes_survive(mut bytes: [u8; HEADER_BYTES], cluster: u8, small: bool) {
            bytes[0] = 0x10 | bytes[0] & 0x0f;
            if small {
                bytes[1] &= 0x3b;
            }
            bytes[15] = check(cluster, &bytes);
            if let Ok(header) = Header::decode(&bytes, cluster) {
                assert_eq!(header.encode(cluster), bytes);
            }
        }

        /// The short ways say nothing that the long one does not say.
        #[test]
        fn both_ways_agree(mut bytes: [u8; HEADER_BYTES], cluster: u8, is_whole: bool, is_right: bool) {
            if is_whole {
                (bytes[0], bytes[1], bytes[14]) = (0x11, 0x03 | bytes[1] & 0x20, bytes[14] & 1);
                // Addresses and ports of 0 and of all ones are as likely as others.
                for pair in bytes[2..10].chunks_exact_mut(2) {
                    match pair[0] % 4 {
                        0 => pair.fill(0),
                        1 => pair.fill(0xff),
                        _ => {}
                    }
                }
            }
            if is_right {
                bytes[15] = check(cluster, &bytes);
            }
            let long = Header::decode_any(&bytes, cluster);
            assert_eq!(Header::decode(&bytes, cluster), long);
            let is_common = |flags| {
                long.is_ok_and(|header| header.kind == Kind::Data && header.flags == flags)
            };
            assert_eq!(Header::decode_whole(&bytes, cluster).is_some(), is_common(Flags::WHOLE));
            let joined = Flags::WHOLE.with(Flags::MORE);
            assert_eq!(Header::decode_joined(&bytes, cluster).is_some(), is_common(joined));
            for short in [Header::decode_whole(&bytes, cluster), Header::decode_joined(&bytes, cluster)] {
                assert!(short.is_none_or(|header| long == Ok(header)));
            }
        }

        /// A single flipped bit is always found.
        #[test]
        fn a_flipped_bit_is_found(cluster: u8, bit in 0_usize..128) {
            let mut bytes = DATA.encode(cluster);
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&bytes, cluster).is_err());
        }
    }
}
