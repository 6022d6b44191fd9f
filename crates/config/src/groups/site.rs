//! Keys of a site, and of the rules for its paths.

use super::tls::{CertificateSource, ClientAuth};
use crate::group::{Conflict, Inline, group};
use crate::node::{Node, ValueKind};
use crate::redirects::{self, Rule};
use crate::syntax::access::{AllowedClients, ClientCertificate, Denial, Denied};
use crate::syntax::application::Servers;
use crate::syntax::attempt::{Attempt, Try};
use crate::syntax::choice::{Coding, OnOff, RequestClass};
use crate::syntax::dictionary::{Dictionary, DictionaryOf};
use crate::syntax::text::{Block, FarFolder, FilePath, Folder, ScriptName, Size, Time, Words, Work};
use crate::syntax::web::{
    Charset, CookieName, ErrorStatus, FieldName, FieldValue, FileEnding, Host, HostAddress, Login, MediaType,
    Origin, PasswordHash, Pattern, RedirectStatus, Target, Token, UrlPath, host_of,
};
use crate::syntax::{Complaint, Many, Map, OrAuto, OrInherit, OrOff, Syntax};

group! {
    /// For which hosts a site is.
    Names, "Hosts of a site", canonical_of_hosts;

    /// Hosts it answers for, without port
    /// `*.example.org` stands for every host below `example.org`. The exact name goes before a star, the
    /// longer star before the shorter.
    hosts: Many<Host> = Some(""), File, reload, "[\"example.org\", \"*.example.org\"]";
    /// Host to which requests for the site's other hosts are redirected
    /// The status is 301, path and query are kept. It is one of `hosts`, such as `https://example.org` where
    /// `www.example.org` is the other. Without `https://` or `http://` the scheme stays what it was. Hosts that
    /// are not in `hosts` are served as they are.
    canonical_host: OrOff<HostAddress> = Some("off"), File, reload, "\"https://example.org\"";
    /// Certificates for its hosts, beside those at the top of the file
    /// Written as there. A certificate that is not for all of `hosts` is refused.
    tls: OrOff<CertificateSource> = Some("off"), File, reload,
        "{ certificate = \"/etc/staunch/chain.pem\", key = \"/etc/staunch/key.pem\" }";
    /// Ask its clients for certificates
    /// Everything that is asked of its hosts is refused then without one that was verified for this site: by
    /// 421 on a connection that was made for another, by 403 in plain HTTP.
    client_auth: OrInherit<OrOff<Inline<ClientAuth>>> = Some("inherit"), File, reload,
        "{ mode = \"optional\", authority = \"/etc/staunch/clients.pem\" }";
    /// Whether it answers for all other hosts as well
    /// Without such a site, the first one does.
    default: OnOff = Some("off"), File, reload, "true";
}

group! {
    /// What is served, and how.
    Content, "Content", |content| order_of(&content.attempts);

    /// Directory to serve
    /// Nothing outside of it is ever opened. A relative name counts from the folder in which
    /// the server was started. With a file of settings it must be said, for each site.
    /// With `proxy` the folder may be left out, or be `off`: then there are no files.
    root: OrOff<Folder> = Some("."), Argument, reload, "\"/srv/www\"";
    /// Serve a folder of the system, such as / or /etc, all the same
    /// Refused without: `/`, `/home`, `/root` and `/var` themselves, and `/boot`, `/dev`, `/etc`, `/proc` and
    /// `/sys` with what is in them (but `/dev/shm`), also where a link leads there.
    root_anyway: OnOff = Some("off"), Switch, reload, "true";
    /// Servers of an application that answers; see `staunch proxy`
    /// Addresses such as `127.0.0.1:8000`, a port of this host, or `unix:/run/app.sock`; several are servers
    /// of one application. A name is looked up again and again, and each address of it is a server. Rules for
    /// paths may say otherwise (`[[path]]`).
    /// A new port asks for an upgrade: the process may connect to no other than those it was started with.
    /// `fastcgi:/run/php/php-fpm.sock` or `fastcgi:127.0.0.1:9000` speaks FastCGI: scripts below `root` are
    /// run, and other files are served.
    proxy: OrOff<Servers> = Some("off"), Values, reload, "\"127.0.0.1:8000\"";
    /// Script of a folder and for what is not there; off: there are no scripts
    /// Of applications by FastCGI. It is run for a folder that has it, and that at the top of `root` for all
    /// paths at which there is neither a file nor a script (`try` may name others). `off` is for programs
    /// that answer for every path themselves: they get it in PATH_INFO.
    fastcgi_index: OrOff<ScriptName> = Some("index.php"), Value, reload, "\"app.php\"";
    /// The folder of scripts as a FastCGI application sees it
    /// Where it is another than `root`: in a container, or on another machine. Which scripts there are is
    /// looked up in `root`. Without `root` the script at its top, `fastcgi_index`, answers for all paths.
    fastcgi_root: OrOff<FarFolder> = Some("off"), Value, reload, "\"/var/www/html\"";
    /// List folders that have no index file
    /// `auto` lists where there is no file of settings, as in `staunch serve` and `staunch serve DIR`; with a
    /// file, with `proxy`, or where `STAUNCH_ROOT` names the folder, it does not.
    listing: OrAuto<OnOff> = Some("auto"), Value, reload, "true";
    /// Names of a folder's index file, first found first served
    index: Many<Words> = Some("index.html"), Values, reload, "[\"index.html\", \"index.htm\"]";
    /// Encodings to prepare (br, zstd, gzip), best first, or off
    encodings: OrOff<Many<Coding>> = Some("br,zstd,gzip"), Values, reload, "[\"br\", \"gzip\"]";
    /// Memory for prepared content
    cache_size: Size = Some("256MiB"), Value, reload, "\"1GiB\"";
    /// Hold nothing: read from disk for every request (for comparison)
    no_cache: OnOff = Some("off"), Switch, reload, "true";
    /// Media types of files, by extension or whole name
    /// They go before the list that is built in. What is in neither is `application/octet-stream`. What is
    /// text, JSON or XML by its type is compressed.
    types: Map<FileEnding, MediaType> = Some(""), File, reload,
        "{ apk = \"application/vnd.android.package-archive\", assetlinks = \"application/json\" }";
    /// Charset told of texts, or off
    /// The charset stands behind types that begin with `text/` and say none themselves.
    charset: OrOff<Charset> = Some("utf-8"), File, reload, "\"iso-8859-1\"";
    /// Serve files whose names begin with a dot
    dotfiles: OnOff = Some("off"), Switch, reload, "true";
    /// What answers for a path: the first that is there, or a status
    /// `$path` is the path itself: a file, or a folder that has an index file or may be listed. It stands
    /// first, so what is there answers for itself. What follows is a file (`$path.html`, `/index.html`) or,
    /// with a slash at its end, a folder of that kind; the rules of its own path hold for it as well. If
    /// nothing is there it is the status: 404, 403 or 410; without one 404. `fallback` is not asked then.
    attempts as "try": OrOff<Many<Attempt>> = Some("off"), File, reload,
        "[\"$path\", \"$path.html\", \"/index.html\"]";
    /// Page for paths that are not there, for applications of one page
    /// Served with 200 to GET and HEAD of what does not exist, if the last part of its path has no dot.
    fallback: OrOff<UrlPath> = Some("off"), Value, reload, "\"/index.html\"";
    /// Pages for errors, by status
    /// Paths below the root. The status stays. What a site answers has a page: 400, 401, 403, 404, 405, 410,
    /// 500, 501, 503. What is refused before a site is asked has none (408, 413, 414, 417, 429, 431, 505, 400
    /// and 503 of that kind), nor have 412 and 416.
    error_pages: Map<ErrorStatus, UrlPath> = Some(""), File, reload,
        "{ 404 = \"/404.html\", 503 = \"/busy.html\" }";
    /// Fields for every answer of the site
    headers: Map<FieldName, FieldValue> = Some(""), File, reload, "{ X-Frame-Options = \"DENY\" }";
    /// Tell clients how long applications took
    /// A field `Server-Timing: line;dur=2, app;dur=34` in what applications answer: milliseconds in line, and
    /// from there to the head of the answer. Browsers show it; whoever asks can read it.
    server_timing: OnOff = Some("off"), File, reload, "true";
    /// Cookies whose owners go before strangers in the line of an application
    /// Names such as that of a session: a client that sends one, with any value that is not empty, was here
    /// before. Anybody can write a name, so strangers keep a quarter of the places; see giving-way.md. A
    /// client whose session of TLS was resumed is known without a cookie.
    known_cookie: Many<CookieName> = Some(""), File, reload, "[\"session\"]";
    /// Paths that lead elsewhere
    /// The first one that matches is taken, before any file is looked for. A rule that never applies, and
    /// rules that lead in a circle, are refused.
    redirects: Redirects = Some(""), File, reload, "[{ from = \"/old/*\", to = \"/new/$1\" }]";
}

group! {
    /// A path that leads elsewhere.
    Redirect, "Redirect", |_| None;

    /// Pattern of the paths
    /// `*` stands for any characters, `/` among them.
    from: Pattern = None, File, reload, "\"/old/*\"";
    /// Where to: a path or a URL
    /// `$1` is what the first star of `from` stood for. A query is kept.
    to: Target = None, File, reload, "\"/new/$1\"";
    /// Status of the answer
    status: RedirectStatus = Some("301"), File, reload, "308";
}

group! {
    /// What holds for some paths of a site.
    PathRule, "Rules for paths", of_a_path;

    /// Pattern of the paths
    /// `*` stands for any characters, `/` among them. All rules that match hold, the later over the earlier.
    pattern as "match": Pattern = None, File, reload, "\"/assets/*\"";
    /// Fields for every answer
    /// An empty value takes away what an earlier rule has set.
    headers: Map<FieldName, FieldValue> = Some(""), File, reload, "{ X-Robots-Tag = \"noindex\" }";
    /// Another folder for what is below this path
    /// With `match = "/media/*"` the star is looked for in the folder, so `/media/a.jpg` is the
    /// file `a.jpg` in it (`alias` of nginx). It stands in the place of whatever `root` of the site has at
    /// that path, and of an application (`proxy`) that this rule does not name itself. Scripts are not run
    /// there: FastCGI has their text hidden, else it is given as that of any file. A folder that
    /// is not there is told of, and its paths alone answer 503 until it is.
    root: OrInherit<Folder> = Some("inherit"), File, reload, "\"/srv/media\"";
    /// Servers of an application that answers
    /// See `proxy` of the site. `off`: files do, whatever an earlier rule says. The other rules hold for what
    /// it answers as well: `allow`, `deny`, `basic_auth`, `cors`, `headers`, redirects.
    proxy: OrInherit<OrOff<Servers>> = Some("inherit"), File, reload,
        "[\"10.0.0.5:8000\", \"10.0.0.6:8000\"]";
    /// Tell clients how long applications took
    /// See `server_timing` of the site.
    server_timing: OrInherit<OnOff> = Some("inherit"), File, reload, "true";
    /// Links that a browser may follow before the answer is there, by 103
    /// Each link is a value of the field Link, such as a stylesheet of the page. Links are sent by HTTP/2,
    /// for a page that an application answers or that has to be read first. Where nothing is said here,
    /// links of `headers` with `rel=preload`, `modulepreload` or `preconnect` are sent so; `off` sends none.
    early_hints: OrInherit<OrOff<Many<FieldValue>>> = Some("inherit"), File, reload,
        "[\"</app.css>; rel=preload; as=style\"]";
    /// How urgent requests are when there is more to do than can be done
    /// `low` gives way first: it is refused (503) at a quarter of the patience, before others wait. `high`
    /// goes first in the line of an application. What a browser asks for ahead (`Sec-Purpose: prefetch`) is
    /// low whatever is said here.
    class: OrInherit<RequestClass> = Some("inherit"), File, reload, "\"low\"";
    /// The Cache-Control field of files
    cache_control: OrInherit<FieldValue> = Some("inherit"), File, reload,
        "\"public, max-age=31536000, immutable\"";
    /// List folders that have no index file
    listing: OrInherit<OnOff> = Some("inherit"), File, reload, "true";
    /// Networks whose clients alone are served; all others get 403
    /// The client is whom a trusted proxy names, else the peer. `off` lets everybody in, whatever an earlier
    /// rule says. Redirects go before it, passwords after it.
    allow: OrInherit<OrOff<Many<Block>>> = Some("inherit"), File, reload, "[\"10.0.0.0/8\", \"fd00::/8\"]";
    /// What answers for these paths, the first that is there, or a status
    /// See `try` of the site, in whose place it stands.
    attempts as "try": OrInherit<OrOff<Many<Attempt>>> = Some("inherit"), File, reload,
        "[\"$path\", \"$path.html\", 404]";
    /// Refuse everybody (403), or the clients of these networks
    /// `deny` goes before `allow`: who is on both lists is refused.
    deny: OrInherit<Denial> = Some("inherit"), File, reload, "[\"192.0.2.0/24\", \"2001:db8::/32\"]";
    /// Serve only clients with a certificate, any or one of these (else 403)
    /// A subject is written as in the log (RFC 4514), a fingerprint is the certificate's SHA-256. `off` lets
    /// everybody in, whatever an earlier rule says. The site says whose certificates are asked for
    /// (`client_auth`, `optional` or `required`). Goes before passwords.
    client_auth: OrInherit<OrOff<ClientCertificate>> = Some("inherit"), File, reload,
        "[\"CN=anna,O=Example\", \"CN=bert,O=Example\"]";
    /// Ask for a name and a password
    /// `off` asks nobody, whatever an earlier rule says.
    basic_auth: OrInherit<OrOff<Inline<BasicAuth>>> = Some("inherit"), File, reload,
        "{ realm = \"Staff\", users_file = \"/etc/staunch/users\" }";
    /// Let pages of other origins read
    /// `off` lets none, whatever an earlier rule says.
    cors: OrInherit<OrOff<Inline<Cors>>> = Some("inherit"), File, reload,
        "{ origins = [\"https://app.example.org\"] }";
    /// Tell new versions as the difference to what a browser has
    /// `true`: to former versions of the same path. A pattern such as `/assets/app.*.js`: to other files of
    /// it, for names that change with the content. Only what everybody may see, and by HTTPS; how long a
    /// browser keeps a version is said by `cache_control`. See `docs/dictionaries.md`.
    dictionary: OrInherit<DictionaryOf> = Some("inherit"), File, reload, "\"/assets/app.*.js\"";
    /// Burn so much processor time for each answer, to rehearse overload
    response_work: OrInherit<Work> = Some("inherit"), File, reload, "\"300us\"";
}

group! {
    /// Names and passwords of those who may see something (RFC 7617).
    BasicAuth, "Passwords", somebody;

    /// What the browser says it is about
    realm: Words = Some("restricted"), File, reload, "\"Staff\"";
    /// Names and hashes of passwords (argon2id or bcrypt)
    /// `staunch password` makes a hash.
    users: Map<Login, PasswordHash> = Some(""), File, reload,
        "{ anna = \"$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW\" }";
    /// File with further ones: lines of name, colon, hash
    /// `staunch password NAME` prints such a line. Lines of htpasswd are taken as well: bcrypt (`-B`), and
    /// with a warning `$apr1$` and `{SHA}`, which whoever gets the file guesses fast.
    users_file: OrOff<FilePath> = Some("off"), File, reload, "\"/etc/staunch/users\"";
}

group! {
    /// Which pages of other origins may read (Fetch standard, section 3.3).
    Cors, "Other origins", credentials_of_somebody;

    /// Origins that may, or "*" for all
    origins: Many<Origin> = None, File, reload, "[\"https://app.example.org\"]";
    /// Methods they may use
    methods: Many<Token> = Some("GET,HEAD"), File, reload, "[\"GET\", \"HEAD\"]";
    /// Fields they may send
    headers: Many<Token> = Some(""), File, reload, "[\"Authorization\"]";
    /// How long a browser may remember the permission
    max_age: Time = Some("600s"), File, reload, "\"1d\"";
    /// Whether they may send cookies and passwords
    credentials: OnOff = Some("off"), File, reload, "true";
}

/// Redirects, checked as a list: the entry to blame has its own place.
#[derive(Debug)]
pub struct Redirects;

impl Syntax for Redirects {
    type Value = Vec<Redirect>;

    fn word() -> String {
        Many::<Inline<Redirect>>::word()
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<Self::Value> {
        let ValueKind::List(items) = &node.kind else {
            return Many::<Inline<Redirect>>::read(node, complaints);
        };
        let read = items.iter().map(|item| (item.place, Inline::<Redirect>::read(item, complaints)));
        let (places, read): (Vec<_>, Vec<_>) = read.filter_map(|(place, one)| Some((place, one?))).unzip();
        let rules: Vec<Rule<'_>> =
            read.iter().map(|redirect: &Redirect| Rule { from: &redirect.from, to: &redirect.to }).collect();
        let faults = redirects::faults(&rules);
        let is_right = faults.is_empty() && read.len() == items.len();
        complaints.extend(faults.into_iter().map(|(index, reason)| Complaint {
            place: places[index],
            found: String::new(),
            word: String::new(),
            reason,
            is_explained: true,
        }));
        is_right.then_some(read)
    }

    fn write(value: &Self::Value) -> Node {
        Many::<Inline<Redirect>>::write(value)
    }
}

/// The canonical host is the site's own, so a redirect to it never comes back.
fn canonical_of_hosts(names: &Names) -> Conflict {
    let canonical = names.canonical_host.as_ref()?;
    let host = host_of(canonical);
    let is_of = |known: &String| match known.strip_prefix('*') {
        Some(below) => host.len() > below.len() && host.ends_with(below),
        None => host == known,
    };
    let text = format!("{host} is not one of `hosts`: add it, or name one that is");
    (!names.hosts.iter().any(is_of)).then_some(("canonical_host", text))
}

/// Rules that can never be reached are a mistake.
fn order_of(attempts: &Option<Vec<Try>>) -> Conflict {
    let (first, rest) = attempts.as_ref()?.split_first()?;
    if *first != Try::Path("$path".into()) {
        return Some(("try", "\"$path\" stands first: what is there answers for itself".into()));
    }
    let status = rest.iter().position(|attempt| matches!(attempt, Try::Status(_)))?;
    let text = "a status stands last: what follows it is never looked for";
    (status + 1 < rest.len()).then(|| ("try", text.into()))
}

fn of_a_path(rule: &PathRule) -> Conflict {
    folder_of_a_path(rule)
        .or_else(|| access_of_somebody(rule))
        .or_else(|| no_client(rule))
        .or_else(|| no_link(rule))
        .or_else(|| order_of(rule.attempts.as_ref()?))
        .or_else(|| dictionary_of_nobody(rule))
}

/// A folder stands below a path, which is said without a star.
fn folder_of_a_path(rule: &PathRule) -> Conflict {
    rule.root.as_ref()?;
    let prefix = rule.pattern.strip_suffix("/*").and_then(|prefix| prefix.strip_prefix('/'));
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('*');
    let is_path = prefix.is_some_and(|prefix| prefix.split('/').all(is_name));
    let text = match rule.pattern.as_str() {
        "*" | "/*" => "this rule is for the whole site: write `root` above its paths".to_owned(),
        pattern => {
            format!("a folder is for what is below a path, such as `match = \"/media/*\"`, not for {pattern}")
        }
    };
    (!is_path).then_some(("root", text))
}

fn no_link(rule: &PathRule) -> Conflict {
    let is_link = |link: &&String| {
        let target = link.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        target.is_some_and(|(_, parameters)| parameters.contains("rel="))
    };
    let wrong = rule.early_hints.as_ref()?.as_ref()?.iter().find(|link| !is_link(link))?;
    Some(("early_hints", format!("{wrong:?} is no link: write \"</app.css>; rel=preload; as=style\"")))
}

fn dictionary_of_nobody(rule: &PathRule) -> Conflict {
    let dictionary = rule.dictionary.as_ref().filter(|dictionary| **dictionary != Dictionary::Off)?;
    if matches!(dictionary, Dictionary::Pattern(pattern) if !pattern.starts_with('/')) {
        return Some(("dictionary", "a pattern of whole paths is told to browsers: it begins with /".into()));
    }
    let mut words = rule.cache_control.as_deref()?.split(',').map(str::trim);
    let nobody =
        words.find(|word| ["no-cache", "no-store"].iter().any(|not| word.eq_ignore_ascii_case(not)))?;
    let text = format!("no browser keeps a dictionary under {nobody}: write `max-age=...` or leave it out");
    Some(("cache_control", text))
}

fn no_client(rule: &PathRule) -> Conflict {
    let nobody = matches!(rule.client_auth, Some(Some(AllowedClients::OneOf(ref all))) if all.is_empty());
    nobody
        .then(|| ("client_auth", "nobody is named: `required` is for every client with a certificate".into()))
}

fn access_of_somebody(rule: &PathRule) -> Conflict {
    let allowed = rule.allow.as_ref()?.as_ref()?;
    if allowed.is_empty() {
        return Some(("allow", "nobody is named: `deny = true` refuses everybody, `off` nobody".into()));
    }
    let text = "`deny = true` refuses these clients as well: leave it out, all others are refused already";
    (rule.deny == Some(Denied::Everybody)).then(|| ("allow", text.into()))
}

fn somebody(auth: &BasicAuth) -> Conflict {
    let nobody = auth.users.is_empty() && auth.users_file.is_none();
    nobody.then(|| ("users", "nobody is named: write `users` or `users_file`".into()))
}

fn credentials_of_somebody(cors: &Cors) -> Conflict {
    if cors.origins.is_empty() {
        return Some(("origins", "name at least one origin".into()));
    }
    let of_all = cors.origins.iter().any(|origin| origin == "*");
    let text = "browsers refuse credentials for \"*\": name the origins";
    (of_all && cors.credentials).then(|| ("credentials", text.into()))
}
