//! What a site is told at start, and why it may not start.
//!
//! It owns the vocabulary and its defaults. It must never read a file: what the texts mean is found out when
//! the site is opened.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use rustix::io::Errno;
use staunch_engine::PlaceClass;

use crate::content::negotiate::Encoding;

/// Everything a site needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteConfig {
    /// The served folder. Nothing outside of it is ever opened, symbolic links included. Empty: there is
    /// none, and applications answer.
    pub root: PathBuf,
    /// Encodings to make and to take from side files, in the order preferred among equals. Empty: none.
    pub encodings: Vec<Encoding>,
    /// Budget of prepared content in bytes. 0: nothing is held, as with `no_cache`.
    pub cache_bytes_max: u64,
    /// Whether every request reads the disk, on the worker's thread: for comparison, not for crowds. Neither
    /// encodings nor side files are used then.
    pub no_cache: bool,
    /// Whether folders without index file are listed; else they get 403.
    pub listing: bool,
    /// Names of files that answer for their folder, the first that exists.
    pub index: Vec<String>,
    /// Media types by extension (`apk`) or whole name of a file, before those of the list.
    pub types: BTreeMap<String, String>,
    /// Charset that is told of texts; `None`: none is.
    pub charset: Option<String>,
    /// Whether names with a leading dot are served (`/.well-known/` always is).
    pub dotfiles: bool,
    /// Host names it answers to, without port: `a.example`, or `*.a.example` for every name below.
    pub hosts: Vec<String>,
    /// The host that requests for the others of `hosts` are redirected to, as `https://a.example`, or
    /// without a scheme, which stays what it was then.
    pub canonical_host: Option<String>,
    /// Whether it answers to all other names. Without one the first site does.
    pub default: bool,
    /// Whose certificates its clients show, if they are asked.
    pub clients: Option<ClientDemand>,
    /// What rules there are.
    pub rules: SiteRules,
}

/// What a site asks of its clients' certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientDemand {
    /// The policy that has to have verified them: [`staunch_engine::ClientIdentity::policy`].
    pub policy: u64,
    /// Whether a client without one is refused, whatever it asks for.
    pub is_required: bool,
}

/// What a rule asks of a client's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DemandedIdentity {
    /// Any that was verified.
    Any,
    /// That of one of these.
    OneOf(Vec<KnownIdentity>),
}

/// How a rule names a client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KnownIdentity {
    /// By the subject of its certificate, as text (RFC 4514).
    Subject(String),
    /// By the SHA-256 digest of its certificate.
    Fingerprint([u8; 32]),
}

/// What a site does besides serving files. Nothing of it costs a request anything that it does not concern.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiteRules {
    /// Fields of every response. An empty value takes away what an earlier rule has set.
    pub headers: Vec<(String, String)>,
    /// Files of the site that are the bodies of responses with these statuses, 400 to 599.
    pub error_pages: BTreeMap<u16, String>,
    /// What answers for a path, where no rule for it says otherwise.
    pub attempts: Option<Attempts>,
    /// File of the site that answers, with 200, for what is not there and looks like no file.
    pub fallback: Option<String>,
    /// Redirects; the first that matches is taken.
    pub redirects: Vec<RedirectRule>,
    /// The application that answers, where no rule for a path says otherwise.
    pub proxy: Option<Destination>,
    /// Whether what it answers says how long that took, where no rule for a path says otherwise.
    pub server_timing: bool,
    /// Names of cookies whose owners go before strangers in the line of an application.
    pub known_cookies: Vec<String>,
    /// Rules for paths; all that match apply, later ones override earlier ones.
    pub paths: Vec<PathRule>,
    /// The scripts among its files, if an application runs them.
    pub scripts: Option<Scripts>,
}

/// An application, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Its name.
    pub application: String,
    /// The language that is spoken with the servers.
    pub wire: ProxyWire,
}

/// The language that is spoken with the servers of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyWire {
    /// HTTP/1.1
    Http,
    /// FastCGI. It runs the scripts of the site; where that has none, it answers for all paths itself.
    FastCgi,
}

/// Files of a site that are run, never served: those whose names end with `.php`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scripts {
    /// Name of the script that answers for its folder and, at the top, for what is not there.
    pub index: String,
    /// The served folder, as the application sees it, if that is another name.
    pub far_root: Option<String>,
}

/// A redirect, as it was configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectRule {
    /// Pattern of decoded paths: `*` is any run of characters, slashes included.
    pub from: String,
    /// A path, or an address with `http://` or `https://`; `$1` to `$9` are what the stars matched.
    pub to: String,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// What applies to the paths of a pattern. `None`: whatever earlier rules say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathRule {
    /// Pattern of decoded paths: `*` is any run of characters, slashes included.
    pub pattern: String,
    /// Fields of every response. An empty value takes away what an earlier rule has set.
    pub headers: Vec<(String, String)>,
    /// Values of Link that are sent ahead of an answer; an empty list: none. Where nothing is said, those of
    /// `headers` are that a browser may follow early.
    pub early_hints: Option<Vec<String>>,
    /// Value of Cache-Control for files, not for errors.
    pub cache_control: Option<String>,
    /// Whether folders without index file are listed.
    pub listing: Option<bool>,
    /// Whether everything is answered with 403.
    pub deny: Option<bool>,
    /// What answers for a path; `Some(None)`: only what stands there.
    pub attempts: Option<Option<Attempts>>,
    /// The application that answers; `Some(None)`: none.
    pub proxy: Option<Option<Destination>>,
    /// Whether what it answers says how long that took.
    pub server_timing: Option<bool>,
    /// How urgent requests are.
    pub class: Option<PlaceClass>,
    /// Networks whose clients alone are served; all others get 403. Empty: everybody is.
    pub allow: Option<Vec<Network>>,
    /// Networks whose clients get 403, even if they are allowed.
    pub deny_networks: Option<Vec<Network>>,
    /// Which certificate a client has to have shown; all others get 403. `Some(None)`: none.
    pub clients: Option<Option<DemandedIdentity>>,
    /// The folder that is served below the path of the pattern, which ends with `/*`: what the star stands
    /// for is looked for in it.
    pub folder: Option<PathBuf>,
    /// Which users may see it; `Some(None)`: everybody.
    pub basic_auth: Option<Option<BasicAuth>>,
    /// Which other origins' scripts may read it; `Some(None)`: none.
    pub cors: Option<Option<Cors>>,
    /// To which former answers later ones are told as differences; `Some(None)`: to none.
    pub dictionary: Option<Option<Dictionary>>,
    /// Processor time in microseconds that is burnt for each file answered: a rehearsal of slow applications.
    pub response_work_us: Option<u32>,
}

/// The former answers to which later ones are told as differences (RFC 9842).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dictionary {
    /// Former versions of the same path.
    Own,
    /// Files at paths of this pattern, in which `*` is any run of characters, slashes included. It is told
    /// to browsers, which ask by it.
    Pattern(String),
}

/// Paths to look for in order, and what is answered where nothing is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempts {
    /// Paths, in which `$path` is the decoded one asked for; it stands first alone. Those that end with a
    /// slash are folders that have an index file or are listed, all others files.
    pub paths: Vec<String>,
    /// 403, 404 or 410.
    pub status: u16,
}

/// An address, and how many of its leading bits its network has in common.
pub type Network = (IpAddr, u8);

/// Basic authentication (RFC 7617).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BasicAuth {
    /// What the peer's user is shown.
    pub realm: String,
    /// Names and hashes, in the form of argon2id (`$argon2id$...`) or bcrypt (`$2b$...`).
    pub users: BTreeMap<String, String>,
    /// A file of further ones, a line each: `NAME:HASH`.
    pub users_file: Option<PathBuf>,
}

/// Cross-origin resource sharing (the Fetch standard, section 3.3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cors {
    /// Origins such as `https://a.example`, or `*` alone for all.
    pub origins: Vec<String>,
    /// Methods a preflight is granted. Empty: GET and HEAD, which need none.
    pub methods: Vec<String>,
    /// Request fields a preflight is granted, or `*` alone.
    pub headers: Vec<String>,
    /// How long a browser may remember a preflight, in seconds.
    pub max_age_s: Option<u32>,
    /// Whether cookies and passwords may be sent along; not with the origin `*`.
    pub credentials: bool,
}

impl Default for SiteConfig {
    fn default() -> Self {
        Self {
            root: PathBuf::from("."),
            encodings: Encoding::ALL.to_vec(),
            cache_bytes_max: 256 * 1024 * 1024,
            no_cache: false,
            listing: true,
            index: vec!["index.html".to_owned()],
            types: BTreeMap::new(),
            charset: Some("utf-8".to_owned()),
            dotfiles: false,
            hosts: Vec::new(),
            canonical_host: None,
            default: false,
            clients: None,
            rules: SiteRules::default(),
        }
    }
}

impl SiteConfig {
    /// Whether no folder is served.
    pub(crate) fn has_no_folder(&self) -> bool {
        self.root.as_os_str().is_empty()
    }

    /// How the site is called in messages: by its first host, else by its folder.
    pub fn title(&self) -> String {
        self.hosts.first().cloned().unwrap_or_else(|| self.root.display().to_string())
    }
}

/// Why sites cannot be opened.
#[derive(Debug)]
pub enum SiteError {
    /// The folder does not exist, is none, or may not be read.
    Root {
        /// Its name.
        root: PathBuf,
        /// What the system says.
        errno: Errno,
    },
    /// The system does not offer openat2, without which no path is safe.
    Confinement,
    /// A thread could not be started.
    Thread(std::io::Error),
    /// What the site was told has no meaning.
    Rule {
        /// The site's title.
        site: String,
        /// Key and fault.
        fault: String,
    },
    /// The sites do not fit together.
    Hosts(String),
}

impl fmt::Display for SiteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root { root, errno } => match *errno {
                Errno::NOENT => write!(formatter, "the folder {} does not exist", root.display()),
                Errno::NOTDIR => write!(formatter, "{} is not a folder", root.display()),
                Errno::ACCESS => write!(formatter, "the folder {} may not be read", root.display()),
                errno => write!(formatter, "the folder {} cannot be opened: {errno}", root.display()),
            },
            Self::Confinement => {
                write!(
                    formatter,
                    "the system call openat2 is not available (blocked by a container's filter?)"
                )
            }
            Self::Thread(error) => write!(formatter, "a thread could not be started: {error}"),
            Self::Rule { site, fault } => write!(formatter, "site {site}: {fault}"),
            Self::Hosts(fault) => formatter.write_str(fault),
        }
    }
}

impl std::error::Error for SiteError {}
