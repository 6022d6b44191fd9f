//! What live data is told at start, and why it may not start.
//!
//! It owns the vocabulary. It must never read a file: texts are given.

use std::fmt;
use std::path::PathBuf;

use staunch_live::quotes::is_prefix;
use staunch_live::token::{Issuer, Key, read_keys};
use staunch_live::{Grants, HubSettings, Kind, Pattern, StateFault, TopicName, TopicRules};
use xxhash_rust::xxh3::xxh3_64;

use crate::limits::PUBLISH_TOKEN_BYTES_MIN;

/// So many bytes of a host, and no more, stand in the name of its file.
const FILE_HOST_BYTES_MAX: usize = 200;

/// Everything that is set of one site's live data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveConfig {
    /// Name of the site: its first host, or nothing. It has the same topics as long as its name is the same.
    pub site: String,
    /// Whether the site answers to all names that no other has.
    pub is_default: bool,
    /// Most topics.
    pub topics_max: usize,
    /// Longest value.
    pub value_bytes_max: usize,
    /// Most bytes of values, rings and forms.
    pub memory_bytes: usize,
    /// Most readers at a time, all workers together.
    pub readers_max: u64,
    /// Origins whose pages may read and publish; `*` for all.
    pub origins: Vec<String>,
    /// The issuers that sign tokens.
    pub issuers: Vec<LiveIssuer>,
    /// What names of variables of quotes begin with.
    pub quotes_prefix: String,
    /// Name of the cookie that may carry a token.
    pub cookie: String,
    /// Whether a WebSocket is served that sends back what it gets.
    pub echo: bool,
    /// The token whose bearer may publish everything. Without a token and without issuers, publishing is
    /// refused.
    pub publish_token: Option<Vec<u8>>,
    /// Rules of topics: the first that fits counts.
    pub topics: Vec<LiveTopic>,
    /// The store of values and rings; none if they are kept in memory alone.
    pub state: Option<LiveState>,
    /// The number of this node, if others publish to the same topics.
    pub node: Option<u16>,
}

/// Settings of the store (`live_state`, `live_sync`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveState {
    /// Folder of the files.
    pub folder: PathBuf,
    /// When a batch is synced.
    pub sync: LiveSync,
    /// Whether opening waits for a lock: true in an upgrade, where the process before is about to release it.
    pub is_awaited: bool,
}

/// When a batch of updates is synced to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveSync {
    /// Before its publishers are answered.
    Always,
    /// Within a second.
    Interval,
    /// When the server ends.
    Off,
}

/// An issuer of tokens, and the keys by which its tokens are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveIssuer {
    /// What `iss` has to be.
    pub name: String,
    /// What `aud` has to name.
    pub audience: String,
    /// The keys; one of them has signed.
    pub keys: LiveKeys,
    /// Takes tokens of Mercure 0.x as well.
    pub mercure_compatibility: bool,
}

/// Keys of an issuer.
#[derive(Clone, PartialEq, Eq)]
pub enum LiveKeys {
    /// A shared secret, for HS256.
    Secret(Vec<u8>),
    /// A set of keys (JWKS, RFC 7517).
    Set(Vec<u8>),
}

impl fmt::Debug for LiveKeys {
    /// Without the keys: what is printed may be kept.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Secret(_) => "Secret",
            Self::Set(_) => "Set",
        })
    }
}

/// What readers of a topic are promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveTopicKind {
    /// The latest counts.
    Value,
    /// Each update once, in order.
    Log,
    /// The latest counts, and is one JSON document.
    Json,
}

/// Rules of the topics that a name or a pattern names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveTopic {
    /// A name, or a pattern such as `quotes.*`.
    pub pattern: String,
    /// What readers are promised.
    pub kind: LiveTopicKind,
    /// Most updates in the ring.
    pub ring_entries: usize,
    /// Most bytes of values in the ring.
    pub ring_bytes: usize,
    /// At most one update in so many milliseconds; 0 for no limit.
    pub every_ms: u64,
    /// Forgotten after so many milliseconds without update and readers; 0 for never.
    pub keep_ms: u64,
    /// Every update is private.
    pub private: bool,
    /// The Cache-Control field of a polled value.
    pub cache_control: String,
    /// Whether polled values are told as differences to those that clients have.
    pub dictionary: bool,
}

/// The part of a rule of topics that concerns their readers.
#[derive(Debug, Clone)]
pub(crate) struct ReadingRule {
    /// The topics.
    pub(crate) names: Grants,
    /// The Cache-Control field of a polled value.
    pub(crate) cache_control: String,
    /// Whether all updates are private.
    pub(crate) private: bool,
    /// Whether polled values are told as differences.
    pub(crate) dictionary: bool,
}

/// Why live data cannot be served.
#[derive(Debug)]
pub enum LiveError {
    /// A rule names no topics: its place in the list from 1, its pattern, and why.
    Pattern(usize, String, String),
    /// The keys of an issuer cannot be used: its name, and why.
    Keys(String, String),
    /// The prefix of quotes begins no name of a variable.
    Prefix,
    /// The token for publishing is too short.
    ShortToken,
    /// The store cannot be opened, read or written.
    State(StateFault),
    /// What the process before held did not come as a whole.
    Carried(std::io::Error),
    /// A thread cannot be started.
    Thread(std::io::Error),
}

impl fmt::Display for LiveError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(number, pattern, why) => {
                write!(formatter, "live_topic: rule {number}: `match = {pattern:?}`: {why}")
            }
            Self::Keys(name, why) => write!(formatter, "live_issuer: {name}: {why}"),
            Self::Prefix => {
                write!(formatter, "live_quotes_prefix: letters, digits, `_` and `$`, and no digit first")
            }
            Self::ShortToken => {
                write!(formatter, "publish_token: it has at least {PUBLISH_TOKEN_BYTES_MIN} bytes")
            }
            Self::State(fault) => write!(formatter, "live_state: {fault}"),
            Self::Carried(error) => {
                write!(formatter, "live data of the process before this one did not come as a whole: {error}")
            }
            Self::Thread(error) => write!(formatter, "cannot start a thread of live data: {error}"),
        }
    }
}

impl std::error::Error for LiveError {}

impl LiveIssuer {
    /// The issuer, with keys that were read.
    ///
    /// # Errors
    /// A key cannot be used.
    pub fn read(&self) -> Result<Issuer, LiveError> {
        let keys = match &self.keys {
            LiveKeys::Secret(secret) => Key::secret(secret).map(|key| vec![key]),
            LiveKeys::Set(text) => read_keys(text),
        };
        let keys = keys.map_err(|fault| LiveError::Keys(self.name.clone(), fault.to_string()))?;
        Ok(Issuer {
            name: self.name.clone(),
            audience: self.audience.clone(),
            keys,
            mercure_compatibility: self.mercure_compatibility,
        })
    }
}

impl LiveConfig {
    /// File of the store, if there is one; and the file of versions that had one for all sites, which is that
    /// of the default site.
    pub fn state_files(&self) -> Option<(PathBuf, Option<PathBuf>)> {
        let folder = &self.state.as_ref()?.folder;
        let common = folder.join("live.redb");
        if self.site.is_empty() {
            return Some((common, None));
        }
        // A name of a file has at most 255 bytes, also of one that is set aside; a host may have as many.
        let name = match self.site.get(..FILE_HOST_BYTES_MAX) {
            None => self.site.clone(),
            Some(begin) => format!("{begin}-{:016x}", xxh3_64(self.site.as_bytes())),
        };
        Some((folder.join(format!("live-{name}.redb")), self.is_default.then_some(common)))
    }

    /// Whether everything in it has a meaning, without starting anything.
    ///
    /// # Errors
    /// The first value that has none.
    pub fn check(&self) -> Result<(), LiveError> {
        let token = self.publish_token.as_ref();
        if token.is_some_and(|token| token.len() < PUBLISH_TOKEN_BYTES_MIN) {
            return Err(LiveError::ShortToken);
        }
        if !is_prefix(&self.quotes_prefix) {
            return Err(LiveError::Prefix);
        }
        self.tokens()?;
        self.hub(1).map(drop)
    }

    /// The issuers of tokens, with their keys read.
    pub(crate) fn tokens(&self) -> Result<Vec<Issuer>, LiveError> {
        self.issuers.iter().map(LiveIssuer::read).collect()
    }

    /// What the hub is told.
    pub(crate) fn hub(&self, workers: u16) -> Result<HubSettings, LiveError> {
        let mut settings = HubSettings {
            rules: Vec::new(),
            topics_max: self.topics_max,
            value_bytes_max: self.value_bytes_max,
            live_memory_bytes: self.memory_bytes,
            workers: usize::from(workers),
            node: self.node,
        };
        for (place, topic) in self.topics.iter().enumerate() {
            let rules = TopicRules {
                kind: match topic.kind {
                    LiveTopicKind::Value => Kind::Value,
                    LiveTopicKind::Log => Kind::Log,
                    LiveTopicKind::Json => Kind::Json,
                },
                ring_entries: topic.ring_entries,
                ring_bytes: topic.ring_bytes,
                every_ms: topic.every_ms,
                keep_ms: topic.keep_ms,
                private: topic.private,
                dictionary: topic.dictionary,
            };
            settings
                .add_rules(&topic.pattern, rules)
                .map_err(|fault| LiveError::Pattern(place + 1, topic.pattern.clone(), fault.to_string()))?;
        }
        Ok(settings)
    }

    /// The parts of rules that concern readers of topics, in the order of the rules, which
    /// [`LiveConfig::check`] has passed.
    pub(crate) fn reading_rules(&self) -> Vec<ReadingRule> {
        let of = |topic: &LiveTopic| {
            let (mut names, mut patterns) = (Vec::new(), Vec::new());
            match Pattern::is_pattern(&topic.pattern) {
                true => patterns.extend(Pattern::new(&topic.pattern)),
                false => names.extend(TopicName::new(&topic.pattern)),
            }
            let (names, cache_control) = (Grants::new(names, patterns), topic.cache_control.clone());
            ReadingRule { names, cache_control, private: topic.private, dictionary: topic.dictionary }
        };
        self.topics.iter().map(of).collect()
    }

    /// Whether a topic's rules ask for looks at the clock.
    pub(crate) fn is_timed(&self) -> bool {
        self.topics.iter().any(|topic| topic.every_ms > 0 || topic.keep_ms > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pattern: &str, token: Option<&[u8]>) -> LiveConfig {
        LiveConfig {
            site: String::new(),
            is_default: true,
            topics_max: 10,
            value_bytes_max: 100,
            memory_bytes: 1000,
            readers_max: 10,
            origins: Vec::new(),
            issuers: Vec::new(),
            quotes_prefix: String::new(),
            cookie: "t".into(),
            echo: false,
            publish_token: token.map(<[u8]>::to_vec),
            state: None,
            node: None,
            topics: vec![LiveTopic {
                pattern: pattern.into(),
                kind: LiveTopicKind::Log,
                ring_entries: 1,
                ring_bytes: 1,
                every_ms: 0,
                keep_ms: 0,
                private: false,
                cache_control: "max-age=1".into(),
                dictionary: false,
            }],
        }
    }

    #[test]
    fn each_site_has_a_file_of_its_own() {
        let state = LiveState { folder: "/state".into(), sync: LiveSync::Always, is_awaited: false };
        let files = |site: &str, is_default| {
            let config = LiveConfig { site: site.into(), is_default, ..config("a", None) };
            LiveConfig { state: Some(state.clone()), ..config }.state_files()
        };
        let common = PathBuf::from("/state/live.redb");
        assert_eq!(files("", true), Some((common.clone(), None)));
        assert_eq!(files("a.b", false), Some(("/state/live-a.b.redb".into(), None)));
        assert_eq!(files("a.b", true), Some(("/state/live-a.b.redb".into(), Some(common))));
        assert_eq!(config("a", None).state_files(), None);
        let name = |last| {
            let (path, _) = files(&format!("{}.{last}", "a.".repeat(125)), false).unwrap();
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert!(name("b").len() < 240 && name("b") != name("c"), "{}", name("b"));
    }

    #[test]
    fn what_has_no_meaning_is_told() {
        let told = |config: LiveConfig| config.check().map_err(|error| error.to_string());
        assert_eq!(told(config("a.*", Some(&[b'x'; 32]))), Ok(()));
        assert_eq!(told(config("a", None)), Ok(()));
        assert_eq!(
            told(config("a", Some(&[b'x'; 31]))),
            Err("publish_token: it has at least 32 bytes".into())
        );
        assert_eq!(
            told(config("$a", None)),
            Err("live_topic: rule 1: `match = \"$a\"`: a topic's name must not begin with `$`".into())
        );
    }
}
