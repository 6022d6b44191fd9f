//! Answers told as the difference to what a client has (RFC 9842).
//!
//! A worker must never make a difference: one that is not there is asked of the encoder, and the answer is
//! the usual one meanwhile.

use staunch_engine::Answered;
use staunch_protocol::{Request, Status};

use super::Site;
use crate::content::entry::{Content, Entry, Kind, OfferedDictionary, Representation};
use crate::content::negotiate::IDENTITY;
use crate::content::spare_keys::{version_key, write_difference_key};
use crate::content::store::Found;
use crate::content::validate::{self, Verdict};
use crate::content::versions::leads_to;
use crate::dictionary::held_dictionary;
use crate::errand::Errand;
use crate::respond::{AddedFields, answer_content, conditions};
use crate::rules::Ruling;
use crate::rules::dictionary::DictionaryRule;

impl Site {
    /// Answers by a difference, or by 304 to who got the content by one; gives the errand back where the
    /// usual answer is due.
    pub(super) fn reply_with_difference<'e>(
        &mut self,
        entry: &Entry,
        ruling: &Ruling,
        added: AddedFields<'_>,
        errand: Errand<'e>,
    ) -> Result<Answered, Errand<'e>> {
        let (Some(rule), Some(content)) = (ruling.dictionary.as_deref(), entry.content()) else {
            return Err(errand);
        };
        let (Some(told), Some(identity)) = (content.told.as_deref(), content.identity()) else {
            return Err(errand);
        };
        if let Some(tag) = named_difference(errand.request, identity) {
            let fields = [added.granted, &identity.fields_not_modified_as(tag)].concat();
            return Ok(errand.answer.bytes(Status::NOT_MODIFIED, &fields, &[]));
        }
        let Some(found) = self.difference(entry, rule, (content, told), ruling, &errand) else {
            return Err(errand);
        };
        let Kind::Content(difference) = &found.kind else { return Err(errand) };
        let load = &self.shared.load;
        if entry.mark_used() && !entry.is_settled() {
            load.encoder.hint(entry, &load.config.encodings);
        }
        let Errand { request, answer } = errand;
        let usual = content.representations[self.represent(content, request)].as_ref().unwrap_or(identity);
        let saved_bytes = usual.length_bytes().saturating_sub(length_bytes(difference));
        self.shared.dictionary.answer(usize::try_from(saved_bytes).unwrap_or(usize::MAX));
        Ok(answer_content(difference, IDENTITY, &self.shared.problems, added, request, answer))
    }

    /// The difference to what the client has, if it may have it and it is there. If only that is missing, it
    /// is asked for.
    fn difference(
        &mut self,
        entry: &Entry,
        rule: &DictionaryRule,
        (content, told): (&Content, &OfferedDictionary),
        ruling: &Ruling,
        errand: &Errand<'_>,
    ) -> Option<Found> {
        let Errand { request, answer } = errand;
        let origin = request.values(b"origin").next();
        let allowed = ruling.sharing.as_deref().and_then(|sharing| sharing.allowed(origin?));
        let hash = held_dictionary(request, answer.is_secured(), allowed)?;
        let load = &self.shared.load;
        let is_known = load.store.find(&version_key(rule.family(&entry.key), &hash)).is_some();
        self.shared.dictionary.ask(is_known);
        if !is_known || request.has_any(Request::RANGE) || is_current(content, request) {
            return None;
        }
        let mut key = std::mem::take(&mut self.difference_key);
        write_difference_key(&mut key, &entry.key, &hash, &told.hash);
        let found = load.store.find(&key);
        self.difference_key = key;
        match found {
            Some(found) if matches!(found.kind, Kind::Content(_)) => {
                found.mark_used();
                Some(found)
            }
            // The difference was tried, and gains nothing.
            Some(_) => None,
            None => {
                load.encoder.ask_for_difference(&entry.key, hash);
                None
            }
        }
    }
}

/// The tag of a difference that leads to this content, if the client names it in If-None-Match.
fn named_difference<'a>(request: &Request<'a>, identity: &Representation) -> Option<&'a [u8]> {
    if !request.has_any(Request::IF_NONE_MATCH)
        || request.has_any(Request::IF_MATCH | Request::IF_UNMODIFIED_SINCE)
    {
        return None;
    }
    validate::find_tag(&conditions(request).if_none_match, |tag| leads_to(identity, tag))
}

/// Whether the client has the content that is current, in any coding: then 304 says less than any difference.
fn is_current(content: &Content, request: &Request<'_>) -> bool {
    if !request.has_any(Request::IF_NONE_MATCH | Request::IF_MODIFIED_SINCE) {
        return false;
    }
    let conditions = conditions(request);
    let mut held = content.representations.iter().flatten();
    held.any(|one| {
        validate::evaluate(&conditions, one.etag(), content.modified_unix_s) == Verdict::NotModified
    })
}

fn length_bytes(content: &Content) -> u64 {
    content.identity().map_or(0, Representation::length_bytes)
}
