//! The order of a chain: which certificate is the server's, and which others vouch for it.
//!
//! A file holds what people and tools have put there: twice the same, the root first, something
//! of another name (RFC 8446, section 4.4.2, has clients cope with it). It must never leave out a certificate
//! by which a client may come to a root that it trusts, nor compare names as bytes (RFC 5280, section 7.1).

use rustls_pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::{Tag, Tagged as _};
use x509_cert::name::Name;

/// A certificate as it stands in the file, with what was read of it.
pub(super) struct ChainLink {
    pub(super) der: CertificateDer<'static>,
    pub(super) content: Certificate,
    /// Its place in the file, from 1.
    pub(super) place: usize,
}

/// A chain in order, and what is to be said about the file it comes from.
pub(super) struct Ordered {
    pub(super) links: Vec<ChainLink>,
    pub(super) notes: Vec<String>,
}

/// Puts a chain in order: the certificate that `is_own` chooses, then whatever vouches for one before it.
/// A certificate that stands there twice, or vouches for none, is left out. `None` if none is the
/// server's own.
pub(super) fn ordered(all: Vec<ChainLink>, is_own: impl Fn(&ChainLink) -> bool) -> Option<Ordered> {
    let mut notes = Vec::new();
    let mut rest: Vec<ChainLink> = Vec::new();
    for link in all {
        if rest.iter().any(|known| known.der == link.der) {
            notes.push(format!("certificate {} stands there twice: it is sent once", link.place));
        } else {
            rest.push(link);
        }
    }
    let before: Vec<usize> = rest.iter().map(|link| link.place).collect();
    let own = rest.remove(rest.iter().position(is_own)?);
    let mut links = vec![own];
    // A later one may vouch for an earlier one that was put in only now.
    let mut next = 0;
    while next < links.len() {
        let (issuers, others) = rest.into_iter().partition(|link| vouches(link, &links[next]));
        rest = others;
        links.extend::<Vec<ChainLink>>(issuers);
        next += 1;
    }
    for link in &rest {
        notes.push(format!("certificate {} belongs to none of the others: it is not sent", link.place));
    }
    let after: Vec<usize> = links.iter().map(|link| link.place).collect();
    if !before.iter().filter(|place| after.contains(place)).eq(&after) {
        let words: Vec<String> = after.iter().map(usize::to_string).collect();
        notes.push(format!("the chain is out of order: it is sent as {}", words.join(", ")));
    }
    Some(Ordered { links, notes })
}

/// Whether a certificate is of the authority that has issued another one.
fn vouches(by: &ChainLink, one: &ChainLink) -> bool {
    by.der != one.der
        && is_same_name(one.content.tbs_certificate().issuer(), by.content.tbs_certificate().subject())
}

/// Whether an authority has issued the certificate for itself.
pub(super) fn is_root(one: &ChainLink) -> bool {
    let content = one.content.tbs_certificate();
    is_same_name(content.issuer(), content.subject())
}

/// Whether two names are one (RFC 5280, section 7.1): attributes of a set in any order, text in any of its
/// encodings, in large or small letters, with as many spaces as there may be.
fn is_same_name(one: &Name, other: &Name) -> bool {
    one.len() == other.len()
        && one.iter_rdn().zip(other.iter_rdn()).all(|(one, other)| {
            let (ours, theirs): (Vec<_>, Vec<_>) = (one.iter().collect(), other.iter().collect());
            ours.len() == theirs.len()
                && ours.iter().all(|own| theirs.iter().any(|other| is_same_attribute(own, other)))
        })
}

fn is_same_attribute(one: &AttributeTypeAndValue, other: &AttributeTypeAndValue) -> bool {
    if one.oid != other.oid {
        return false;
    }
    match (text_of(one), text_of(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.value == other.value,
    }
}

/// The text of an attribute without what makes no difference; `None` if it is no text.
fn text_of(attribute: &AttributeTypeAndValue) -> Option<String> {
    let bytes = attribute.value.value();
    let text = match attribute.value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String => String::from_utf8(bytes.to_vec()).ok()?,
        // ISO 8859-1 in practice.
        Tag::TeletexString => bytes.iter().map(|&byte| char::from(byte)).collect(),
        Tag::BmpString => {
            let units = bytes.chunks(2).map(|pair| Some(u16::from_be_bytes(pair.try_into().ok()?)));
            String::from_utf16(&units.collect::<Option<Vec<_>>>()?).ok()?
        }
        _ => return None,
    };
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    Some(words.join(" "))
}
