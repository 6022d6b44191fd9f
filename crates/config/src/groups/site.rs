//! Keys of a site, and of the rules for its paths.

use crate::group::{Conflict, Inline, group};
use crate::syntax::choice::{Coding, OnOff};
use crate::syntax::text::{FilePath, Folder, Size, Time, Words, Work};
use crate::syntax::web::{
    ErrorStatus, FieldName, FieldValue, Host, Login, Origin, PasswordHash, Pattern, RedirectStatus, Target,
    Token, UrlPath,
};
use crate::syntax::{Many, Map, OrInherit, OrOff};

group! {
    /// For which hosts a site is.
    Names, "Hosts of a site", |_| None;

    /// Hosts it answers for, without port
    /// `*.example.org` stands for every host below `example.org`. The exact name goes before a star, the
    /// longer star before the shorter.
    hosts: Many<Host> = Some(""), File, reload, "[\"example.org\", \"*.example.org\"]";
    /// Whether it answers for all other hosts as well
    /// Without such a site, the first one does.
    default: OnOff = Some("off"), File, reload, "true";
}

group! {
    /// What is served, and how.
    Content, "Content", |_| None;

    /// Directory to serve
    /// Nothing outside of it is ever opened. A relative name counts from the folder in which
    /// the server was started.
    root: Folder = Some("."), Argument, reload, "\"/srv/www\"";
    /// List folders that have no index file
    listing: OnOff = Some("off"), Value, reload, "true";
    /// Names of a folder's index file, first found first served
    index: Many<Words> = Some("index.html"), Values, reload, "[\"index.html\", \"index.htm\"]";
    /// Encodings to prepare (br, zstd, gzip), best first, or off
    encodings: OrOff<Many<Coding>> = Some("br,zstd,gzip"), Values, reload, "[\"br\", \"gzip\"]";
    /// Memory for prepared content
    cache_size: Size = Some("256MiB"), Value, reload, "\"1GiB\"";
    /// Hold nothing: read from disk for every request (for comparison)
    no_cache: OnOff = Some("off"), Switch, reload, "true";
    /// Serve files whose names begin with a dot
    dotfiles: OnOff = Some("off"), Switch, reload, "true";
    /// Page for paths that are not there, for applications of one page
    /// Served with 200 to GET and HEAD of what does not exist, if the last part of its path has no dot.
    fallback: OrOff<UrlPath> = Some("off"), Value, reload, "\"/index.html\"";
    /// Pages for errors, by status
    /// Paths below the root. The status stays. What a site answers has a page: 400, 401, 403, 404, 405, 500,
    /// 501, 503. What is refused before a site is asked has none (408, 413, 414, 417, 429, 431, 505, and 400
    /// and 503 of that kind), nor have 412 and 416.
    error_pages: Map<ErrorStatus, UrlPath> = Some(""), File, reload,
        "{ 404 = \"/404.html\", 503 = \"/busy.html\" }";
    /// Fields for every answer of the site
    headers: Map<FieldName, FieldValue> = Some(""), File, reload, "{ X-Frame-Options = \"DENY\" }";
    /// Paths that lead elsewhere
    /// The first one that matches is taken, before any file is looked for.
    redirects: Many<Inline<Redirect>> = Some(""), File, reload, "[{ from = \"/old/*\", to = \"/new/$1\" }]";
}

group! {
    /// A path that leads elsewhere.
    Redirect, "Redirect", |_| None;

    /// Pattern of the paths
    /// `*` stands for any characters, `/` among them.
    from: Pattern = None, File, reload, "\"/old/*\"";
    /// Where to: a path or a URL
    /// `$1` is what the first star stood for. A query is kept.
    to: Target = None, File, reload, "\"/new/$1\"";
    /// Status of the answer
    status: RedirectStatus = Some("301"), File, reload, "308";
}

group! {
    /// What holds for some paths of a site.
    PathRule, "Rules for paths", |_| None;

    /// Pattern of the paths
    /// `*` stands for any characters, `/` among them. All rules that match hold, the later over the earlier.
    pattern as "match": Pattern = None, File, reload, "\"/assets/*\"";
    /// Fields for every answer
    /// An empty value takes away what an earlier rule has set.
    headers: Map<FieldName, FieldValue> = Some(""), File, reload, "{ X-Robots-Tag = \"noindex\" }";
    /// The Cache-Control field of files
    cache_control: OrInherit<FieldValue> = Some("inherit"), File, reload,
        "\"public, max-age=31536000, immutable\"";
    /// List folders that have no index file
    listing: OrInherit<OnOff> = Some("inherit"), File, reload, "true";
    /// Refuse everybody (403)
    deny: OrInherit<OnOff> = Some("inherit"), File, reload, "true";
    /// Ask for a name and a password
    /// `off` asks nobody, whatever an earlier rule says.
    basic_auth: OrInherit<OrOff<Inline<BasicAuth>>> = Some("inherit"), File, reload,
        "{ realm = \"Staff\", users_file = \"/etc/staunch/users\" }";
    /// Let pages of other origins read
    /// `off` lets none, whatever an earlier rule says.
    cors: OrInherit<OrOff<Inline<Cors>>> = Some("inherit"), File, reload,
        "{ origins = [\"https://app.example.org\"] }";
    /// Burn so much processor time for each answer, to rehearse overload
    response_work: OrInherit<Work> = Some("inherit"), File, reload, "\"300us\"";
}

group! {
    /// Who may see something (RFC 7617).
    BasicAuth, "Passwords", somebody;

    /// What the browser says it is about
    realm: Words = Some("restricted"), File, reload, "\"Staff\"";
    /// Names and hashes of passwords (argon2id or bcrypt)
    users: Map<Login, PasswordHash> = Some(""), File, reload,
        "{ anna = \"$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW\" }";
    /// File with further ones: lines of name, colon, hash
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
