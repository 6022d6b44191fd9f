//! Makes representations: fields and body in one block, or fields for a body that stays in its file.
//!
//! It owns what an entity tag is made of. It must never open a file.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use staunch_engine::FileStamp;
use xxhash_rust::xxh3::xxh3_128;

use super::entry::{Common, FileBody, Representation};
use super::fields::{self, Description, LINE_END};
use super::negotiate::Encoding;

/// A representation in memory, with an entity tag from its bytes.
pub(crate) fn held(common: &Common<'_>, encoding: Option<Encoding>, body: &[u8]) -> Representation {
    let etag = fields::etag(xxh3_128(body), encoding);
    with_body(common, encoding.map(Encoding::name), body, &etag)
}

/// A difference in memory, in the coding of such, under a tag that says what it leads to and what it needs.
pub(crate) fn difference(common: &Common<'_>, difference: &[u8], etag: &[u8]) -> Representation {
    with_body(common, Some(staunch_dictionary::CODING), difference, etag)
}

/// A representation in memory that will be sent once: hashing it would cost more than the tag can save.
pub(crate) fn unheld(common: &Common<'_>, body: &[u8], stamp: &FileStamp) -> Representation {
    with_body(common, None, body, &etag_of_stamp(stamp, None))
}

/// A representation whose body stays in its file, with an entity tag from what tells versions of it apart.
pub(crate) fn in_file(
    common: &Common<'_>,
    encoding: Option<Encoding>,
    file: Arc<OwnedFd>,
    stamp: FileStamp,
) -> Representation {
    let etag = etag_of_stamp(&stamp, encoding);
    let mut block = Vec::with_capacity(FIELDS_BYTES_USUAL);
    let layout = fields::write(
        &mut block,
        &description(common, encoding.map(Encoding::name), stamp.size_bytes, &etag),
    );
    block.extend_from_slice(LINE_END);
    Representation { block: block.into(), layout, file: Some(Box::new(FileBody { file, stamp })) }
}

/// About how long fields are, in bytes.
const FIELDS_BYTES_USUAL: usize = 384;

fn with_body(common: &Common<'_>, coding: Option<&'static str>, body: &[u8], etag: &[u8]) -> Representation {
    let mut block = Vec::with_capacity(FIELDS_BYTES_USUAL + body.len());
    let layout = fields::write(&mut block, &description(common, coding, body.len() as u64, etag));
    block.extend_from_slice(LINE_END);
    block.extend_from_slice(body);
    Representation { block: block.into(), layout, file: None }
}

fn description<'a>(
    common: &Common<'a>,
    coding: Option<&'static str>,
    length_bytes: u64,
    etag: &'a [u8],
) -> Description<'a> {
    let Common { media, modified_unix_s, vary, offer, ruling } = *common;
    Description { length_bytes, media: &media.value, coding, modified_unix_s, etag, vary, offer, ruling }
}

fn etag_of_stamp(stamp: &FileStamp, encoding: Option<Encoding>) -> Vec<u8> {
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(&stamp.inode.to_le_bytes());
    bytes[8..16].copy_from_slice(&stamp.size_bytes.to_le_bytes());
    bytes[16..32].copy_from_slice(&stamp.modified_ns.to_le_bytes());
    // A writer may set the time of modification at will, but not the time of the last change.
    bytes[32..].copy_from_slice(&stamp.changed_ns.to_le_bytes());
    fields::etag(xxh3_128(&bytes), encoding)
}
