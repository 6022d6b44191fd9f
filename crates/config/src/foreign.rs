//! Words of other servers' settings, and what is written here in their place.
//!
//! This file owns that table alone. The table must never hold a word that is a key here.

const TLS: &str =
    "write `tls = { certificate = \"chain.pem\", key = \"key.pem\" }`, `tls = \"auto\"` or `tls = \"local\"`";
const PROXY: &str = "write `proxy = \"127.0.0.1:8000\"`";
const FASTCGI: &str = "write `proxy = \"fastcgi:/run/php/php-fpm.sock\"`";
const ENCODINGS: &str = "`encodings` says what is prepared, and `br,zstd,gzip` is the default";
const LISTING: &str = "write `listing = true`";
const HOSTS: &str = "write `hosts = [\"example.org\"]` into a [[site]]";
const PATHS: &str = "write [[path]] with `match = \"/assets/*\"`, or [[site.path]] below a [[site]]";
const REDIRECTS: &str = "write `redirects = [{ from = \"/old/*\", to = \"/new/$1\" }]`";
const HEADERS: &str = "write `headers = { X-Frame-Options = \"DENY\" }`";
const CACHE: &str = "write `cache_control` into a [[path]]";
const FALLBACK: &str = "write `fallback = \"/index.html\"` for an application of one page";
const TRY: &str = "write `try = [\"$path\", \"$path.html\", 404]`";
const ERRORS: &str = "write `error_pages = { 404 = \"/404.html\" }`";
const PASSWORDS: &str = "write `basic_auth` into a [[path]]";
const LOG: &str = "`access_log` names the file, `access_log_format` says how its lines look";
const LISTEN: &str = "write `listen = [\"0.0.0.0:80\", \"[::]:80\"]`";
const NOTHING: &str = "nothing has to be set for this";

/// The words, in lower case.
const WORDS: &[(&[&str], &str)] = &[
    (
        &["ssl", "https", "certificate", "ssl_certificate", "ssl_certificate_key", "ssl_protocols", "acme"],
        TLS,
    ),
    (
        &["ssl_verify_client", "ssl_client_certificate", "ssl_crl", "sslverifyclient", "client_authority"],
        "write `client_auth = { mode = \"required\", authority = \"clients.pem\" }`",
    ),
    (&["http3", "quic"], "HTTP/1.1 and HTTP/2 are spoken, HTTP/3 is not there yet"),
    (&["proxy_pass", "proxypass", "reverse_proxy", "upstream", "backend"], PROXY),
    (&["fastcgi_pass", "php_fastcgi", "fastcgi"], FASTCGI),
    (&["fastcgi_keep_conn"], "write `fastcgi_keep_alive = \"10s\"`"),
    (&["fastcgi_split_path_info", "fastcgi_param"], NOTHING),
    (
        &["gzip", "gzip_static", "gzip_types", "brotli", "zstd", "encode", "compress", "compression"],
        ENCODINGS,
    ),
    (&["autoindex", "browse", "directory_listing", "dir_listing"], LISTING),
    (
        &["default_type", "addtype", "forcetype", "mime_types", "mimetypes"],
        "write `types = { apk = \"application/vnd.android.package-archive\" }`",
    ),
    (&["adddefaultcharset", "charset_types"], "write `charset = \"utf-8\"` or `charset = \"off\"`"),
    (&["file_server"], "`root` alone serves files, `listing = true` lists folders"),
    (&["server_name", "servername", "serveralias", "host"], HOSTS),
    (&["server", "http", "virtualhost", "vhost"], "write [[site]] for each of several sites"),
    (&["location", "handle", "handle_path", "route", "directory"], PATHS),
    (&["try_files"], TRY),
    (&["fallbackresource"], FALLBACK),
    (&["expires", "cache-control"], CACHE),
    (&["add_header", "header"], HEADERS),
    (&["rewrite", "return", "redir", "redirect", "redirectmatch", "rewriterule"], REDIRECTS),
    (&["alias"], "write [[path]] with `match = \"/media/*\"` and `root = \"/srv/media\"`"),
    (&["error_page", "errordocument", "handle_errors"], ERRORS),
    (&["auth_basic", "auth_basic_user_file", "basicauth"], PASSWORDS),
    (&["log", "log_format", "customlog"], LOG),
    (&["port", "address", "bind"], LISTEN),
    (&["documentroot", "document_root", "webroot", "dir"], "write `root = \"/srv/www\"`"),
    (&["directoryindex"], "write `index = [\"index.html\"]`"),
    (&["worker_processes", "nbthread", "threads"], "write `workers = 4`"),
    (&["worker_connections", "maxconn", "maxclients"], "write `max_connections = 100000`"),
    (&["keepalive_timeout", "keepalivetimeout"], "write `keep_alive = \"60s\"`"),
    (&["client_header_timeout"], "write `header_timeout = \"10s\"`"),
    (&["client_body_timeout"], "write `body_timeout = \"30s\"`"),
    (&["limit_req", "limit_req_zone", "rate_limit"], "write `client_rate = \"100/s\"`"),
    (&["limit_conn", "limit_conn_zone"], "write `client_connections = 100`"),
    (&["set_real_ip_from", "real_ip_header"], "write `trusted_proxies = [\"10.0.0.0/8\"]`"),
    (&["pid", "pidfile"], "write `pid_file = \"/run/staunch/staunch.pid\"`"),
    (&["import", "includeoptional"], "write `include = \"conf.d/*.toml\"`: files of [[site]] tables"),
    (
        &["map", "geo", "if", "set"],
        "there are no variables: write a [[path]] for what differs, `allow` and `deny` for addresses",
    ),
    (&["server_tokens", "serversignature"], "no answer tells the version"),
    (
        &["ssl_ciphers", "ssl_prefer_server_ciphers", "sslciphersuite"],
        "the ciphers of TLS 1.2 and 1.3 that are good today are spoken, and no others",
    ),
    (
        &["limit_rate", "limit_rate_after"],
        "an answer is not slowed down; `client_rate` counts the requests of a client",
    ),
    (&["client_max_body_size"], "a body is read and thrown away, at most 1 MiB of it"),
    (&["sendfile", "tcp_nopush", "tcp_nodelay", "open_file_cache", "events"], NOTHING),
];

/// The words of this server for another server's word.
pub(crate) fn hint(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    WORDS.iter().find(|(words, _)| words.contains(&&*word)).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_case_and_stand_once() {
        assert_eq!(hint("gzip"), Some(ENCODINGS));
        assert_eq!(hint("DocumentRoot"), Some("write `root = \"/srv/www\"`"));
        assert_eq!(hint("frobnicate"), None);
        let mut all: Vec<&str> = WORDS.iter().flat_map(|(words, _)| *words).copied().collect();
        assert!(all.iter().all(|word| *word == word.to_ascii_lowercase()));
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
    }
}
