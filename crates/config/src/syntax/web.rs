//! Values that end in answers: paths of URLs, fields, statuses, hosts, origins, hashes of passwords.
//!
//! What passes here can be put into an answer: no control character, no field that the server sets itself.

use crate::node::{Node, ValueKind};
use crate::syntax::text::scalars;
use crate::syntax::{Scalar, variables};

/// Fields that the server sets or that belong to the connection (RFC 9110, sections 6.6 and 7.6.1).
const OWN_FIELDS: [&str; 12] = [
    "server",
    "date",
    "content-length",
    "content-encoding",
    "content-range",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "trailer",
    "upgrade",
    "etag",
    "last-modified",
];

/// The marks that `config show` puts in the place of a hash.
pub(crate) const HIDDEN: &str = "***";

scalars! {
    /// A path of a URL, without marks that would have to be encoded.
    UrlPath: String, "PATH", url_path, |path| Node::text(path.as_str()), text;
    /// A pattern of paths: `*` stands for any characters, `/` among them.
    Pattern: String, "PATTERN", pattern, |pattern| Node::text(pattern.as_str()), text;
    /// Where a redirect leads: a path or a URL, with $1 to $9 for what the stars stood for.
    Target: String, "TARGET", target, |target| Node::text(target.as_str()), text;
    /// Status of a redirect.
    RedirectStatus: u16, "STATUS", redirect_status, |number| Node::number(number);
    /// Status of an error.
    ErrorStatus: u16, "STATUS", error_status, |status| Node::text(status.to_string());
    /// Name of a field.
    FieldName: String, "FIELD", field_name, |name| Node::text(name.as_str()), text;
    /// Value of a field.
    FieldValue: String, "TEXT", field_value, |value| Node::text(value.as_str()), text;
    /// A token, such as a method or the name of a field.
    Token: String, "TOKEN", token, |token| Node::text(token.as_str()), text;
    /// The name of a cookie (RFC 6265).
    CookieName: String, "NAME", cookie_name, |name| Node::text(name.as_str()), text;
    /// A host, without port; `*.example.org` stands for all below it.
    Host: String, "HOST", host, |host| Node::text(host.as_str()), text;
    /// A host, with scheme and port where they matter.
    HostAddress: String, "[http[s]://]HOST[:PORT]", host_address, |host| Node::text(host.as_str()), text;
    /// An address of https, with its path.
    HttpsAddress: String, "URL", https_address, |url| Node::text(url.as_str()), text;
    /// An address of mail.
    MailAddress: String, "MAIL", mail_address, |mail| Node::text(mail.as_str()), text;
    /// An origin whose scripts may ask from a browser, or `*` for all of them.
    Origin: String, "ORIGIN|*", origin, |origin| Node::text(origin.as_str()), text;
    /// The end of a file's name, or the whole name.
    FileEnding: String, "EXTENSION", file_ending, |name| Node::text(name.as_str()), text;
    /// A media type, maybe with parameters.
    MediaType: String, "TYPE", media_type, |name| Node::text(name.as_str()), text;
    /// The name of a charset, as in `Content-Type`.
    Charset: String, "CHARSET", charset, |name| Node::text(name.as_str()), text;
    /// Name of somebody with a password.
    Login: String, "NAME", login, |name| Node::text(name.as_str()), text;
}

/// The secret of those who may publish.
#[derive(Debug)]
pub struct PublishToken;

/// Shortest one: as long as the digest of a signature (RFC 7518, section 3.2).
const PUBLISH_TOKEN_BYTES_MIN: usize = 32;

impl Scalar for PublishToken {
    type Value = String;
    const WORD: &'static str = "SECRET";
    const IS_SECRET: bool = true;
    const IS_TEXT: bool = true;

    fn parse(text: &str) -> Result<String, String> {
        let fits = text.len() >= PUBLISH_TOKEN_BYTES_MIN && text.bytes().all(|byte| byte.is_ascii_graphic());
        let form =
            "write 32 letters, digits and marks at least, without spaces, as of `openssl rand -hex 32`";
        if fits { Ok(text.into()) } else { Err(form.into()) }
    }

    fn write(token: &String) -> Node {
        Node::new(ValueKind::Secret(token.clone()))
    }
}

/// Hash of a password: argon2id or bcrypt.
#[derive(Debug)]
pub struct PasswordHash;

impl Scalar for PasswordHash {
    type Value = String;
    const WORD: &'static str = "HASH";
    const IS_SECRET: bool = true;

    fn parse(text: &str) -> Result<String, String> {
        password_hash(text)
    }

    fn write(hash: &String) -> Node {
        Node::new(ValueKind::Secret(hash.clone()))
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn keep_if(right: bool, text: &str, form: &str) -> Result<String, String> {
    if right { Ok(text.into()) } else { Err(format!("write {form}")) }
}

fn url_path(text: &str) -> Result<String, String> {
    let right =
        text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"%?#".contains(&byte));
    keep_if(right, text, "a path such as /status.json")
}

fn pattern(text: &str) -> Result<String, String> {
    let right = text.starts_with(['/', '*']) && !text.chars().any(char::is_control);
    if text.matches('*').count() > 9 {
        return Err("at most nine stars: they are called $1 to $9".into());
    }
    keep_if(right, text, "a pattern such as /assets/* or *.html")
}

fn target(text: &str) -> Result<String, String> {
    if text.contains('*') {
        return Err(
            "a star stands for nothing here: write $1 for what the first star of `from` stood for, %2A \
                    for the sign itself"
                .into(),
        );
    }
    if let Some(fault) = variables::in_target(text) {
        return Err(fault);
    }
    let is_path = text.starts_with('/') && !text.starts_with("//");
    let is_url = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    let is_url = is_url
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '['));
    let right = (is_path || is_url) && text.bytes().all(|byte| byte.is_ascii_graphic());
    keep_if(right, text, "a path such as /new/$1, or a URL such as https://example.org/$1")
}

fn redirect_status(text: &str) -> Result<u16, String> {
    let status = text.parse().ok().filter(|status| [301, 302, 303, 307, 308].contains(status));
    status.ok_or_else(|| "write 301, 302, 303, 307 or 308".into())
}

fn error_status(text: &str) -> Result<u16, String> {
    let status = text.parse().ok().filter(|status| (400..=599).contains(status));
    status.ok_or_else(|| "write a status of an error such as 404 or 503".into())
}

fn field_name(text: &str) -> Result<String, String> {
    if OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(text)) {
        return Err("the server sets this field itself".into());
    }
    if text.eq_ignore_ascii_case("content-type") {
        return Err(
            "`types` and `charset` of the site say it: types = { apk = \"application/x-own\" }".into()
        );
    }
    keep_if(is_token(text), text, "the name of a field such as X-Frame-Options")
}

fn field_value(text: &str) -> Result<String, String> {
    let right = text.chars().all(|character| character == '\t' || !character.is_control())
        && text.trim_matches([' ', '\t']) == text;
    keep_if(right, text, "a value on one line, without space at its ends")
}

fn token(text: &str) -> Result<String, String> {
    keep_if(is_token(text), text, "a word such as GET or Content-Type")
}

fn cookie_name(text: &str) -> Result<String, String> {
    keep_if(is_token(text), text, "the name of a cookie, such as session, without its value")
}

fn host(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let label = |label: &str| {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        !label.is_empty() && label.len() <= 63 && label.bytes().all(inside)
    };
    let is_address = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_address = is_address.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
    let right = is_address || name.split('.').all(label);
    keep_if(right, text, "a host such as www.example.org or *.example.org, without port")
        .map(|host| host.to_ascii_lowercase())
}

fn host_address(text: &str) -> Result<String, String> {
    let port = text.strip_prefix("https://").or(text.strip_prefix("http://")).unwrap_or(text);
    let port = port.strip_prefix(host_of(text)).unwrap_or_default();
    let number = port.strip_prefix(':').map(|number| number.parse::<u16>());
    let right = (port.is_empty() || matches!(number, Some(Ok(1..)))) && !text.contains('*');
    match host(host_of(text)) {
        Ok(_) if right => Ok(text.to_ascii_lowercase()),
        _ => Err("write a host such as https://example.org or example.org:8443, without path".into()),
    }
}

fn https_address(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").unwrap_or_default();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    keep_if(
        is_plain && !rest.is_empty() && !rest.starts_with('/'),
        text,
        "an address that begins with https://",
    )
}

fn mail_address(text: &str) -> Result<String, String> {
    let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
    // More than one address, or fields of the mail, are refused by authorities (RFC 8555, section 7.3).
    let right = text.split_once('@').is_some_and(|(name, host)| {
        is_plain(name) && is_plain(host) && !host.contains('@') && !text.contains([',', '?', ':'])
    });
    keep_if(right, text, "one address of mail such as me@example.org")
}

/// The host in an address of one: without scheme and port.
pub(crate) fn host_of(address: &str) -> &str {
    let rest = address.strip_prefix("https://").or(address.strip_prefix("http://")).unwrap_or(address);
    let end = rest.find(']').map_or(0, |end| end + 1);
    &rest[..rest[end..].find([':', '/']).map_or(rest.len(), |colon| end + colon)]
}

fn origin(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._:[]".contains(&byte);
    let right = text == "*" || host.is_some_and(|host| !host.is_empty() && host.bytes().all(inside));
    keep_if(right, text, "an origin such as https://app.example.org (lower case, no path), or *")
}

fn file_ending(text: &str) -> Result<String, String> {
    let name = text.strip_prefix('.').unwrap_or(text);
    let right = !name.is_empty() && !name.contains(['/', '*']) && !name.chars().any(char::is_control);
    keep_if(right, name, "an extension such as apk, or the whole name of a file, without star and folder")
        .map(|name| name.to_ascii_lowercase())
}

fn media_type(text: &str) -> Result<String, String> {
    let (name, parameters) = text.split_once(';').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let is_name = name.trim_end().split_once('/').is_some_and(|(kind, of)| is_token(kind) && is_token(of));
    let is_parameter = |text: &str| {
        let (key, value) = text.trim().split_once('=').unwrap_or_default();
        let is_quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
        is_token(key) && (is_token(value) || is_quoted)
    };
    let right = is_name
        && parameters.is_none_or(|all| all.split(';').all(is_parameter))
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text;
    keep_if(right, text, "a media type such as application/gpx+xml or text/html; charset=iso-8859-1")
}

fn charset(text: &str) -> Result<String, String> {
    keep_if(is_token(text), text, "a charset such as utf-8, or off")
}

fn login(text: &str) -> Result<String, String> {
    let right = !text.is_empty() && !text.contains(':') && !text.chars().any(char::is_control);
    keep_if(right, text, "a name without colon")
}

/// A file of users: a line is a name, a colon and a hash; empty lines and those that begin with `#` say
/// nothing.
///
/// # Errors
/// The number of the first wrong line, and what is wrong with it.
pub fn users(text: &str) -> Result<Vec<(String, String)>, String> {
    let lines = text.lines().map(str::trim).enumerate();
    let said = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let user = |(number, line): (usize, &str)| {
        let (name, hash) = line
            .split_once(':')
            .ok_or_else(|| "write a name, a colon and a hash".to_owned())
            .and_then(|(name, hash)| Ok((login(name)?, password_hash_of_file(hash)?)))
            .map_err(|reason| format!("{}: {reason}", number + 1))?;
        Ok((name, hash))
    };
    said.map(user).collect()
}

/// Users of a file whose hashes are guessed fast, each with its line: those that htpasswd made by itself for
/// long.
pub fn users_with_old_hashes(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().map(str::trim).enumerate();
    let user = |(number, line): (usize, &str)| {
        let (name, hash) = line.split_once(':').filter(|_| !line.starts_with('#'))?;
        is_old(hash).then(|| (number + 1, name.to_owned()))
    };
    lines.filter_map(user).collect()
}

/// Whether a hash is of MD5 or SHA-1.
fn is_old(hash: &str) -> bool {
    hash.starts_with("$apr1$") || hash.starts_with("{SHA}")
}

/// A hash in a file of users: also of the kinds that a file of another server has, unlike in settings.
fn password_hash_of_file(text: &str) -> Result<String, String> {
    if is_old(text) {
        return keep_if(
            text.bytes().all(|byte| byte.is_ascii_graphic()),
            text,
            "$apr1$SALT$HASH or {SHA}HASH",
        );
    }
    known_hash(text, "a hash that begins with $argon2id$ or $2b$ (bcrypt), or, of htpasswd, $apr1$ or {SHA}")
}

fn password_hash(text: &str) -> Result<String, String> {
    known_hash(text, "a hash that begins with $argon2id$ or $2b$ (bcrypt)")
}

/// Checks the form of a hash only; what should stand there is `form`.
fn known_hash(text: &str, form: &str) -> Result<String, String> {
    if text == HIDDEN {
        return Err("this stands for a hash that was hidden: write the hash".into());
    }
    let known = ["$argon2id$", "$2a$", "$2b$", "$2y$"].iter().any(|start| text.starts_with(start));
    let right = known && text.len() >= 59 && text.bytes().all(|byte| byte.is_ascii_graphic());
    keep_if(right, text, form)
}
