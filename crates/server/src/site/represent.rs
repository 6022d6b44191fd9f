//! In which encoding content is sent.
//!
//! It must never read a field again that was read before: nearly all peers send one of very few.

use staunch_protocol::Request;

use super::{Accepted, Site};
use crate::content::entry::Content;
use crate::content::negotiate::{IDENTITY, Preference};

impl Site {
    /// Which representation the peer prefers.
    #[inline]
    pub(super) fn represent(&mut self, content: &Content, request: &Request<'_>) -> usize {
        match request.accept_encoding() {
            Some(first) if content.encodings() > 0 => {
                let repeated = request.repeated & Request::ACCEPT_ENCODING != 0;
                if repeated || self.accepted.value.as_deref() != Some(first) {
                    self.read_preference(first, repeated, request);
                }
                self.accepted.preference.choose(|place| content.representations[place].is_some())
            }
            _ => IDENTITY,
        }
    }

    #[inline(never)]
    fn read_preference(&mut self, first: &[u8], repeated: bool, request: &Request<'_>) {
        let order = &self.shared.load.config.encodings;
        let Accepted { value, preference } = &mut self.accepted;
        if repeated {
            *value = None;
            *preference = Preference::read(request.values(b"accept-encoding"), order);
        } else {
            let value = value.get_or_insert_default();
            value.clear();
            value.extend_from_slice(first);
            *preference = Preference::read([first].into_iter(), order);
        }
    }
}
