//! What is said about files that are wrong: a table of files and sentences. And right ones come back whole.

use staunch_config::{File, Sources, read, show};

fn read_file(text: &str) -> Result<staunch_config::Config, staunch_config::Faults> {
    let file = Some(File { name: "a.toml".into(), text: text.into() });
    read(&Sources { file, ..Sources::default() })
}

/// A file, and how a sentence about it begins.
const FAULTS: &[(&str, &str)] = &[
    ("lisen = 1", "a.toml:1:1: unknown key `lisen` (did you mean `listen`?)"),
    ("Workers = 1", "a.toml:1:1: unknown key `Workers` (did you mean `workers`?)"),
    ("\nfrobnicate = 1", "a.toml:2:1: unknown key `frobnicate`"),
    (
        "workers = \"none\"",
        "a.toml:1:11: workers: \"none\" is not N|auto: write a number such as 64, 10k or 1m",
    ),
    ("root = 5", "a.toml:1:8: root: 5 is not DIR; write for example `root = \"/srv/www\"`"),
    (
        "keep_alive = [1]",
        "a.toml:1:14: keep_alive: a list is not TIME; write for example `keep_alive = \"60s\"`",
    ),
    ("a = = 1", "a.toml:1:5: "),
    ("listen = [\"127.0.0.1:1\", \"x\"]", "a.toml:1:26: listen: \"x\" is not ADDR: write an address such as"),
    ("admin = \"0.0.0.0:90\"", "a.toml:1:1: admin: others can reach 0.0.0.0:90"),
    ("match = \"/*\"", "a.toml:1:1: `match` belongs in [[path]]"),
    ("hosts = [\"a\"]", "a.toml:1:1: `hosts` belongs in [[site]]"),
    ("[site]\nroot = \".\"", "a.toml:1:2: [site] has single brackets: write [[site]], there may be several"),
    ("site = 1", "a.toml:1:1: `site` is a table: write [[site]]"),
    ("site = [1]", "a.toml:1:9: 1 stands where a table should"),
    ("root = \".\"\n[[site]]", "a.toml:1:1: `root` stands beside [[site]]: write it into each site"),
    ("[[path]]\nmatch = \"/\"\n[[site]]", "a.toml:1:3: [[path]] stands beside [[site]]: write [[site.path]]"),
    ("[[site]]\nworkers = 1", "a.toml:2:1: `workers` belongs in the top of the file"),
    ("[[site]]\ndefault = true\n[[site]]", "a.toml:3:1: nobody would ever see this site"),
    ("[[site]]\ndefault = true\n[[site]]\ndefault = true", "a.toml:3:1: a second site says `default = true`"),
    ("[[site]]\nhosts = ['a']\n[[site]]\nhosts = ['A']", "a.toml:3:1: another site answers for a already"),
    ("[[path]]\ndeny = true", "a.toml:1:1: match: missing: write for example `match = \"/assets/*\"`"),
    ("max_connections = 10\nsoft_connections = 11", "a.toml:2:1: soft_connections: 11 is more than"),
    (
        "max_connections = 10\nreserved_connections = 10",
        "a.toml:2:1: reserved_connections: 10 leaves nothing",
    ),
    ("headers = { Server = \"x\" }", "a.toml:1:13: headers: \"Server\" is not FIELD: the server sets this"),
    ("headers = { A = \"x\\r\\nB: y\" }", "a.toml:1:17: headers: \"x\\r\\nB: y\" is not TEXT"),
    (
        "error_pages = { 404 = \"/a\", 0404 = \"/b\" }",
        "a.toml:1:29: error_pages: \"0404\" stands here a second",
    ),
    ("redirects = [{ from = \"/a\" }]", "a.toml:1:14: redirects: to: missing: write for example"),
    ("redirects = [{ from = \"/a\", to = \"//b\" }]", "a.toml:1:34: redirects: to: \"//b\" is not TARGET"),
    ("trusted_proxies = [\"10.0.0.0/33\"]", "a.toml:1:20: trusted_proxies: \"10.0.0.0/33\" is not CIDR"),
    ("client_rate = \"5\"", "a.toml:1:15: client_rate: \"5\" is not N/s|off: write a rate such as"),
    ("user = \"a b\"", "a.toml:1:8: user: \"a b\" is not USER[:GROUP]|off"),
];

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
        ("cors = { origins = [\"https://A.example/x\"] }", "is not ORIGIN|*"),
        ("basic_auth = { realm = \"x\" }", "nobody is named"),
        (
            "basic_auth = { users = { a = \"hunter2\" } }",
            "what stands here is not HASH: write a hash that begins",
        ),
        ("basic_auth = { users = { a = \"***\" } }", "this stands for a hash that was hidden"),
        ("response_work = \"2s\"", "write a time up to 1s"),
        ("root = \".\"", "`root` belongs in the site, not to a path"),
    ];
    for (line, expected) in table {
        let faults = read_file(&format!("[[path]]\nmatch = \"/*\"\n{line}")).expect_err(line);
        assert!(faults.to_string().contains(expected), "`{line}` says {faults}");
        assert!(faults.lines().iter().all(|line| line.starts_with("a.toml:3:")), "{faults}");
        assert!(!faults.to_string().contains("hunter2"), "{faults}");
    }
}

#[test]
fn many_faults_are_said_at_once_but_not_all() {
    let faults = read_file("a = 1\nworkers = 0\nb = 2").expect_err("three faults");
    assert_eq!(faults.lines().len(), 3, "{faults}");
    let text: String = (0..100).map(|number| format!("unknown_{number} = 1\n")).collect();
    let faults = read_file(&text).expect_err("a hundred faults");
    assert_eq!(faults.lines().len(), 21);
    assert_eq!(faults.lines()[20], "and 80 more");
}

#[test]
fn flags_and_variables_are_blamed_by_their_names() {
    let flags = vec![("workers".into(), "x".into())];
    let faults = read(&Sources { flags: flags.clone(), ..Sources::default() }).expect_err("a wrong flag");
    assert!(faults.only_flags() && faults.lines()[0].starts_with("--workers: \"x\" is not"), "{faults}");
    let environment = vec![("STAUNCH_KEEP_ALIVE".into(), "x".into())];
    let faults = read(&Sources { flags, environment, file: None }).expect_err("two faults");
    assert!(
        !faults.only_flags() && faults.lines()[1].starts_with("STAUNCH_KEEP_ALIVE: \"x\" is not"),
        "{faults}"
    );
    let file = Some(File { name: "a".into(), text: "[[site]]".into() });
    let flags = vec![("root".into(), ".".into())];
    let faults = read(&Sources { flags, environment: Vec::new(), file }).expect_err("a flag beside sites");
    assert_eq!(
        faults.lines()[0],
        "DIR: this is for a single site, but the file has [[site]] tables: say it there"
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
        user = "www-data:adm"
        [[site]]
        hosts = ["A.example", "*.b.example", "[::1]"]
        root = "/srv/with \"quotes\" and \\"
        encodings = false
        error_pages = { 404 = "/404.html" }
        headers = { X-Frame-Options = "DENY" }
        redirects = [{ from = "/old/*", to = "https://new.example/$1", status = 308 }]
        [[site.path]]
        match = "/assets/*"
        cache_control = "public, max-age=31536000, immutable"
        cors = { origins = ["https://a.example"], headers = ["X-A"], max_age = "1d", credentials = true }
        basic_auth = { users_file = "users" }
        response_work = "300us"
        [[site]]
        default = true
        [[site.path]]
        match = "*.html"
        listing = true
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
    let config = read_file("[[site]]\n[[site]]\nhosts = ['a']").expect("a right file");
    assert!(config.sites[0].default && !config.sites[1].default);
    assert!(show(&config.sections, None).contains("default = true"));
}
