//! Messages of rtnetlink(7): a head of fixed length, then attributes.
//!
//! It must never send one. What the kernel answers is read without trust all the same: what is cut short is
//! absent.

use std::io;

/// Bytes of struct nlmsghdr.
const HEAD_BYTES: usize = 16;
/// Bytes of struct ifinfomsg.
pub(super) const LINK_BYTES: usize = 16;
/// Bytes of struct rtmsg.
pub(super) const ROUTE_BYTES: usize = 12;
/// Bytes of struct ndmsg.
pub(super) const NEIGHBOUR_BYTES: usize = 12;
/// The name of the hardware an interface stands for (linux/if_link.h).
pub(super) const IFLA_PARENT_DEV_NAME: u16 = 56;
/// What stands for XDP on an interface, and in it the number of the program (linux/if_link.h).
pub(super) const IFLA_XDP: u16 = 43;
pub(super) const IFLA_XDP_PROG_ID: u16 = 4;
/// The mark of an attribute that holds attributes, and that of one in network order: no part of its name.
/// A gateway of another address family (linux/rtnetlink.h); libc does not name it for musl.
pub(super) const RTA_VIA: u16 = 18;
const ATTRIBUTE_MARKS: u16 = 0xc000;

/// A question to the kernel.
pub(super) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A question of this kind; the length of its head must fit it.
    pub(super) fn new(kind: u16, head: &[u8]) -> Self {
        let mut bytes = vec![0; HEAD_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        bytes.extend(head);
        Self { bytes }
    }

    /// A question that is answered by all there are of a kind.
    pub(super) fn dump(kind: u16, sequence: u32, head: &[u8]) -> Self {
        let mut request = Self::new(kind, head);
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        request.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        request.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        request
    }

    /// Adds an attribute.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = (4 + value.len()) as u16;
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// All of it, with its length.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes[..4].copy_from_slice(&(self.bytes.len() as u32).to_ne_bytes());
        bytes
    }
}

/// A message among several that come together.
pub(super) struct Message<'b> {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    /// Behind the head that all messages have.
    pub(super) body: &'b [u8],
}

/// The messages in a piece of an answer. What is cut short at its end is left out.
pub(super) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(bytes, 0) as usize;
        let body = bytes.get(HEAD_BYTES..length)?;
        let (kind, flags, sequence) = (u16_at(bytes, 4), u16_at(bytes, 6), u32_at(bytes, 8));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, flags, sequence, body })
    })
}

impl<'b> Message<'b> {
    /// If nothing follows it: the errno it says, or 0.
    pub(super) fn end(&self) -> Option<i32> {
        let is_end = matches!(i32::from(self.kind), libc::NLMSG_ERROR | libc::NLMSG_DONE);
        is_end.then(|| (u32_at(self.body, 0) as i32).wrapping_neg())
    }

    /// As an answer.
    ///
    /// # Errors
    /// As [`Answer::parse`].
    pub(super) fn answer(&self) -> io::Result<Answer<'b>> {
        Answer::of(self.kind, self.body)
    }
}

/// What the kernel answered.
pub(super) struct Answer<'b> {
    /// After the head that all messages have.
    body: &'b [u8],
    head_bytes: usize,
}

impl<'b> Answer<'b> {
    /// Reads one message.
    ///
    /// # Errors
    /// The kernel's own errno; EBADMSG if it is none of the messages asked for.
    pub(super) fn parse(bytes: &'b [u8]) -> io::Result<Self> {
        let length = (u32_at(bytes, 0) as usize).min(bytes.len());
        let body = bytes.get(HEAD_BYTES..length).ok_or_else(bad_message)?;
        Self::of(u16_at(bytes, 4), body)
    }

    fn of(kind: u16, body: &'b [u8]) -> io::Result<Self> {
        let head_bytes = match kind {
            libc::RTM_NEWLINK => LINK_BYTES,
            libc::RTM_NEWROUTE => ROUTE_BYTES,
            libc::RTM_NEWNEIGH => NEIGHBOUR_BYTES,
            kind if i32::from(kind) == libc::NLMSG_ERROR => {
                return Err(io::Error::from_raw_os_error((u32_at(body, 0) as i32).wrapping_neg()));
            }
            _ => return Err(bad_message()),
        };
        if body.len() < head_bytes {
            return Err(bad_message());
        }
        Ok(Self { body, head_bytes })
    }

    /// A byte of its own head.
    pub(super) fn u8_at(&self, at: usize) -> u8 {
        self.body[..self.head_bytes].get(at).copied().unwrap_or_default()
    }

    /// Two bytes of its own head.
    pub(super) fn u16_at(&self, at: usize) -> u16 {
        u16_at(&self.body[..self.head_bytes], at)
    }

    /// Four bytes of its own head.
    pub(super) fn u32_at(&self, at: usize) -> u32 {
        u32_at(&self.body[..self.head_bytes], at)
    }

    /// The value of an attribute.
    pub(super) fn attribute(&self, kind: u16) -> Option<&'b [u8]> {
        find(&self.body[self.head_bytes..], kind)
    }

    /// The value of an attribute inside another.
    pub(super) fn nested(&self, outer: u16, inner: u16) -> Option<&'b [u8]> {
        find(self.attribute(outer)?, inner)
    }
}

fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    while attributes.len() >= 4 {
        let length = usize::from(u16_at(attributes, 0));
        let value = attributes.get(4..length)?;
        if u16_at(attributes, 2) & !ATTRIBUTE_MARKS == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

fn bad_message() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADMSG)
}

/// Two bytes, 0 if they are not there.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |two| u16::from_ne_bytes([two[0], two[1]]))
}

/// Four bytes, 0 if they are not there.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |four| u32::from_ne_bytes(*four))
}

/// Eight bytes, 0 if they are not there.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |eight| u64::from_ne_bytes(*eight))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_with(length: usize) -> Vec<u8> {
        let mut request = Request::new(libc::RTM_NEWROUTE, &[7; ROUTE_BYTES]);
        request.attribute(3, b"abc");
        let mut inner = Request::new(0, &[]);
        inner.attribute(1, b"kind");
        request.attribute(9 | ATTRIBUTE_MARKS, &inner.bytes[HEAD_BYTES..]);
        let mut bytes = request.bytes();
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = answer_with(usize::MAX);
        let answer = Answer::parse(&bytes).unwrap();
        assert_eq!((answer.u8_at(7), answer.u16_at(8), answer.u32_at(8)), (7, 0x0707, 0x0707_0707));
        assert_eq!(answer.attribute(3), Some(&b"abc"[..]));
        assert_eq!(answer.nested(9, 1), Some(&b"kind"[..]));
        assert_eq!((answer.attribute(4), answer.nested(3, 1)), (None, None));
    }

    #[test]
    fn what_is_cut_short_is_absent() {
        for length in 0..answer_with(usize::MAX).len() {
            let bytes = answer_with(length);
            match Answer::parse(&bytes) {
                Err(error) => {
                    assert!(length < HEAD_BYTES + ROUTE_BYTES && error.raw_os_error() == Some(libc::EBADMSG))
                }
                Ok(answer) => assert_eq!(answer.nested(9, 1), None, "{length} bytes"),
            }
        }
    }

    #[test]
    fn messages_that_come_together_are_told_apart() {
        let end = Request::dump(libc::NLMSG_DONE as u16, 9, &0_i32.to_ne_bytes()).bytes();
        let all = [answer_with(usize::MAX), end].concat();
        for length in 0..=all.len() {
            let found: Vec<Message<'_>> = messages(&all[..length]).collect();
            assert_eq!(found.len(), usize::from(length >= all.len() - 20) + usize::from(length == all.len()));
        }
        let found: Vec<Message<'_>> = messages(&all).collect();
        assert_eq!((found[0].end(), found[1].end(), found[1].sequence), (None, Some(0), 9));
        assert!(found[0].answer().is_ok_and(|route| route.attribute(3) == Some(b"abc")));
        let error = Request::new(libc::NLMSG_ERROR as u16, &(-libc::ENOENT).to_ne_bytes()).bytes();
        assert_eq!(messages(&error).next().and_then(|message| message.end()), Some(libc::ENOENT));
        // A length that leads nowhere ends it.
        assert_eq!(messages(&[0; 64]).count(), 0);
    }

    #[test]
    fn an_error_is_the_kernels() {
        let mut bytes = Request::new(libc::NLMSG_ERROR as u16, &(-libc::ENODEV).to_ne_bytes()).bytes();
        assert_eq!(Answer::parse(&bytes).err().and_then(|error| error.raw_os_error()), Some(libc::ENODEV));
        bytes[4] = 99;
        assert_eq!(Answer::parse(&bytes).err().and_then(|error| error.raw_os_error()), Some(libc::EBADMSG));
    }
}
