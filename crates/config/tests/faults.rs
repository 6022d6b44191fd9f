//! What is said about files that are wrong: a table of files and sentences. And right ones come back whole.

use staunch_config::{File, Sources, read, show};

fn read_file(text: &str) -> Result<staunch_config::Config, staunch_config::Faults> {
    let file = Some(File::new("a.toml", text));
    read(&Sources { file, ..Sources::default() })
}

/// A file, and how a sentence about it begins.
const FAULTS: &[(&str, &str)] = &[
    ("lisen = 1", "a.toml:1:1: unknown key `lisen` (did you mean `listen`?)"),
    ("Workers = 1", "a.toml:1:1: unknown key `Workers` (did you mean `workers`?)"),
    ("\nfrobnicate = 1", "a.toml:2:1: unknown key `frobnicate`"),
    ("workers = \"none\"", "a.toml:1:11: workers: \"none\" is wrong: write a number such as 64, 10k or 1m"),
    ("root = 5", "a.toml:1:8: root: 5 is not DIR or off; write for example `root = \"/srv/www\"`"),
    (
        "keep_alive = [1]",
        "a.toml:1:14: keep_alive: a list is not TIME; write for example `keep_alive = \"60s\"`",
    ),
    ("a = = 1", "a.toml:1:5: "),
    ("listen = [\"127.0.0.1:1\", \"x\"]", "a.toml:1:26: listen: \"x\" is wrong: write an address such as"),
    ("admin = \"0.0.0.0:90\"", "a.toml:1:1: admin: others can reach 0.0.0.0:90"),
    ("match = \"/*\"", "a.toml:1:1: `match` belongs in [[path]] or [[site.path]]"),
    ("class = \"high\"", "a.toml:1:1: `class` belongs in [[path]] or [[site.path]]"),
    (
        "known_cookie = 'session=1'",
        "a.toml:1:16: known_cookie: \"session=1\" is wrong: write the name of a cookie, such as session",
    ),
    ("hosts = [\"a\"]", "a.toml:1:1: `hosts` belongs in [[site]]"),
    ("[site]\nroot = \".\"", "a.toml:1:2: [site] has single brackets: write [[site]], there may be several"),
    ("site = 1", "a.toml:1:1: `site` is a table: write [[site]]"),
    ("site = [1]", "a.toml:1:9: 1 stands where a table should"),
    ("root = \".\"\n[[site]]", "a.toml:1:1: `root` stands beside [[site]]: write it into each site"),
    ("[[path]]\nmatch = \"/\"\n[[site]]", "a.toml:1:3: [[path]] stands beside [[site]]: write [[site.path]]"),
    ("[[site]]\nworkers = 1", "a.toml:2:1: `workers` stands above the first [[...]] of the file"),
    ("[[site]]\ndefault = true\n[[site]]", "a.toml:3:1: nobody would ever see this site"),
    ("[[site]]\ndefault = true\n[[site]]\ndefault = true", "a.toml:3:1: a second site says `default = true`"),
    ("[[site]]\nhosts = ['a']\n[[site]]\nhosts = ['A']", "a.toml:3:1: another site answers for a already"),
    (
        "[[site]]\nhosts = ['a', '*.b']\ncanonical_host = 'https://c'",
        "a.toml:3:1: canonical_host: c is not one of `hosts`",
    ),
    ("[[site]]\nhosts = ['*.b']\ncanonical_host = 'b'", "a.toml:3:1: canonical_host: b is not one of"),
    (
        "[[site]]\nhosts = ['a']\ncanonical_host = 'https://a/b'",
        "a.toml:3:18: canonical_host: \"https://a/b\" is wrong: write a host",
    ),
    ("[[path]]\ndeny = true", "a.toml:1:1: match: missing: write for example `match = \"/assets/*\"`"),
    ("max_connections = 10\nsoft_connections = 11", "a.toml:2:1: soft_connections: 11 is more than"),
    (
        "max_connections = 10\nreserved_connections = 10",
        "a.toml:2:1: reserved_connections: 10 leaves nothing",
    ),
    (
        "publish_token = '0123456789abcdef0123456789abcdef'\npublish_token_file = '/run/token'",
        "a.toml:2:1: publish_token_file: `publish_token` is said as well",
    ),
    (
        "root = '.'\n[[live_issuer]]\nname = 'https://a'\naudience = 'b'",
        "a.toml:2:1: live_issuer: secret_file: one of `secret_file` and `jwks_file`",
    ),
    (
        "root = '.'\n[[live_topic]]\nmatch = '*'\nprivate = true\ndictionary = true",
        "a.toml:5:1: live_topic: dictionary: what is private is never told as a difference",
    ),
    (
        "root = '.'\n[[live_topic]]\nmatch = '*'\nkind = 'log'\nevery = '1s'",
        "a.toml:5:1: live_topic: every: a log loses no update",
    ),
    ("fabric_deadline = '0ms'", "a.toml:1:19: fabric_deadline: \"0ms\" is wrong"),
    ("fabric_deadline = '61s'", "a.toml:1:1: fabric_deadline: at most 60s"),
    ("root = '.'\nfabric_realtime = ['quotes.*', 5]", "a.toml:2:32: fabric_realtime: 5 is not TEXT"),
    ("headers = { Server = \"x\" }", "a.toml:1:13: headers: \"Server\" is wrong: the server sets this"),
    ("headers = { A = \"x\\r\\nB: y\" }", "a.toml:1:17: headers: \"x\\r\\nB: y\" is wrong"),
    (
        "error_pages = { 404 = \"/a\", 0404 = \"/b\" }",
        "a.toml:1:29: error_pages: \"0404\" stands here a second",
    ),
    (
        "try = [\"$path\", \"$uri/\"]",
        "a.toml:1:17: try: \"$uri/\" is wrong: the path that was asked for is $path here",
    ),
    ("try = [\"$path\", 500]", "a.toml:1:17: try: 500 is wrong: write 403, 404 or 410"),
    ("try = [\"/index.html\"]", "a.toml:1:1: try: \"$path\" stands first"),
    ("try = [\"$path\", 404, \"/a\"]", "a.toml:1:1: try: a status stands last"),
    (
        "tls = 'local'\nclient_auth = { mode = 'off', authority = 'a' }",
        "a.toml:2:24: client_auth: mode: \"off\" is wrong: write optional or required",
    ),
    ("tls = 'local'\nclient_auth = { }", "a.toml:2:15: client_auth: authority: missing: write for example"),
    (
        "tls = 'local'\nclient_auth = { authority = 'a', crl = 'b' }",
        "a.toml:2:34: client_auth: unknown key `crl`",
    ),
    ("tls = 'local'\nclient_auth = true", "a.toml:2:15: client_auth: true is not a table"),
    ("client_auth = { authority = 'a' }", "a.toml:1:1: client_auth: no certificate of the server is named"),
    (
        "[[site]]\nclient_auth = { authority = 'a' }",
        "a.toml:2:1: client_auth: no certificate of the server is named",
    ),
    (
        "tls = 'local'\n[[path]]\nmatch = '*'\nclient_auth = 'required'",
        "a.toml:4:1: client_auth: the site asks no client for a certificate",
    ),
    (
        "tls = 'local'\nclient_auth = { authority = 'a' }\n[[site]]\nhosts = ['a']\n\
         [[site.path]]\nmatch = '*'\nclient_auth = 'required'\n\
         [[site]]\nhosts = ['b']\nclient_auth = 'off'\n\
         [[site.path]]\nmatch = '*'\nclient_auth = 'CN=anna,O=House'",
        "a.toml:13:1: client_auth: the site asks no client for a certificate",
    ),
    (
        "tls = 'local'\nclient_auth = { authority = 'a' }\n[[path]]\nmatch = '*'\nclient_auth = []",
        "a.toml:5:1: client_auth: nobody is named",
    ),
    (
        "tls = 'local'\nclient_auth = { authority = 'a' }\n[[path]]\nmatch = '*'\nclient_auth = ['anna']",
        "a.toml:5:16: client_auth: \"anna\" is wrong: write a subject such as CN=anna",
    ),
    (
        "root = '.'\n[[path]]\nmatch = '/media*'\nroot = 'x'",
        "a.toml:4:1: root: a folder is for what is below a path, such as `match = \"/media/*\"`, not for",
    ),
    ("root = '.'\n[[path]]\nmatch = '/*'\nroot = 'x'", "a.toml:4:1: root: this rule is for the whole site"),
    (
        "[[site]]\nroot = '.'\n[[site.path]]\nmatch = '/a/b/*'\nroot = 'x'\n\
         [[site.path]]\nmatch = '/a/*'\nroot = 'y'",
        "a.toml:5:1: root: is never looked into: the later rule for /a/* names a folder as well",
    ),
    ("redirects = [{ from = \"/a\" }]", "a.toml:1:14: redirects: to: missing: write for example"),
    ("redirects = [{ from = \"/a\", to = \"//b\" }]", "a.toml:1:34: redirects: to: \"//b\" is wrong"),
    ("trusted_proxies = [\"10.0.0.0/33\"]", "a.toml:1:20: trusted_proxies: \"10.0.0.0/33\" is wrong"),
    ("client_rate = \"5\"", "a.toml:1:15: client_rate: \"5\" is wrong: write a rate such as"),
    (
        "access_log_format = \"$status $bytes\"",
        "a.toml:1:21: access_log_format: \"$status $bytes\" is wrong: $bytes is not",
    ),
    (
        "access_log_format = \"$bytes_sent\"",
        "a.toml:1:21: access_log_format: \"$bytes_sent\" is wrong: $bytes_sent is not known: $body",
    ),
    (
        "access_log_format = \"${status}\"",
        "a.toml:1:21: access_log_format: \"${status}\" is wrong: write words without braces",
    ),
    (
        "error_log = '-'",
        "a.toml:1:13: error_log: \"-\" is wrong: write off for standard error, /dev/stdout for",
    ),
    (
        "error_log = 'syslog'",
        "a.toml:1:13: error_log: \"syslog\" is wrong: write off: standard error is the journal under systemd",
    ),
    (
        "access_log = 'stdout'",
        "a.toml:1:14: access_log: \"stdout\" is wrong: write /dev/stdout, or ./stdout for a file of that",
    ),
    (
        "listen = 'unix:http.sock'",
        "a.toml:1:10: listen: \"unix:http.sock\" is wrong: write the whole name of a socket file",
    ),
    (
        "listen = '/run/http.sock'",
        "a.toml:1:10: listen: \"/run/http.sock\" is wrong: write unix:/run/http.sock for a socket file",
    ),
    (
        "socket_mode = '0888'",
        "a.toml:1:15: socket_mode: \"0888\" is wrong: write a mode in quotes, as for chmod",
    ),
    ("access_log_format = \"jason\"", "a.toml:1:21: access_log_format: \"jason\" is wrong"),
    ("user = \"a b\"", "a.toml:1:8: user: \"a b\" is wrong"),
    ("", "a.toml:1:1: root: missing: write the folder to serve, for example `root = \"/srv/www\"`"),
    ("workers = 1\n[[path]]\nmatch = '*'", "a.toml:1:1: root: missing"),
    ("[[site]]\nroot = '.'\n[[site]]\nhosts = ['a']", "a.toml:3:1: root: missing"),
    (
        "access_log = '/a/b.log combined'",
        "a.toml:1:14: access_log: \"/a/b.log combined\" is wrong: write the file alone",
    ),
];

/// Redirects, and how a sentence about them begins.
const REDIRECTS: &[(&str, &str)] = &[
    (
        "[{ from = '/b/*', to = 'https://b.example/*' }]",
        "1:36: redirects: to: \"https://b.example/*\" is wrong: a star",
    ),
    (
        "[{ from = '/b/*', to = 'https://$host$request_uri' }]",
        "1:36: redirects: to: \"https://$host$request_uri\" is wrong: there is no variable $host: a path such",
    ),
    (
        "[{ from = '/b/*', to = '/c$uri' }]",
        "1:36: redirects: to: \"/c$uri\" is wrong: there is no variable $uri: write from",
    ),
    ("[{ from = '/a/*', to = '/a/$1' }]", "1:14: redirects: this leads in a circle: /a/* -> /a/* -> "),
    ("[{ from = '/a', to = '/b' },\n{ from = '/b', to = '/a' }]", "2:1: redirects: this leads in a circle"),
    ("[{ from = '/a', to = '/b' },\n { from = '/a', to = '/c' }]", "2:2: redirects: a second rule for `/a`"),
    (
        "[{ from = '/*', to = 'http://b' },\n { from = '/a', to = '/c' }]",
        "2:2: redirects: this rule never applies",
    ),
    ("[{ from = '/a', to = '/$1' }]", "1:14: redirects: `to` has $1, but `from` has 0 stars"),
    // What is wrong with one does not hide what is wrong between others.
    ("[{ from = '/x' },\n{ from = '/a', to = '/a' }]", "2:1: redirects: this leads in a circle"),
];

#[test]
fn redirects_that_cannot_be_meant_are_faults() {
    for (list, expected) in REDIRECTS {
        let faults = read_file(&format!("redirects = {list}\nroot = '.'")).expect_err(list);
        let expected = format!("a.toml:{expected}");
        assert!(faults.lines().iter().any(|line| line.starts_with(&expected)), "{list}: {faults}");
    }
    let right =
        "root = '.'\nredirects = [{ from = '/old/*', to = '/new/$1' }, { from = '/*', to = 'https://b' }]";
    read_file(right).expect("redirects that end");
}

#[test]
fn a_word_of_another_server_is_answered_with_ours() {
    for (text, expected) in [
        ("gzip = true", "unknown key `gzip`: `encodings` says"),
        ("autoindex = true", "unknown key `autoindex`: write `listing = true`"),
        (
            "ssl_certificate = 'a'",
            "unknown key `ssl_certificate`: write `tls = { certificate = \"chain.pem\"",
        ),
        ("ssl_verify_client = 'on'", "unknown key `ssl_verify_client`: write `client_auth = { mode ="),
        ("proxy_pass = 'a'", "unknown key `proxy_pass`: write `proxy = \"127.0.0.1:8000\"`"),
        ("server_name = 'a'", "unknown key `server_name`: write `hosts = "),
        ("try_files = 'a'", "unknown key `try_files`: write `try = "),
        ("[[location]]\nx = 1", "unknown key `location`: write [[path]]"),
        ("[[path]]\nmatch = '*'\nadd_header = 'a'", "unknown key `add_header`: write `headers = "),
        ("[[site]]\nErrorDocument = 1", "unknown key `ErrorDocument`: write `error_pages = "),
    ] {
        let faults = read_file(text).expect_err(text);
        assert!(faults.to_string().contains(expected), "{text}: {faults}");
    }
}

#[test]
fn folders_are_listed_unless_there_is_a_file() {
    let file = |text: &str| Some(File::new("a.toml", text));
    let flag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let root = || vec![flag("root", "x")];
    for (flags, file, expected) in [
        (root(), None, true),
        (Vec::new(), None, true),
        ([root(), vec![flag("listing", "off")]].concat(), None, false),
        (root(), file("workers = 1"), false),
        (root(), file("listing = true"), true),
        (Vec::new(), file("root = '.'"), false),
        (Vec::new(), file("[[site]]\nroot = '.'"), false),
        (Vec::new(), file("[[site]]\nroot = '.'\nlisting = true"), true),
    ] {
        let sources = Sources { flags, file, ..Sources::default() };
        let config = read(&sources).unwrap_or_else(|faults| panic!("{sources:?}: {faults}"));
        assert_eq!(config.sites[0].content.listing, Some(expected), "{sources:?}");
        let shown = show(&config.sections, None);
        assert!(shown.contains(&format!("listing = {expected}")), "{shown}");
    }
    let environment = vec![("STAUNCH_ROOT".into(), "x".into())];
    let alone = read(&Sources { environment: environment.clone(), ..Sources::default() });
    assert_eq!(alone.expect("a variable says it").sites[0].content.listing, Some(false), "as before");
    let config = read(&Sources { environment, file: file("workers = 1"), ..Sources::default() });
    assert_eq!(config.expect("a variable says it").sites[0].content.root, Some("x".into()));
}

#[test]
fn each_fault_has_its_place_and_its_reason() {
    for (text, expected) in FAULTS {
        let faults = read_file(text).err().unwrap_or_else(|| panic!("`{text}` passes"));
        assert!(faults.lines().iter().any(|line| line.starts_with(expected)), "`{text}` says {faults}");
        assert!(!faults.only_flags());
    }
}

#[test]
fn a_rule_is_checked_as_a_whole() {
    let table = [
        (
            "cors = { origins = [\"*\"], credentials = true }",
            "credentials: browsers refuse credentials for \"*\"",
        ),
        ("cors = { origins = [] }", "origins: name at least one origin"),
        ("cors = { origins = [\"https://A.example/x\"] }", "is wrong"),
        ("basic_auth = { realm = \"x\" }", "nobody is named"),
        ("basic_auth = { users = { a = \"hunter2\" } }", "the value here is wrong: write a hash that begins"),
        ("basic_auth = { users = { a = \"***\" } }", "this stands for a hash that was hidden"),
        ("allow = [\"10.0.0.0/8\", \"10.0.0.0/33\"]", "\"10.0.0.0/33\" is wrong"),
        ("deny = [\"all\"]", "\"all\" is wrong"),
        ("deny = \"yes\"", "\"yes\" is wrong"),
        ("allow = []", "allow: nobody is named"),
        ("response_work = \"2s\"", "write a time up to 1s"),
        ("root = \".\"", "this rule is for the whole site: write `root` above its paths"),
        ("dictionary = \"x\"", "\"x\" is wrong"),
        (
            "dictionary = \"*.js\"",
            "dictionary: a pattern of whole paths is told to browsers: it begins with /",
        ),
        ("dictionary = 5", "a.toml:4:"),
        ("dictionary = { match = \"/a\" }", "a.toml:4:"),
    ];
    for (line, expected) in table {
        let faults = read_file(&format!("root = '.'\n[[path]]\nmatch = \"/*\"\n{line}")).expect_err(line);
        assert!(faults.to_string().contains(expected), "`{line}` says {faults}");
        assert!(faults.lines().iter().all(|line| line.starts_with("a.toml:4:")), "{faults}");
        assert!(!faults.to_string().contains("hunter2"), "{faults}");
    }
}

#[test]
fn what_is_refused_altogether_is_not_allowed_in_parts() {
    let text = "[[path]]\nmatch = \"/*\"\nallow = [\"::1\"]\ndeny = true";
    let faults = read_file(text).expect_err("both");
    assert!(faults.to_string().contains("leave it out, all others are refused already"), "{faults}");
}

#[test]
fn a_dictionary_that_no_browser_keeps_is_refused() {
    for words in ["no-cache", "max-age=60, No-Store"] {
        let text = format!("[[path]]\nmatch = \"/*\"\ndictionary = true\ncache_control = \"{words}\"");
        let faults = read_file(&text).expect_err("both");
        assert!(faults.to_string().contains("no browser keeps a dictionary under"), "{faults}");
    }
    let text = "root = '.'\n[[path]]\nmatch = \"/*\"\ndictionary = false\ncache_control = \"no-cache\"";
    read_file(text).expect("none is no fault");
}

#[test]
fn many_faults_are_said_at_once_but_not_all() {
    let faults = read_file("root = '.'\na = 1\nworkers = 0\nb = 2").expect_err("three faults");
    assert_eq!(faults.lines().len(), 3, "{faults}");
    let text: String = (0..99).map(|number| format!("unknown_{number} = 1\n")).collect();
    let faults = read_file(&text).expect_err("a hundred faults");
    assert_eq!(faults.lines().len(), 21);
    assert_eq!(faults.lines()[20], "and 80 more");
}

#[test]
fn flags_and_variables_are_blamed_by_their_names() {
    let flags = vec![("workers".into(), "x".into())];
    let faults = read(&Sources { flags: flags.clone(), ..Sources::default() }).expect_err("a wrong flag");
    assert!(faults.only_flags() && faults.lines()[0].starts_with("--workers: \"x\" is wrong"), "{faults}");
    let environment = vec![("STAUNCH_KEEP_ALIVE".into(), "x".into())];
    let faults = read(&Sources { flags, environment, file: None }).expect_err("two faults");
    assert!(
        !faults.only_flags() && faults.lines()[1].starts_with("STAUNCH_KEEP_ALIVE: \"x\" is wrong"),
        "{faults}"
    );
    let file = Some(File::new("a", "[[site]]\nroot = '.'"));
    let flags = vec![("root".into(), ".".into())];
    let faults = read(&Sources { flags, environment: Vec::new(), file }).expect_err("a flag beside sites");
    assert_eq!(
        faults.lines()[0],
        "DIR|off: this is for a single site, but the file has [[site]] tables: say it there"
    );
}

#[test]
fn what_is_shown_can_be_read() {
    let text = r#"
        listen = 8080
        cpus = "0,2-5"
        client_rate = "600/m"
        trusted_proxies = ["10.0.0.0/8", "::1"]
        access_log = "-"
        access_log_format = '$remote_addr "$request" $status'
        user = "www-data:adm"
        [[site]]
        hosts = ["A.example", "*.b.example", "[::1]"]
        canonical_host = "https://www.b.example:8443"
        root = "/srv/with \"quotes\" and \\"
        encodings = false
        try = ["$path", "/index.html"]
        error_pages = { 404 = "/404.html" }
        headers = { X-Frame-Options = "DENY" }
        redirects = [{ from = "/old/*", to = "https://new.example/$1", status = 308 }]
        [[site.path]]
        match = "/assets/*"
        cache_control = "public, max-age=31536000, immutable"
        cors = { origins = ["https://a.example"], headers = ["X-A"], max_age = "1d", credentials = true }
        basic_auth = { users_file = "users" }
        allow = ["10.0.0.0/8", "::1"]
        deny = ["10.1.0.0/16"]
        response_work = "300us"
        dictionary = "/assets/app.*.js"
        [[site]]
        root = "b"
        default = true
        [[site.path]]
        match = "*.html"
        listing = true
        allow = false
        try = ["$path", "$path.html", 410]
        dictionary = true
        deny = true
    "#;
    let config = read_file(text).expect("a right file");
    assert_eq!(config.sites.len(), 2);
    assert_eq!(config.sites[0].paths[0].pattern, "/assets/*");
    assert_eq!(config.sites[1].paths[0].listing, Some(true));
    let shown = show(&config.sections, None);
    let again = read_file(&shown).unwrap_or_else(|faults| panic!("{faults}\n{shown}"));
    assert_eq!(again.sites, config.sites);
    assert_eq!(
        (&again.network, &again.deadlines, &again.pressure, &again.clients, &again.logs, &again.process),
        (
            &config.network,
            &config.deadlines,
            &config.pressure,
            &config.clients,
            &config.logs,
            &config.process
        )
    );
}

#[test]
fn the_first_site_is_the_default_where_none_says_so() {
    let config =
        read_file("[[site]]\nroot = 'a'\n[[site]]\nhosts = ['a']\nroot = 'b'").expect("a right file");
    assert!(config.sites[0].default && !config.sites[1].default);
    assert!(show(&config.sections, None).contains("default = true"));
}
