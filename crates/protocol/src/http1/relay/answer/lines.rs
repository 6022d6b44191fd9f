//! Lines of a head or of trailers, from bytes in any pieces.
//!
//! It owns where a line ends: at CR and LF, and nowhere else; in what CGI programs say, at LF alone as well
//! (RFC 3875, section 6). Every byte is looked at once, however finely the lines are split. It must never
//! know what a line says.

use super::super::super::line::line_bytes;
use super::fault::RelayFault;

/// Collects lines up to a blank one, and counts their bytes.
#[derive(Debug, Default)]
pub(crate) struct LineReader {
    /// What came of a line that is not complete; otherwise empty.
    part: Vec<u8>,
    /// Bytes of this section, lines that are complete and what came of the next.
    seen_bytes: usize,
    /// Whether LF alone ends a line too.
    takes_line_feed: bool,
}

impl LineReader {
    pub(crate) const fn new() -> Self {
        Self { part: Vec::new(), seen_bytes: 0, takes_line_feed: false }
    }

    /// A reader for which LF alone ends a line too.
    pub(crate) const fn of_cgi() -> Self {
        let mut reader = Self::new();
        reader.takes_line_feed = true;
        reader
    }

    /// Whether a byte of this section came.
    pub(crate) fn has_begun(&self) -> bool {
        self.seen_bytes > 0
    }

    /// The section has ended.
    pub(crate) fn restart(&mut self) {
        *self = Self { takes_line_feed: self.takes_line_feed, ..Self::new() };
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.part.capacity()
    }

    /// Gives the next line, without its end, to `take`, once it is complete. `None`: the input is used up.
    pub(crate) fn next<T>(
        &mut self,
        input: &mut &[u8],
        (bytes_max, too_large): (usize, RelayFault),
        take: impl FnOnce(&[u8]) -> Result<T, RelayFault>,
    ) -> Result<Option<T>, RelayFault> {
        let room = bytes_max - self.seen_bytes;
        let window = input.get(..room).unwrap_or(input);
        let Some((line, used_bytes)) = self.find_end(window)? else {
            *input = input.get(window.len()..).unwrap_or_default();
            self.seen_bytes += window.len();
            self.part.extend_from_slice(window);
            return if self.seen_bytes == bytes_max { Err(too_large) } else { Ok(None) };
        };
        *input = input.get(used_bytes..).unwrap_or_default();
        self.seen_bytes += used_bytes;
        if self.part.is_empty() {
            return take(line).map(Some);
        }
        let mut whole = std::mem::take(&mut self.part);
        whole.extend_from_slice(line);
        take(whole.strip_suffix(b"\r").unwrap_or(&whole)).map(Some)
    }

    /// The rest of the first line without its end, and how many bytes it and its end have. `None` if the end
    /// is still to come.
    fn find_end<'w>(&self, window: &'w [u8]) -> Result<Option<(&'w [u8], usize)>, RelayFault> {
        let is_behind_return = self.part.ends_with(b"\r");
        let at = if is_behind_return { 0 } else { line_bytes(window) };
        let (line, end) = window.split_at(at);
        match (end, is_behind_return) {
            ([], _) | ([b'\r'], false) => Ok(None),
            ([b'\n', ..], true) => Ok(Some((line, 1))),
            ([b'\r', b'\n', ..], false) => Ok(Some((line, at + 2))),
            (_, true) | ([b'\r', ..], _) => Err(RelayFault::BareCarriageReturn),
            ([b'\n', ..], _) if self.takes_line_feed => Ok(Some((line, at + 1))),
            ([b'\n', ..], _) => Err(RelayFault::BareLineFeed),
            ([0, ..], _) => Err(RelayFault::Nul),
            _ => Err(RelayFault::Control),
        }
    }
}
