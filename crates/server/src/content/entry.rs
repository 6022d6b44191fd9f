//! What the store holds under a path: immutable once made, but for the marks the store and its readers leave.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use staunch_dictionary::Hash;
use staunch_engine::{FilePart, FileStamp, Piece, Slice};

use super::fields::{LINE_END, Layout};
use super::freshness::Freshness;
use super::mime::MediaType;
use super::negotiate::PLACES;
use super::range::ByteRange;
use crate::rules::Ruling;

/// Rings of the store that an entry may stand in: that of bytes and that of files, or that of what is spare.
pub(crate) const RINGS: usize = 3;

/// The content that the store holds for a path.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The key: a decoded path, for listings followed by NUL and a variant. Shared with the entry's
    /// successors.
    pub(crate) key: Arc<[u8]>,
    /// What is answered.
    pub(crate) kind: Kind,
    /// What the file or folder was when it was read.
    pub(crate) stamp: FileStamp,
    /// What rules say of its path, if any apply.
    pub(crate) ruling: Option<Arc<Ruling>>,
    /// How it is known to be true.
    pub(crate) freshness: Freshness,
    /// Set when used, cleared by the store's search for room.
    pub(crate) used: AtomicBool,
    /// Set when every encoding was tried that is worth the work.
    settled: AtomicBool,
    /// Where the store's rings have it.
    pub(crate) slots: [AtomicU32; RINGS],
}

/// What stands at a path.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Content of a file or a listing.
    Content(Content),
    /// A folder answered by a file in it: the key of that file.
    Alias(Box<[u8]>),
    /// A folder named without its closing slash: a redirect.
    Slashless,
    /// A folder without an index file: a listing or 403.
    Folder,
    /// A script, which an application runs.
    Script,
    /// At no path: a version of content.
    Version(KnownVersion),
    /// At no path: a difference that would gain nothing.
    NoDifference,
}

/// Words that are told of content that is a dictionary.
#[derive(Debug)]
pub(crate) struct OfferedDictionary {
    /// Hash of the identity.
    pub(crate) hash: Hash,
    /// Value of Use-As-Dictionary.
    pub(crate) offer: Box<str>,
}

/// The place of the bytes of a version.
#[derive(Debug)]
pub(crate) enum KnownVersion {
    /// In the content of this path, as long as that has the version's hash.
    Current(Arc<[u8]>),
    /// Here: the content was changed or removed.
    Former(Representation),
}

/// A body in its representations.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    /// The identity stands at place 0 and is always there; see [`super::negotiate`] for the others.
    pub(crate) representations: [Option<Representation>; PLACES],
    /// Its media type.
    pub(crate) media: MediaType,
    /// Last-Modified in seconds since 1970, if one is told.
    pub(crate) modified_unix_s: Option<i64>,
    /// Value of Vary, if any.
    pub(crate) vary: Option<&'static str>,
    /// Hash of the stamps of side files, 0 if there are none: a change there is a change here.
    pub(crate) side_files: u64,
    /// Words told of it if it is a dictionary.
    pub(crate) told: Option<Arc<OfferedDictionary>>,
}

/// What all representations of one content have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Common<'a> {
    /// The media type.
    pub(crate) media: &'a MediaType,
    /// Last-Modified in seconds since 1970, if one is told.
    pub(crate) modified_unix_s: Option<i64>,
    /// Value of Vary, if any.
    pub(crate) vary: Option<&'static str>,
    /// Value of Use-As-Dictionary, if any.
    pub(crate) offer: Option<&'a str>,
    /// What rules add.
    pub(crate) ruling: Option<&'a Ruling>,
}

/// A representation of a path: its fields, and its body behind them or in an open file.
#[derive(Debug, Clone)]
pub(crate) struct Representation {
    /// Fields, a blank line and, unless it is in a file, the body.
    pub(crate) block: Arc<[u8]>,
    /// Where the parts of the fields stand.
    pub(crate) layout: Layout,
    /// The file that is the body.
    pub(crate) file: Option<Box<FileBody>>,
}

/// A body that stays in its file.
#[derive(Debug, Clone)]
pub(crate) struct FileBody {
    /// The open file.
    pub(crate) file: Arc<OwnedFd>,
    /// What it was when the fields were written.
    pub(crate) stamp: FileStamp,
}

impl Entry {
    /// A new entry, never used.
    pub(crate) fn new(key: Arc<[u8]>, kind: Kind, stamp: FileStamp, freshness: Freshness) -> Self {
        let (used, settled) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { key, kind, stamp, ruling: None, freshness, used, settled, slots: Default::default() }
    }

    /// This entry with what rules say of its path.
    pub(crate) fn under(self, ruling: Option<Arc<Ruling>>) -> Self {
        Self { ruling, ..self }
    }

    /// An entry for this entry's path that has more representations.
    pub(crate) fn successor(&self, content: Content) -> Self {
        let freshness = self.freshness.clone();
        let next = Self::new(Arc::clone(&self.key), Kind::Content(content), self.stamp, freshness)
            .under(self.ruling.clone());
        next.used.store(self.used.load(Ordering::Relaxed), Ordering::Relaxed);
        next
    }

    /// Says that no further encoding will come.
    pub(crate) fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }

    /// Whether no further encoding will come.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Relaxed)
    }

    /// Marks it as used. Written only if it was not, so that busy entries stay unwritten in every cache.
    /// Gives true on the first use since the mark was cleared.
    #[inline]
    pub(crate) fn mark_used(&self) -> bool {
        let fresh = !self.used.load(Ordering::Relaxed);
        if fresh {
            self.used.store(true, Ordering::Relaxed);
        }
        fresh
    }

    /// Its content, if it has any.
    pub(crate) fn content(&self) -> Option<&Content> {
        match &self.kind {
            Kind::Content(content) => Some(content),
            _ => None,
        }
    }

    /// Bytes of a former version that it holds.
    fn former_bytes(&self) -> usize {
        match &self.kind {
            Kind::Version(KnownVersion::Former(former)) => former.block.len(),
            _ => 0,
        }
    }

    /// Whether it keeps a file open.
    pub(crate) fn keeps_file(&self) -> bool {
        self.content()
            .is_some_and(|content| content.representations.iter().flatten().any(|one| one.file.is_some()))
    }

    /// Whether it holds a body in memory, or nothing but what describes the entry.
    pub(crate) fn is_weighed(&self) -> bool {
        !self.keeps_file()
            || self
                .content()
                .is_some_and(|content| content.representations.iter().flatten().any(|one| one.file.is_none()))
    }

    /// What it costs in bytes of memory: blocks, key, and its places in the store.
    pub(crate) fn cost_bytes(&self) -> u64 {
        const PLACES_IN_STORE: usize = 16 + 8 + 32;
        let content = self.content().map_or(0, |content| {
            let blocks = content.representations.iter().flatten().map(|one| one.block.len() + 16);
            let told =
                content.told.as_ref().map_or(0, |told| size_of::<OfferedDictionary>() + told.offer.len());
            blocks.sum::<usize>() + content.media.held_bytes() + told
        });
        (size_of::<Self>() + self.key.len() + PLACES_IN_STORE + content + self.former_bytes()) as u64
    }
}

impl Content {
    /// Content of which only the identity is there.
    pub(crate) fn of_identity(common: &Common<'_>, identity: Representation) -> Self {
        let Common { media, modified_unix_s, vary, .. } = *common;
        Self {
            representations: [Some(identity), None, None, None],
            media: media.clone(),
            modified_unix_s,
            vary,
            side_files: 0,
            told: None,
        }
    }

    /// Length of the identity in bytes, if it is held.
    pub(crate) fn length_bytes(&self) -> usize {
        self.identity().map_or(0, |identity| identity.body().len())
    }

    /// The file that is the identity, if that is not held.
    pub(crate) fn file(&self) -> Option<&FileBody> {
        self.identity()?.file.as_deref()
    }

    /// What all representations have in common.
    pub(crate) fn common<'a>(&'a self, ruling: Option<&'a Ruling>) -> Common<'a> {
        let offer = self.told.as_ref().map(|told| &*told.offer);
        Common { media: &self.media, modified_unix_s: self.modified_unix_s, vary: self.vary, offer, ruling }
    }

    /// The representation without an encoding.
    pub(crate) fn identity(&self) -> Option<&Representation> {
        self.representations[0].as_ref()
    }

    /// How many encodings are there.
    pub(crate) fn encodings(&self) -> usize {
        self.representations.iter().skip(1).flatten().count()
    }
}

impl Representation {
    /// The fields of the head, without the blank line.
    #[inline]
    pub(crate) fn fields(&self) -> &[u8] {
        &self.block[..self.fields_bytes()]
    }

    /// Length of the fields.
    #[inline]
    pub(crate) fn fields_bytes(&self) -> usize {
        usize::from(self.layout.end)
    }

    /// What follows Content-Length: Content-Type and all others.
    pub(crate) fn fields_of_part(&self) -> &[u8] {
        &self.fields()[usize::from(self.layout.content_type)..]
    }

    /// What follows Content-Type.
    pub(crate) fn fields_of_parts(&self) -> &[u8] {
        &self.fields()[usize::from(self.layout.rest)..]
    }

    /// The fields of a 304 (RFC 9110, section 15.4.5).
    pub(crate) fn fields_not_modified(&self) -> &[u8] {
        &self.fields()[usize::from(self.layout.tail)..]
    }

    /// The fields of a 304 to a client that has the content under another entity tag.
    pub(crate) fn fields_not_modified_as(&self, etag: &[u8]) -> Vec<u8> {
        let before = &self.block[usize::from(self.layout.tail)..usize::from(self.layout.etag)];
        [before, etag, LINE_END].concat()
    }

    /// The entity tag with its quotes.
    pub(crate) fn etag(&self) -> &[u8] {
        &self.block[usize::from(self.layout.etag)..self.fields_bytes() - LINE_END.len()]
    }

    /// The value of Last-Modified.
    pub(crate) fn modified(&self) -> Option<&[u8]> {
        let start = usize::from(self.layout.modified);
        (start > 0).then(|| &self.block[start..start + 29])
    }

    /// Where the body begins, behind the blank line.
    fn body_start(&self) -> usize {
        self.fields_bytes() + LINE_END.len()
    }

    /// The body, if it is held.
    pub(crate) fn body(&self) -> &[u8] {
        &self.block[self.body_start()..]
    }

    /// Length of the body in bytes.
    pub(crate) fn length_bytes(&self) -> u64 {
        match &self.file {
            Some(body) => body.stamp.size_bytes,
            None => self.body().len() as u64,
        }
    }

    /// A piece of the body.
    pub(crate) fn piece(&self, range: ByteRange) -> Piece {
        match &self.file {
            Some(body) => Piece::File(FilePart {
                file: Arc::clone(&body.file),
                offset_bytes: range.start,
                length_bytes: range.length_bytes(),
                stamp: body.stamp,
            }),
            None => {
                // The range lies within the body, and that within memory.
                let at = |offset: u64| self.body_start() + offset as usize;
                Piece::Shared(Slice {
                    bytes: Arc::clone(&self.block),
                    start: at(range.start),
                    end: at(range.end),
                })
            }
        }
    }
}
