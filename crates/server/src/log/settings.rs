//! What an access log is told: where to, in which form, how large.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To the end of a file, which is made if it is not there (mode 0640).
    File(PathBuf),
    /// To descriptor 1.
    StandardOutput,
    /// To descriptor 2.
    StandardError,
    /// To the syslog service that listens at this Unix socket.
    Syslog(PathBuf),
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(formatter),
            Self::StandardOutput => formatter.write_str("standard output"),
            Self::StandardError => formatter.write_str("standard error"),
            Self::Syslog(path) => write!(formatter, "syslog:{}", path.display()),
        }
    }
}

/// What a line looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// The combined format of Apache and nginx; times are in UTC.
    Combined,
    /// Pieces one behind the other.
    Text(Vec<Piece>),
    /// A JSON object a line, with these fields in this order.
    Json(Vec<Field>),
}

/// A piece of a line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text that stands in each line.
    Literal(String),
    /// A value as it stands in a combined line.
    Field(Field),
    /// The request line.
    Request,
    /// When the answer was made: `20/Nov/2026:10:00:00 +0000`.
    TimeLocal,
    /// When the answer was made, as in `2026-11-20T10:00:00+00:00`.
    TimeIso,
    /// How long the request waited for content: seconds, with milliseconds.
    RequestTime,
}

impl Format {
    /// A line of text with words as nginx has them, such as `$status`. `None` if one is unknown.
    pub fn of_text(text: &str) -> Option<Self> {
        let is_of_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let mut parts = text.split('$');
        let mut pieces = vec![Piece::Literal(parts.next()?.to_owned())];
        for rest in parts {
            let end = rest.bytes().position(|byte| !is_of_word(byte)).unwrap_or(rest.len());
            pieces.push(Piece::of_word(&rest[..end])?);
            pieces.push(Piece::Literal(rest[end..].to_owned()));
        }
        pieces.retain(|piece| *piece != Piece::Literal(String::new()));
        Some(Self::Text(pieces))
    }
}

impl Piece {
    fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "remote_addr" => Self::Field(Field::Client),
            "remote_user" => Self::Field(Field::User),
            "time_local" => Self::TimeLocal,
            "time_iso8601" => Self::TimeIso,
            "request" => Self::Request,
            "request_method" => Self::Field(Field::Method),
            "request_uri" => Self::Field(Field::Target),
            "server_protocol" => Self::Field(Field::Version),
            "host" => Self::Field(Field::Host),
            "status" => Self::Field(Field::Status),
            "body_bytes_sent" => Self::Field(Field::Bytes),
            "http_referer" => Self::Field(Field::Referer),
            "http_user_agent" => Self::Field(Field::UserAgent),
            "http_x_forwarded_for" => Self::Field(Field::ForwardedFor),
            "request_time" => Self::RequestTime,
            "upstream_addr" => Self::Field(Field::Upstream),
            "upstream_tries" => Self::Field(Field::UpstreamTries),
            "upstream_class" => Self::Field(Field::UpstreamClass),
            "upstream_queue_time" => Self::Field(Field::UpstreamLineMs),
            "upstream_header_time" => Self::Field(Field::UpstreamHeaderMs),
            "upstream_response_time" => Self::Field(Field::UpstreamResponseMs),
            "ssl_client_verify" => Self::Field(Field::ClientVerify),
            "ssl_client_s_dn" => Self::Field(Field::ClientSubject),
            "ssl_client_fingerprint_sha256" => Self::Field(Field::ClientFingerprint),
            _ => return None,
        })
    }
}

macro_rules! fields {
    ($($name:ident $word:literal $doc:literal,)*) => {
        /// A field of a JSON line. What a request does not have is `null`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Field {
            $(#[doc = $doc] $name,)*
        }

        impl Field {
            /// Every field, in the order of a line for which none are named.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name in a line and in the configuration.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// What it says.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $doc,)* }
            }
        }
    };
}

fields! {
    Time "time" "When the answer was made: RFC 3339, UTC, milliseconds.",
    Client "client" "Address of the client.",
    User "user" "Name the client gave for basic authentication, right or wrong.",
    Method "method" "Method as sent.",
    Target "target" "Target as sent: path and query.",
    Version "version" "Version as sent, such as HTTP/1.1.",
    Host "host" "Name of the host asked for, without port.",
    Status "status" "Status of the answer.",
    Bytes "bytes" "Length of the body handed to the kernel for sending; less may have arrived.",
    Referer "referer" "Referer as sent.",
    UserAgent "user_agent" "User-Agent as sent.",
    ForwardedFor "forwarded_for" "The first X-Forwarded-For as sent: not to be trusted.",
    DurationUs "duration_us" "How long the request waited for content, in steps of 1000; 0 if not at all.",
    Worker "worker" "Number of the worker that answered.",
    ClientVerify "client_verify" "SUCCESS if the client showed a certificate that was verified, else NONE.",
    ClientSubject "client_subject" "Subject of that certificate (RFC 4514).",
    ClientFingerprint "client_fingerprint" "SHA-256 of that certificate, in hexadecimal digits.",
    Upstream "upstream" "Address of the application's server that was asked last.",
    UpstreamTries "upstream_tries" "How many times a server was asked: 2 after a second try.",
    UpstreamClass "upstream_class" "Class in line: low, normal or high; behind it -known if the client was.",
    UpstreamLineMs "upstream_line_ms" "How long the request stood in line for a server.",
    UpstreamHeaderMs "upstream_header_ms" "From its place at that server to the head of the answer.",
    UpstreamResponseMs "upstream_response_ms" "From its place at that server to the end of its answer.",
}

impl Field {
    /// The field of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.name() == name)
    }
}

/// Everything an access log needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// Where to.
    pub target: Target,
    /// In which form.
    pub format: Format,
    /// A file that would become larger is given the suffix `.1`, after `.1` was given `.2` and so on, and a
    /// new one is begun. Not for standard output.
    pub size_bytes_max: Option<u64>,
    /// How many files with a suffix are kept.
    pub keep: u32,
    /// The answers of which a line is written.
    pub condition: LogCondition,
}

/// The answers of which a line is written: all, unless told otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogCondition {
    /// Tests that the status of an answer has to pass, all of them.
    pub statuses: Vec<StatusTest>,
    /// Patterns of decoded paths of which no line is written.
    pub skipped_paths: Vec<String>,
}

/// A range of statuses, from `from` to `to`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusTest {
    /// The smallest.
    pub from: u16,
    /// The largest.
    pub to: u16,
    /// Whether those outside of it are meant.
    pub is_negated: bool,
}

impl StatusTest {
    pub(super) fn holds(self, status: u16) -> bool {
        (self.from..=self.to).contains(&status) != self.is_negated
    }
}

/// The logs of all sites.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPlan {
    /// In the order in which they are served.
    pub sites: Vec<SiteLog>,
}

/// The log of a site.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiteLog {
    /// The hosts of the site, without port; `*.` stands for every host below.
    pub hosts: Vec<String>,
    /// Whether the site answers for all other hosts.
    pub is_default: bool,
    /// The settings of the log, if the site has one.
    pub log: Option<LogSettings>,
}

/// A log that all sites share.
impl From<Option<LogSettings>> for LogPlan {
    fn from(log: Option<LogSettings>) -> Self {
        Self { sites: vec![SiteLog { log, ..SiteLog::default() }] }
    }
}

/// Why a log cannot be opened.
#[derive(Debug)]
pub struct LogError {
    pub(crate) target: Target,
    pub(crate) error: io::Error,
}

impl fmt::Display for LogError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, error } = self;
        match error.kind() {
            _ if matches!(target, Target::Syslog(_)) => {
                write!(formatter, "no syslog service listens at {target}: {error}")
            }
            io::ErrorKind::NotFound => write!(formatter, "the folder of the log {target} does not exist"),
            io::ErrorKind::PermissionDenied => {
                write!(formatter, "the log {target} may not be written by this user, or in this sandbox")
            }
            io::ErrorKind::IsADirectory => write!(formatter, "the log {target} is a folder"),
            _ => write!(formatter, "the log {target} cannot be opened: {error}"),
        }
    }
}

impl std::error::Error for LogError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_fields() {
        for field in Field::ALL {
            assert_eq!(Field::of_name(field.name()), Some(*field));
            assert!(field.meaning().ends_with('.'));
        }
        assert_eq!(Field::of_name("latency"), None);
    }
}
