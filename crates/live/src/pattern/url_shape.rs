//! URL patterns (WHATWG URL Pattern), component by component.
//!
//! It owns how a pattern is held and compared. It must never build a regular expression that its writer did
//! not write, nor one that is larger than [`REGEXP_BYTES_MAX`].

use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{Config, WhichCaptures};
use regex_automata::{Anchored, Input};
use url::Url;
use urlpattern::component::Component;
use urlpattern::parser::{Options, Part, PartModifier, PartType, RegexSyntax, parse_pattern_string};
use urlpattern::regexp::RegExp;
use urlpattern::{UrlPattern, UrlPatternInit, UrlPatternOptions};

use super::glob::{Again, Glob, Piece, Wildcard, WildcardKind};
use crate::limits::REGEXP_BYTES_MAX;
use crate::name::NameFault;

/// Schemes whose URLs have a path of segments (WHATWG URL, section 3.1).
const SPECIAL_SCHEMES: [&str; 6] = ["ftp", "file", "http", "https", "ws", "wss"];

/// A pattern of URLs.
#[derive(Debug)]
pub(super) struct UrlShape {
    begin: Box<str>,
    /// What is asked of components; those of which nothing is asked are left out.
    asked: Box<[(UrlPart, Matcher)]>,
}

/// The part of a URL that a component of a pattern is about.
#[derive(Debug, Clone, Copy)]
enum UrlPart {
    Protocol,
    Username,
    Password,
    Hostname,
    Port,
    Pathname,
    Search,
    Hash,
}

#[derive(Debug)]
enum Matcher {
    Glob(Glob),
    Regexp(Box<PikeVM>),
}

impl UrlShape {
    /// Reads a pattern. A group with a regular expression is refused unless `may_have_regexps`.
    pub(super) fn read(text: &str, may_have_regexps: bool) -> Result<Self, NameFault> {
        if !may_have_regexps && has_group(text) {
            return Err(NameFault::Regexp);
        }
        let none = |_| NameFault::NoUrlPattern;
        let init = UrlPatternInit::parse_constructor_string::<Written>(text, None).map_err(none)?;
        let begins_with_slash = init.pathname.as_ref().is_some_and(|path| path.starts_with('/'));
        let parsed: UrlPattern<Written> =
            UrlPattern::parse(init, UrlPatternOptions::default()).map_err(none)?;
        let is_special =
            SPECIAL_SCHEMES.iter().any(|scheme| parsed.protocol.matcher.matches(scheme).is_some());
        let has_segments = is_special || begins_with_slash || parsed.protocol.pattern_string.is_empty();
        let of_path = if has_segments { Options::pathname() } else { Options::default() };
        let components = [
            (UrlPart::Protocol, &parsed.protocol, Options::default()),
            (UrlPart::Username, &parsed.username, Options::default()),
            (UrlPart::Password, &parsed.password, Options::default()),
            (UrlPart::Hostname, &parsed.hostname, Options::hostname()),
            (UrlPart::Port, &parsed.port, Options::default()),
            (UrlPart::Pathname, &parsed.pathname, of_path),
            (UrlPart::Search, &parsed.search, Options::default()),
            (UrlPart::Hash, &parsed.hash, Options::default()),
        ];
        let (mut asked, mut left_bytes) = (Vec::new(), REGEXP_BYTES_MAX);
        for (part, component, options) in components {
            let matcher = Matcher::read(component, &options, &mut left_bytes)?;
            if !matches!(&matcher, Matcher::Glob(glob) if glob.is_everything()) {
                asked.push((part, matcher));
            }
        }
        Ok(Self { begin: begin_of(&asked).into(), asked: asked.into() })
    }

    /// What every name begins with that it matches.
    pub(super) fn begin(&self) -> &str {
        &self.begin
    }

    /// Bytes of memory beside itself.
    pub(super) fn held_bytes(&self) -> usize {
        let bytes = |(_, matcher): &(UrlPart, Matcher)| match matcher {
            Matcher::Glob(glob) => glob.held_bytes(),
            Matcher::Regexp(regexp) => size_of::<PikeVM>() + regexp.get_nfa().memory_usage(),
        };
        self.begin.len() + size_of_val(&*self.asked) + self.asked.iter().map(bytes).sum::<usize>()
    }

    /// Whether a name is a URL of the pattern. Adds to `work` what that took.
    pub(super) fn matches(&self, name: &str, work: &mut usize) -> bool {
        *work += 1;
        if !name.starts_with(&*self.begin) {
            return false;
        }
        *work += 1 + name.len() / 16;
        let Ok(url) = Url::parse(name) else { return false };
        self.asked.iter().all(|(part, matcher)| matcher.matches(part.of(&url), work))
    }
}

/// The scheme and the host, if both are literal: a name that is met spells them so.
fn begin_of(asked: &[(UrlPart, Matcher)]) -> String {
    let find = |wanted: fn(&UrlPart) -> bool| {
        asked.iter().find(|(part, _)| wanted(part)).map(|(_, matcher)| match matcher {
            Matcher::Glob(glob) if glob.is_literal() => glob.begin(),
            Matcher::Glob(_) | Matcher::Regexp(_) => "",
        })
    };
    let scheme = find(|part| matches!(part, UrlPart::Protocol)).unwrap_or_default();
    let host = find(|part| matches!(part, UrlPart::Hostname)).unwrap_or_default();
    let user = find(|part| matches!(part, UrlPart::Username | UrlPart::Password));
    match (scheme, host, user) {
        ("", ..) => String::new(),
        (scheme, "", _) | (scheme, _, Some(_)) => format!("{scheme}:"),
        (scheme, host, None) => format!("{scheme}://{host}"),
    }
}

impl UrlPart {
    fn of(self, url: &Url) -> &str {
        match self {
            Self::Protocol => url.scheme(),
            Self::Username => url.username(),
            Self::Password => url.password().unwrap_or_default(),
            Self::Hostname => url.host_str().unwrap_or_default(),
            Self::Port => url::quirks::port(url),
            Self::Pathname => url.path(),
            Self::Search => url.query().unwrap_or_default(),
            Self::Hash => url.fragment().unwrap_or_default(),
        }
    }
}

impl Matcher {
    fn read(
        component: &Component<Written>,
        options: &Options,
        left_bytes: &mut usize,
    ) -> Result<Self, NameFault> {
        let none = |_| NameFault::NoUrlPattern;
        if component.has_regexp_group {
            let written = component.regexp.as_ref().map_err(|_| NameFault::NoUrlPattern)?;
            let regexp = build(&written.0, *left_bytes)?;
            *left_bytes -= regexp.get_nfa().memory_usage();
            return Ok(Self::Regexp(Box::new(regexp)));
        }
        // The pattern's text is in its final coding.
        let parts = parse_pattern_string(&component.pattern_string, options, |text| Ok(text.to_owned()));
        let pieces = parts.map_err(none)?.into_iter().map(|part| piece_of(part, options)).collect();
        Glob::new(pieces).map(Self::Glob).ok_or(NameFault::TooManyPieces)
    }

    fn matches(&self, text: &str, work: &mut usize) -> bool {
        match self {
            Self::Glob(glob) => glob.matches(text, work),
            Self::Regexp(regexp) => {
                *work += 1 + text.len() * regexp.get_nfa().states().len() / 64;
                is_match(regexp, text)
            }
        }
    }
}

fn piece_of(part: Part, options: &Options) -> Piece {
    let segment = WildcardKind::AllBut(options.delimiter_code_point.map(|delimiter| delimiter as u8));
    let again = match part.modifier {
        PartModifier::None => Again::Once,
        PartModifier::Optional => Again::OnceOrNot,
        PartModifier::OneOrMore => Again::Often,
        PartModifier::ZeroOrMore => Again::OftenOrNot,
    };
    let (before, kind, may_be_empty) = match part.kind {
        PartType::FixedText => return Piece { again, ..Piece::literal(&part.value) },
        PartType::SegmentWildcard => (part.prefix, segment, false),
        PartType::FullWildcard | PartType::Regexp => (part.prefix, WildcardKind::AllBut(None), true),
    };
    let run = Some(Wildcard { first: None, kind, may_be_empty });
    Piece { before: before.into(), run, behind: part.suffix.into(), again }
}

/// Whether a pattern has a group with a regular expression, or a parenthesis that makes it none.
fn has_group(text: &str) -> bool {
    let mut is_escaped = false;
    text.bytes().any(|byte| {
        let is_group = byte == b'(' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_group
    })
}

fn build(text: &str, bytes_max: usize) -> Result<PikeVM, NameFault> {
    let config = Config::new().nfa_size_limit(Some(bytes_max)).which_captures(WhichCaptures::None);
    let built = PikeVM::builder().thompson(config).build(text);
    built.map_err(|error| match error.size_limit() {
        Some(_) => NameFault::LargeRegexp,
        None => NameFault::NoUrlPattern,
    })
}

fn is_match(regexp: &PikeVM, text: &str) -> bool {
    regexp.is_match(&mut regexp.create_cache(), Input::new(text).anchored(Anchored::Yes))
}

/// A regular expression as it is written: it is built only if it has to be.
#[derive(Debug)]
struct Written(String);

impl RegExp for Written {
    fn syntax() -> RegexSyntax {
        RegexSyntax::Rust
    }

    fn parse(pattern: &str, _flags: &str, _force_eval: bool) -> Result<Self, ()> {
        Ok(Self(pattern.to_owned()))
    }

    /// Asked of the scheme alone, while a pattern is read.
    fn matches<'a>(&self, text: &'a str) -> Option<Vec<Option<&'a str>>> {
        let regexp = build(&self.0, REGEXP_BYTES_MAX).ok()?;
        is_match(&regexp, text).then(Vec::new)
    }

    fn pattern_string(&self) -> &str {
        &self.0
    }
}
