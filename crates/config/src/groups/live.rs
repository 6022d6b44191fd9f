//! Keys of live data: who may publish, how much is held, what topics are like.

use crate::group::{Conflict, Inline, group};
use crate::syntax::choice::{OnOff, SyncTime, TopicKind};
use crate::syntax::text::{Count, FilePath, Folder, Size, Time, Words};
use crate::syntax::web::{CookieName, FieldValue, Origin, PublishToken, Token};
use crate::syntax::{Many, OrAuto, OrOff};

/// Longest value that may be allowed: it is sent as a whole, and stops others meanwhile.
const VALUE_BYTES_MAX: u64 = 16 << 20;

group! {
    /// Live data: publishing, polling, streams of events.
    Live, "Live data", possible;

    /// Serve live data: /publish, /topics/NAME, /live/NAME, /events, /ws, /live.js
    /// The endpoints answer before the site's files and without the rules for its paths. Each site has
    /// topics, readers and limits of its own: what stands at the top holds for each site that does not say it
    /// itself.
    live: OnOff = Some("off"), Value, restart, "true";
    /// Secret of 32 bytes and more, to publish by
    /// `Authorization: Bearer SECRET`. Without it, and without `publish_token_file`, nobody may publish.
    /// Whoever may list processes sees what stands on a command line.
    publish_token: OrOff<PublishToken> = Some("off"), Value, restart,
        "\"a-secret-of-at-least-thirty-two-bytes\"";
    /// File with that secret on its first line
    publish_token_file: OrOff<FilePath> = Some("off"), Value, restart, "\"/etc/staunch/publish-token\"";
    /// Most readers at a time: auto is half of the most connections
    /// With several sites auto is an even share of that half.
    live_connections: OrAuto<Count> = Some("auto"), Value, restart, "100000";
    /// Most memory for values, updates and forms
    /// Forms go first, then the oldest updates. Values stay: what has no room then is refused with 503.
    live_memory: Size = Some("256MiB"), Value, restart, "\"1GiB\"";
    /// Folder in which values and last updates are kept, for the next start
    /// It has to exist, to belong to the user the server runs as, and to be no part of a site. One server at
    /// a time can use it. Each site has a file of its own in it, `live-HOST.redb` by its first host.
    live_state: OrOff<Folder> = Some("off"), Value, restart, "\"/var/lib/staunch\"";
    /// On disk `always` before an answer, at an `interval`, or at the end: `off`
    /// The interval is a second. What a crash costs: nothing, the last second, everything since the start.
    /// After a crash the numbering goes on only with `always`.
    live_sync: SyncTime = Some("always"), Value, restart, "\"interval\"";
    /// Most topics
    live_topics: Count = Some("100000"), Value, restart, "1000";
    /// Longest value of a topic
    live_value_size: Size = Some("64KiB"), Value, restart, "\"1MiB\"";
    /// Origins whose pages may read and publish, or "*" for all
    live_origins: Many<Origin> = Some(""), Values, restart, "[\"https://app.example.org\"]";
    /// What names of variables of quotes begin with
    /// `GET /list=s1` answers `var PREFIXs1="VALUE";`.
    live_quotes_prefix: OrOff<Token> = Some("off"), Value, restart, "\"hq_str_\"";
    /// Name of the cookie that may carry a token
    /// An EventSource sends no field. With a page of another origin it counts only if that is
    /// one of `live_origins`. `mercureAuthorization` is what Mercure 0.x has.
    live_cookie: CookieName = Some("__Secure-staunch_token"), Value, restart, "\"mercureAuthorization\"";
    /// Serve /ws/echo, an echo, for tests
    live_echo: OnOff = Some("off"), Value, restart, "true";
    /// Issuers that sign tokens for publishing and for reading what is private
    live_issuer: Many<Inline<LiveIssuerRule>> = Some(""), File, restart,
        "[{ name = \"id\", audience = \"live\", secret_file = \"/etc/staunch/secret\" }]";
    /// What topics are like: the first rule that fits counts
    live_topic: Many<Inline<LiveTopicRule>> = Some(""), File, restart,
        "[{ match = \"chat.>\", kind = \"log\", ring = 100 }]";
}

group! {
    /// An issuer, which signs tokens (JWT, RFC 9068).
    LiveIssuerRule, "Issuers of tokens", one_key;

    /// What `iss` of a token has to be
    name: Words = None, File, restart, "\"https://id.example.org\"";
    /// What `aud` of a token has to name
    audience: Words = None, File, restart, "\"https://live.example.org\"";
    /// File with the shared secret of HS256, alone on its first line
    secret_file: OrOff<FilePath> = Some("off"), File, restart, "\"/etc/staunch/secret\"";
    /// File with a set of keys (JWKS) for HS256, ES256, EdDSA, RS256
    jwks_file: OrOff<FilePath> = Some("off"), File, restart, "\"/etc/staunch/keys.json\"";
    /// Take tokens of Mercure 0.x as well: the claim `mercure`
    /// They need no `iss`, `aud` and `exp`, so it weakens the checks.
    mercure_compatibility: OnOff = Some("off"), File, restart, "true";
}

group! {
    /// What some topics are like.
    LiveTopicRule, "Rules for topics", of_a_topic;

    /// Name of a topic, or a pattern of names
    /// `b.*` is one word more, `b.>` the rest, `*` every name.
    topics as "match": Words = None, File, restart, "\"quotes.*\"";
    /// What readers are promised: `value`, `log` or `json`
    /// Of a `value` the latest counts, and what is outdated may be skipped. A `log` has each update once, in
    /// order. `json` is a value that is one document, of which readers may ask for differences.
    kind: TopicKind = Some("value"), File, restart, "\"log\"";
    /// How many of its last updates are kept, of a log, of json, with `dictionary`
    ring: Count = Some("64"), File, restart, "1000";
    /// Most bytes of them
    ring_size: Size = Some("256KiB"), File, restart, "\"1MiB\"";
    /// At most one update in so long: the latest wins
    every: OrOff<Time> = Some("off"), File, restart, "\"100ms\"";
    /// Forget a topic that had neither update nor reader for so long
    keep: OrOff<Time> = Some("off"), File, restart, "\"1h\"";
    /// Only for readers whose token grants the topic
    private: OnOff = Some("off"), File, restart, "true";
    /// The Cache-Control field of a polled value
    /// auto is `no-cache`, with `dictionary` `max-age=0, stale-while-revalidate=60`: browsers keep a
    /// dictionary for as long as that says.
    cache: OrAuto<FieldValue> = Some("auto"), File, restart, "\"max-age=5\"";
    /// Poll values as differences to those that clients have (RFC 9842)
    /// The last `ring` values are kept for it, also of a `value`. Of values of 256 bytes to 1 MiB.
    dictionary: OnOff = Some("off"), File, restart, "true";
}

fn possible(live: &Live) -> Conflict {
    if live.publish_token.is_some() && live.publish_token_file.is_some() {
        return Some(("publish_token_file", "`publish_token` is said as well: which one counts?".into()));
    }
    let text = || format!("at most {}", crate::units::write_size(VALUE_BYTES_MAX));
    (live.live_value_size > VALUE_BYTES_MAX).then(|| ("live_value_size", text()))
}

fn one_key(rule: &LiveIssuerRule) -> Conflict {
    let text = "one of `secret_file` and `jwks_file` says by which keys tokens are checked";
    (rule.secret_file.is_some() == rule.jwks_file.is_some()).then(|| ("secret_file", text.into()))
}

fn of_a_topic(rule: &LiveTopicRule) -> Conflict {
    if rule.private && rule.dictionary {
        let text = "what is private is never told as a difference: leave one of them out";
        return Some(("dictionary", text.into()));
    }
    let loses = rule.kind == TopicKind::Log && rule.every.is_some();
    loses.then(|| ("every", "a log loses no update: leave it out, or make it a value".into()))
}
