//! Values that are one of a few words.

use crate::node::{Node, ValueKind};
use crate::syntax::{Scalar, alternatives};

/// `on` or `off`; in a file `true` or `false`.
#[derive(Debug)]
pub struct OnOff;

impl Scalar for OnOff {
    type Value = bool;
    const WORD: &'static str = "on|off";

    fn parse(text: &str) -> Result<bool, String> {
        match text {
            "on" | "true" => Ok(true),
            "off" | "false" => Ok(false),
            _ => Err("write on or off, in a file true or false".into()),
        }
    }

    fn write(value: &bool) -> Node {
        Node::new(ValueKind::Switch(*value))
    }
}

macro_rules! choices {
    ($($(#[doc = $about:literal])+ $name:ident $(as $called:literal)? {
        $($(#[doc = $doc:literal])+ $choice:ident = $word:literal,)+
    })+) => {$(
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $doc])+ $choice,)+ }

        impl $name {
            /// All of them, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$choice),+];

            /// How it is written.
            pub fn name(self) -> &'static str {
                match self { $(Self::$choice => $word,)+ }
            }
        }

        impl Scalar for $name {
            type Value = Self;
            const WORD: &'static str = called!($($called)? words!($($word),+));

            fn parse(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|choice| choice.name() == text);
                found.copied().ok_or_else(|| format!("write {}", alternatives(words!($($word),+))))
            }

            fn write(value: &Self) -> Node {
                Node::text(value.name())
            }
        }
    )+};
}

/// What a choice is called in the help: its words, where they are few.
macro_rules! called {
    ($called:literal $words:expr) => {
        $called
    };
    ($words:expr) => {
        $words
    };
}

macro_rules! words {
    ($first:literal $(, $word:literal)*) => { concat!($first $(, "|", $word)*) };
}

choices! {
    /// A kind of challenge (RFC 8555, section 8.3; RFC 8737).
    ChallengeWord as "KIND" {
        /// A request in plain HTTP.
        Http = "http-01",
        /// A handshake.
        TlsAlpn = "tls-alpn-01",
    }
    /// By what a client stays with a server.
    StickyWord {
        /// A number that Staunch gave it.
        Cookie = "cookie",
        /// The client's address, or the prefix of that.
        Client = "client",
    }
    /// Whether clients have to show a certificate.
    ClientAuthMode {
        /// They may.
        Optional = "optional",
        /// They have to.
        Required = "required",
    }
    /// How keys protect messages between servers.
    FabricMode {
        /// From change and replay.
        Mac = "mac",
        /// From readers as well.
        Aead = "aead",
    }
    /// How frames of the fabric travel.
    FabricBackend as "WAY" {
        /// By a packet ring, or by one that a node of this host gives.
        Auto = "auto",
        /// By a packet ring.
        Ring = "ring",
        /// By rings that a node of this host gives.
        Given = "given",
        /// Within datagrams of UDP.
        Udp = "udp",
    }
    /// What readers of a topic are promised.
    TopicKind {
        /// The latest counts.
        Value = "value",
        /// Each update once, in order.
        Log = "log",
        /// A value that is one JSON document.
        Json = "json",
    }
    /// When what is kept is on the disk.
    SyncTime as "WHEN" {
        /// Before a publisher is answered.
        Always = "always",
        /// Within a second.
        Interval = "interval",
        /// When the server ends.
        Off = "off",
    }
    /// Which way to the network.
    IoWay {
        /// io_uring where it works, else epoll.
        Auto = "auto",
        /// io_uring.
        Uring = "uring",
        /// By `epoll(7)`.
        Epoll = "epoll",
    }
    /// An encoding to prepare content in.
    Coding as "CODING" {
        /// Brotli.
        Br = "br",
        /// Zstandard.
        Zstd = "zstd",
        /// By `gzip` (RFC 1952).
        Gzip = "gzip",
    }
    /// Whether the process confines itself.
    Sandbox {
        /// By what the kernel has.
        Auto = "auto",
        /// In full, or not at all: then it does not start.
        On = "on",
        /// Not.
        Off = "off",
    }
    /// How urgent requests are.
    RequestClass {
        /// Give way first.
        Low = "low",
        /// Whatever nothing is said of.
        Normal = "normal",
        /// Go before all others.
        High = "high",
    }
    /// A field of a JSON line of the access log.
    LogField as "FIELD" {
        /// When it was answered, RFC 3339 with milliseconds.
        Time = "time",
        /// Address of the client.
        Client = "client",
        /// Method of the request.
        Method = "method",
        /// Target, as it was asked for.
        Target = "target",
        /// Version of HTTP.
        Version = "version",
        /// The Host field.
        Host = "host",
        /// Status of the answer.
        Status = "status",
        /// Length of the answer's body.
        Bytes = "bytes",
        /// The Referer field.
        Referer = "referer",
        /// The User-Agent field.
        UserAgent = "user_agent",
        /// From the turn that saw the request to its answer, in microseconds.
        DurationUs = "duration_us",
        /// Number of the worker.
        Worker = "worker",
        /// The X-Forwarded-For field.
        ForwardedFor = "forwarded_for",
        /// The user who gave a password.
        User = "user",
        /// Whether the client showed a certificate.
        ClientVerify = "client_verify",
        /// Whose it is.
        ClientSubject = "client_subject",
        /// Its SHA-256.
        ClientFingerprint = "client_fingerprint",
        /// Address of the application's server that was asked last.
        Upstream = "upstream",
        /// How many times a server was asked.
        UpstreamTries = "upstream_tries",
        /// Class of the request, and whether its client was known.
        UpstreamClass = "upstream_class",
        /// Time in line for a server.
        UpstreamLineMs = "upstream_line_ms",
        /// From the place at that server to the head of the answer.
        UpstreamHeaderMs = "upstream_header_ms",
        /// From the place at that server to the end of the answer.
        UpstreamResponseMs = "upstream_response_ms",
    }
}
