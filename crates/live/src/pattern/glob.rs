//! Wildcards between literals: what URI templates and components of URL patterns are compared by.
//!
//! It owns the comparison, which needs no memory of its own. It must never try an alternative again: each
//! piece looks at each place of the text once.

use crate::limits::{COMPARED_BYTES_MAX, PATTERN_PIECES_MAX};

/// Places of a text, its end included.
const PLACE_WORDS: usize = (COMPARED_BYTES_MAX + 1) / 64;

const _: () = assert!((COMPARED_BYTES_MAX + 1).is_multiple_of(64));

/// Pieces between two literals.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Glob {
    begin: Box<str>,
    pieces: Box<[Piece]>,
    end: Box<str>,
}

/// A wildcard, or nothing, between two literals.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) before: Box<str>,
    pub(super) run: Option<Wildcard>,
    pub(super) behind: Box<str>,
    pub(super) again: Again,
}

/// How often a piece may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    Once,
    OnceOrNot,
    Often,
    OftenOrNot,
}

/// Characters of a kind, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wildcard {
    /// What it begins with, if it is not empty.
    pub(super) first: Option<u8>,
    pub(super) kind: WildcardKind,
    pub(super) may_be_empty: bool,
}

/// Which characters a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WildcardKind {
    /// All but one.
    AllBut(Option<u8>),
    /// What a template's expression gives (RFC 6570, section 1.5): unreserved and encoded characters, those
    /// beyond ASCII, commas and equals signs; reserved ones as told, and what the operator sets between.
    Expansion { has_reserved: bool, between: Option<u8> },
}

impl WildcardKind {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::AllBut(other) => other != Some(byte),
            Self::Expansion { has_reserved, between } => {
                byte.is_ascii_alphanumeric()
                    || !byte.is_ascii()
                    || b"-._~%,=".contains(&byte)
                    || between == Some(byte)
                    || (has_reserved && b":/?#[]@!$&'()*+;".contains(&byte))
            }
        }
    }
}

impl Piece {
    /// A piece that fits this text alone.
    pub(super) fn literal(text: &str) -> Self {
        Self { before: text.into(), run: None, behind: "".into(), again: Again::Once }
    }

    fn is_empty(&self) -> bool {
        self.before.is_empty() && self.run.is_none() && self.behind.is_empty()
    }
}

impl Glob {
    /// Puts pieces together; `None` if they are more than [`PATTERN_PIECES_MAX`].
    pub(super) fn new(mut pieces: Vec<Piece>) -> Option<Self> {
        let mut begin = Box::default();
        if let Some(first) = pieces.first_mut().filter(|first| first.again == Again::Once) {
            begin = std::mem::take(&mut first.before);
            if first.is_empty() {
                pieces.remove(0);
            }
        }
        let mut end = Box::default();
        if let Some(last) = pieces.last_mut().filter(|last| last.again == Again::Once) {
            end = match last.run {
                Some(_) => std::mem::take(&mut last.behind),
                None => std::mem::take(&mut last.before),
            };
            if last.is_empty() {
                pieces.pop();
            }
        }
        // Two runs that may be empty, one directly behind the other, are as one.
        pieces.dedup_by(|piece, former| {
            let is_run = |piece: &Piece| {
                piece.again == Again::Once
                    && piece.run.is_some_and(|run| run.first.is_none() && run.may_be_empty)
            };
            is_run(piece) && is_run(former) && piece.before.is_empty() && former.behind.is_empty() && {
                let is_same = piece.run == former.run;
                if is_same {
                    former.behind = std::mem::take(&mut piece.behind);
                }
                is_same
            }
        });
        (pieces.len() <= PATTERN_PIECES_MAX).then(|| Self { begin, pieces: pieces.into(), end })
    }

    /// What every text begins with that it matches.
    pub(super) fn begin(&self) -> &str {
        &self.begin
    }

    /// Whether it is nothing but its beginning.
    pub(super) fn is_literal(&self) -> bool {
        self.pieces.is_empty() && self.end.is_empty()
    }

    /// Whether every text matches.
    pub(super) fn is_everything(&self) -> bool {
        self.begin.is_empty() && self.end.is_empty() && self.takes_all()
    }

    fn takes_all(&self) -> bool {
        let all = Wildcard { first: None, kind: WildcardKind::AllBut(None), may_be_empty: true };
        matches!(&*self.pieces, [Piece { before, run: Some(run), behind, again: Again::Once }]
            if before.is_empty() && behind.is_empty() && *run == all)
    }

    /// Bytes of memory beside itself.
    pub(super) fn held_bytes(&self) -> usize {
        let pieces =
            self.pieces.iter().map(|piece| size_of::<Piece>() + piece.before.len() + piece.behind.len());
        self.begin.len() + self.end.len() + pieces.sum::<usize>()
    }

    /// Whether the whole text matches. Adds to `work` what that took: 1, and 1 more for each 64 bytes that a
    /// piece has looked at.
    pub(super) fn matches(&self, text: &str, work: &mut usize) -> bool {
        *work += 1;
        let inner = text.strip_prefix(&*self.begin).and_then(|inner| inner.strip_suffix(&*self.end));
        let Some(inner) = inner else { return false };
        if self.pieces.is_empty() {
            return inner.is_empty();
        }
        if self.takes_all() {
            return true;
        }
        if inner.len() > COMPARED_BYTES_MAX {
            return false;
        }
        let mut places = Places::of(inner.len());
        places.add(0);
        for piece in &self.pieces {
            places = piece.step(&places, inner.as_bytes(), work);
        }
        places.has(inner.len())
    }
}

impl Piece {
    /// The places behind the piece, from those before it.
    fn step(&self, from: &Places, text: &[u8], work: &mut usize) -> Places {
        let once = self.once(from, text, work);
        match self.again {
            Again::Once => once,
            Again::OnceOrNot => once.with(from),
            Again::Often => self.often(once, text, work),
            Again::OftenOrNot => self.often(once, text, work).with(from),
        }
    }

    fn often(&self, once: Places, text: &[u8], work: &mut usize) -> Places {
        let (mut all, mut last) = (once.clone(), once);
        loop {
            last = self.once(&last, text, work).without(&all);
            if last.is_empty() {
                return all;
            }
            all = all.with(&last);
        }
    }

    fn once(&self, from: &Places, text: &[u8], work: &mut usize) -> Places {
        *work += 1 + text.len() / 64;
        let before = from.behind_literal(&self.before, text);
        let run = self.run.map_or_else(|| before.clone(), |run| before.behind_run(run, text));
        run.behind_literal(&self.behind, text)
    }
}

/// Places of a text, its beginning and its end among them.
#[derive(Clone)]
struct Places {
    bits: [u64; PLACE_WORDS],
    words: usize,
}

impl Places {
    fn of(text_bytes: usize) -> Self {
        Self { bits: [0; PLACE_WORDS], words: text_bytes / 64 + 1 }
    }

    fn add(&mut self, place: usize) {
        self.bits[place / 64] |= 1 << (place % 64);
    }

    fn has(&self, place: usize) -> bool {
        self.bits[place / 64] >> (place % 64) & 1 == 1
    }

    fn is_empty(&self) -> bool {
        self.bits[..self.words].iter().all(|bits| *bits == 0)
    }

    fn with(mut self, other: &Self) -> Self {
        (0..self.words).for_each(|word| self.bits[word] |= other.bits[word]);
        self
    }

    fn without(mut self, other: &Self) -> Self {
        (0..self.words).for_each(|word| self.bits[word] &= !other.bits[word]);
        self
    }

    fn each(&self, mut take: impl FnMut(usize)) {
        for word in 0..self.words {
            let mut bits = self.bits[word];
            while bits != 0 {
                take(word * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    fn behind_literal(&self, literal: &str, text: &[u8]) -> Self {
        if literal.is_empty() {
            return self.clone();
        }
        let mut behind = Self::of(text.len());
        self.each(|place| {
            if text[place..].starts_with(literal.as_bytes()) {
                behind.add(place + literal.len());
            }
        });
        behind
    }

    fn behind_run(&self, run: Wildcard, text: &[u8]) -> Self {
        let mut behind = if run.may_be_empty { self.clone() } else { Self::of(text.len()) };
        // Whether a run that has begun before may go on here.
        let mut runs = false;
        for (place, byte) in text.iter().enumerate() {
            let fits = run.kind.has(*byte);
            let begins = self.has(place) && run.first.map_or(fits, |first| first == *byte);
            runs = begins || (runs && fits);
            if runs {
                behind.add(place + 1);
            }
        }
        behind
    }
}
