//! `-t`: what it finds, what it says, and that it touches nothing.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Folder;
use staunch_tests::process::{Server, binary, finish};

const RIGHT: &str = "listen = ['127.0.0.1:0']\nroot = '.'\naccess_log = 'access.log'\n";

#[test]
fn a_right_file_passes_with_the_familiar_lines() {
    let folder = Folder::with(RIGHT);
    std::fs::write(folder.tree.root().join("access.log"), "a line\n").expect("our own folder");
    for arguments in
        [&["-t", "--config", "staunch.toml"][..], &["serve", "--test-config", "-c", "staunch.toml"]]
    {
        let finished = folder.run(arguments);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        let lines = "staunch: the configuration file staunch.toml syntax is ok\n\
                     staunch: configuration file staunch.toml test is successful\n";
        assert_eq!(finished.stderr, lines);
        assert_eq!(finished.stdout, "");
    }
    let log = std::fs::read_to_string(folder.tree.root().join("access.log")).expect("the log");
    assert_eq!(log, "a line\n", "a test leaves logs alone");
}

#[test]
fn without_a_file_flags_and_environment_are_tested() {
    let folder = Folder::with(RIGHT);
    let finished = folder.run(&["serve", ".", "--listen", "127.0.0.1:0", "--test-config"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let lines = "staunch: the syntax of the configuration from flags and environment is ok\n\
                 staunch: configuration from flags and environment test is successful\n";
    assert_eq!(finished.stderr, lines);
}

#[test]
fn no_socket_is_touched() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let folder = Folder::with(&format!("listen = ['{address}']\nroot = '.'"));
    assert_eq!(folder.run(&["-t", "-c", "staunch.toml"]).status.code(), Some(0));
    taken.set_nonblocking(true).expect("a socket");
    assert!(taken.accept().is_err(), "somebody knocked");
}

#[test]
fn everything_wrong_is_said_with_its_place() {
    let folder = Folder::with("lisen = 1\nworkers = 'none'\nroot = '.'\n[[path]]\ndeny = true\n");
    let finished = folder.run(&["-t", "-c", "staunch.toml"]);
    assert_eq!(finished.status.code(), Some(78));
    assert_eq!(
        finished.stderr,
        "staunch: staunch.toml:1:1: unknown key `lisen` (did you mean `listen`?)\n\
         staunch: staunch.toml:2:11: workers: \"none\" is wrong: write a number such as 64, 10k or 1m, or \
         auto\n\
         staunch: staunch.toml:4:1: match: missing: write for example `match = \"/assets/*\"`\n\
         staunch: configuration file staunch.toml test failed\n"
    );
    let served = folder.run(&["serve", "-c", "staunch.toml"]);
    assert_eq!(served.status.code(), Some(78), "it is not served either");
    assert!(served.stderr.starts_with("staunch: staunch.toml:1:1: "), "{}", served.stderr);
}

#[test]
fn a_server_that_stands_twice_in_an_application_is_found_however_it_is_written() {
    let table = [
        ("proxy = ['127.0.0.1:80', '10.0.0.1:80', '127.0.0.1:80']", "1:41"),
        ("proxy = ['8000', '127.0.0.1:8000']", "1:18"),
        ("proxy = ['app:80', 'http://app:80/']", "1:20"),
        ("proxy = ['unix:/run/a', 'unix:/run/a']", "1:25"),
        ("root = '.'\n[[path]]\nmatch = '/a'\nproxy = ['app:80', 'app:80']", "4:20"),
    ];
    for (text, place) in table {
        let folder = Folder::with(text);
        let finished = folder.run(&["-t", "-c", "staunch.toml"]);
        assert_eq!(finished.status.code(), Some(78), "{text}");
        let start = format!("staunch: staunch.toml:{place}: proxy: ");
        let mut lines = finished.stderr.lines().filter(|line| line.starts_with(&start));
        let is_told = lines.any(|line| line.ends_with(" is wrong: the same stands before it already"));
        assert!(is_told, "{text}: {}", finished.stderr);
    }
    let folder = Folder::with("proxy = ['127.0.0.1:80', 'localhost:80', '[::1]:80', '127.0.0.1:81']");
    assert_eq!(folder.run(&["-t", "-c", "staunch.toml"]).status.code(), Some(0));
}

#[test]
fn what_is_not_there_is_found_by_the_test() {
    let table = [
        ("root = 'no/such'", "staunch.toml:1:1: root: no/such: no such file or directory"),
        ("root = 'a.txt'", "staunch.toml:1:1: root: a.txt: not a directory"),
        (
            "root = '.'\nerror_pages = { 429 = '/no.html' }",
            "staunch.toml:2:1: error_pages: 429 has no page here; those are [400, 401",
        ),
        (
            "root = '.'\nerror_pages = { 404 = '/no.html' }",
            "staunch.toml:2:1: error_pages: ./no.html: no such file",
        ),
        ("root = '.'\nfallback = '/no.html'", "staunch.toml:2:1: fallback: ./no.html: no such file"),
        ("access_log = 'no/such/a.log'", "staunch.toml:1:1: access_log: no/such: no such file or directory"),
        (
            "access_log = 'syslog:/no/such'",
            "staunch.toml:1:1: access_log: no syslog service listens at /no/such: no such file or directory",
        ),
        ("access_log = 'syslog:/tmp'", "staunch.toml:1:1: access_log: /tmp: not a socket"),
        ("error_log = '.'", "staunch.toml:1:1: error_log: .: a folder, not a file"),
        ("pid_file = 'no/such/pid'", "staunch.toml:1:1: pid_file: no/such: no such file or directory"),
        ("user = 'nobody-of-this-name'", "staunch.toml:1:1: user: there is no user nobody-of-this-name"),
        (
            "root = '.'\ncpus = '4000'",
            "staunch.toml:2:1: cpus: processor 4000 is not one this process may use",
        ),
        (
            "listen = 'no..host:80'\nroot = '.'",
            "staunch.toml:1:1: listen: no address is known for no..host:80",
        ),
        (
            "root = '.'\nfabric_realtime = ['quotes.*', 'a.>.b']",
            "staunch.toml:2:1: fabric_realtime: \"a.>.b\": ",
        ),
        ("\n[[site]]\nroot = 'no'", "staunch.toml:3:1: root: no: no such file or directory"),
        (
            "[[path]]\nmatch = '*'\nbasic_auth = { users_file = 'no' }",
            "staunch.toml:3:1: basic_auth: no: no such file or directory",
        ),
        (
            "[[path]]\nmatch = '*'\nbasic_auth = { users_file = 'a.txt' }",
            "staunch.toml:3:1: basic_auth: a.txt:1: write a name, a colon and a hash",
        ),
        (
            "root = '.'\n[[path]]\nmatch = '*'\n[path.basic_auth.users]\n\
             a = '$2b$20$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW'",
            "site .: ",
        ),
    ];
    for (settings, expected) in table {
        let folder = Folder::with(settings);
        let finished = folder.run(&["-t", "-c", "staunch.toml"]);
        assert_eq!(finished.status.code(), Some(78), "{settings}: {}", finished.stderr);
        let found = finished.stderr.lines().any(|line| line.starts_with(&format!("staunch: {expected}")));
        assert!(found, "{settings}: {}", finished.stderr);
        assert!(finished.stderr.ends_with("staunch: configuration file staunch.toml test failed\n"));
    }
}

#[test]
fn hashes_that_are_guessed_fast_are_warned_of() {
    let folder = Folder::with("root = '.'\n[[path]]\nmatch = '*'\nbasic_auth = { users_file = 'users' }\n");
    let users = |text: &str| std::fs::write(folder.tree.root().join("users"), text).expect("our own folder");
    let good = "bert:$2y$04$o47T2XpOSOc..qW12xHpD.sjWFiDuFL6WcZB6Tz0JB4aDm2Ls9AZa\n";
    users(good);
    let finished = folder.run(&["-t", "-c", "staunch.toml"]);
    assert!(finished.status.success() && !finished.stderr.contains("warning"), "{}", finished.stderr);
    let old = "# of the old server\nanna:$apr1$saltsalt$yAAkm4libquA.ZWLHbSBq/\n\
               carl:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";
    users(&[good, old].concat());
    let finished = folder.run(&["-t", "-c", "staunch.toml"]);
    assert!(finished.status.success(), "{}", finished.stderr);
    let warning = "warning: users:3: the hash of anna is $apr1$ or {SHA}, which is guessed fast, as that of \
                   another user: put the line that `staunch password anna` prints in its place\n";
    assert!(finished.stderr.contains(warning), "{}", finished.stderr);
    for (line, fault) in [
        ("anna:$apr1$saltsalt$short\n", "users:1: the hash is not of the form $apr1$SALT$HASH or {SHA}HASH"),
        ("anna:$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/\n", "users:1: write a hash that begins with $argon2id$"),
        ("anna:password\n", "users:1: write a hash that begins with $argon2id$"),
        ("anna:{SSHA}W6ph5Mm5\n", "or $2b$ (bcrypt), or, of htpasswd, $apr1$ or {SHA}"),
    ] {
        users(line);
        let finished = folder.run(&["-t", "-c", "staunch.toml"]);
        assert_eq!(finished.status.code(), Some(78), "{line}: {}", finished.stderr);
        assert!(finished.stderr.contains(fault), "{line}: {}", finished.stderr);
    }
}

/// A pipe without a writer would be waited for without end, and a device be read until memory is out.
#[test]
fn what_is_named_and_no_file_is_refused() {
    for (key, rest) in [
        ("basic_auth", "[[path]]\nmatch = '*'\nbasic_auth = { users_file = 'NAME' }\n"),
        ("publish_token_file", "live = true\npublish_token_file = 'NAME'\n"),
        (
            "live_issuer",
            "live = true\n[[live_issuer]]\nname = 'https://a'\naudience = 'b'\njwks_file = 'NAME'\n",
        ),
        ("tls", "tls = { certificate = 'NAME' }\n"),
        ("proxy_tls_ca", "proxy = 'https://127.0.0.1:1'\nproxy_tls_name = 'a'\nproxy_tls_ca = 'NAME'\n"),
    ] {
        for (name, what) in [("fifo", "a pipe"), ("zero", "a device")] {
            let folder = Folder::with(&format!("root = '.'\n{}", rest.replace("NAME", name)));
            folder.tree.fifo("fifo").expect("our own folder");
            symlink("/dev/zero", folder.tree.root().join("zero")).expect("our own folder");
            let finished = folder.run(&["-t", "-c", "staunch.toml"]);
            assert_eq!(finished.status.code(), Some(78), "{key}: {}", finished.stderr);
            for words in [key, &format!("{name}: this is no file, but {what}")] {
                assert!(finished.stderr.contains(words), "{words} is not in {}", finished.stderr);
            }
        }
    }
}

#[test]
fn settings_may_come_by_a_pipe_and_have_a_bound() {
    let folder = Folder::with("");
    let script = "printf \"root = '.'\\n\" | \"$1\" -t -c /dev/stdin";
    let mut shell = Command::new("sh");
    shell.current_dir(folder.tree.root()).args(["-c", script, "sh"]).arg(binary());
    let finished = finish(&mut shell);
    assert!(finished.status.success(), "{}", finished.stderr);
    symlink("/dev/zero", folder.tree.root().join("zero")).expect("our own folder");
    std::fs::write(folder.tree.root().join("bytes"), "root = '.'\n# \u{e4}\n").expect("our own folder");
    std::fs::write(folder.tree.root().join("latin1"), b"root = '.'\n# \xe4\n").expect("our own folder");
    assert!(folder.run(&["-t", "-c", "bytes"]).status.success());
    for (name, fault) in [
        ("zero", "zero: it is longer than 4194304 bytes"),
        ("latin1", "latin1: line 2 is not UTF-8: save it as UTF-8"),
        (".", ".: this is no file, but a folder"),
    ] {
        let finished = folder.run(&["-t", "-c", name]);
        assert_eq!(finished.status.code(), Some(78), "{}", finished.stderr);
        assert!(finished.stderr.contains(fault), "{}", finished.stderr);
    }
}

/// Mistakes of all kinds, of which those that the system tells do not wait for the others.
#[test]
fn all_faults_are_told_in_one_round_and_in_order() {
    let folder = Folder::with(
        "access_log = 'no/such/a.log'\nworkers = 'none'\ncpus = '4000'\nroot = 'no'\ngzip = true\n\
         redirects = [{ from = '/a/*', to = '/a/$1' },\n{ from = '/b', to = '/c/*' }]\n\
         [[path]]\nmatch = '*'\nbasic_auth = { users_file = 'none' }\nspeed = 1\n",
    );
    let finished = folder.run(&["-t", "-c", "staunch.toml"]);
    assert_eq!(finished.status.code(), Some(78));
    let place = |line: &str| -> Option<(usize, usize)> {
        let mut numbers = line.strip_prefix("staunch: staunch.toml:")?.split(':');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    };
    let places: Vec<(usize, usize)> = finished.stderr.lines().filter_map(place).collect();
    assert!(places.is_sorted(), "{}", finished.stderr);
    let lines: Vec<usize> = places.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 2, 4, 5, 6, 7, 10, 11], "{}", finished.stderr);
    assert_eq!(finished.stderr.lines().count(), lines.len() + 1, "{}", finished.stderr);
}

#[test]
fn a_folder_of_the_system_is_served_only_by_who_says_so() {
    let folder = Folder::with("");
    let root = folder.tree.root().to_str().expect("text").to_owned();
    symlink("/etc", folder.tree.root().join("link")).expect("our own folder");
    for (text, expected) in [
        ("workers = 1", "staunch.toml:1:1: root: missing"),
        ("[[site]]\nhosts = ['a']", "staunch.toml:1:1: root: missing"),
        ("workers = 1\nroot = '/'", "staunch.toml:2:1: root: / is a folder of the system"),
        ("root = '/etc/'", "staunch.toml:1:1: root: /etc/ is /etc, which is one of the system"),
        ("root = 'link'", "staunch.toml:1:1: root: link is /etc, which is one of the system"),
        ("root = '/proc/self'", "staunch.toml:1:1: root: /proc/self is /proc/"),
        ("[[site]]\nroot = '.'\n[[site]]\nhosts = ['b']\nroot = '/var'", "staunch.toml:5:1: root: /var is"),
    ] {
        std::fs::write(folder.settings(), text).expect("our own folder");
        for arguments in [&["-t", "-c", "staunch.toml"][..], &["serve", "-c", "staunch.toml"]] {
            let finished = folder.run(arguments);
            assert_eq!(finished.status.code(), Some(78), "{text}: {}", finished.stderr);
            assert!(finished.stderr.contains(&format!("staunch: {expected}")), "{text}: {}", finished.stderr);
        }
    }
    let finished = folder.run(&["serve", "/", "--listen", "127.0.0.1:0"]);
    assert_eq!(finished.status.code(), Some(2), "{}", finished.stderr);
    assert!(
        finished.stderr.starts_with("staunch: DIR|off: / is a folder of the system"),
        "{}",
        finished.stderr
    );
    for (text, arguments) in [
        ("root = '/etc'\nroot_anyway = true", &["-t", "-c", "staunch.toml"][..]),
        ("root = '/etc'", &["serve", "-t", "--root-anyway", "-c", "staunch.toml"]),
        ("", &["serve", "-t", "/", "--root-anyway"]),
        ("", &["serve", "-t", &root, "-c", "staunch.toml"]),
    ] {
        std::fs::write(folder.settings(), text).expect("our own folder");
        let finished = folder.run(arguments);
        assert_eq!(finished.status.code(), Some(0), "{text} {arguments:?}: {}", finished.stderr);
    }
    let mut command = folder.staunch(&["serve", "-t", "/etc"]);
    assert_eq!(finish(command.env("STAUNCH_ROOT_ANYWAY", "on")).status.code(), Some(0));
}

#[test]
fn a_variable_of_nothing_is_warned_of_when_it_starts() {
    let folder = Folder::with(RIGHT);
    let mut command = folder.staunch(&["serve", "-c", "staunch.toml", "--error-log", "said"]);
    let command = command.env("STAUNCH_KEEPALIVE", "3").env("STAUNCH_SEED", "7");
    let server = Server::spawn(command).unwrap_or_else(|said| panic!("{said}"));
    let said = || std::fs::read_to_string(folder.tree.root().join("said")).unwrap_or_default();
    let start = Instant::now();
    while !said().contains("STAUNCH_KEEPALIVE") && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(
        said().contains("STAUNCH_KEEPALIVE has no effect: there is no such setting (did you mean"),
        "{}",
        said()
    );
    assert!(!said().contains("STAUNCH_SEED"), "{}", said());
    drop(server);
}

#[test]
fn exit_codes_tell_whose_fault_it_is() {
    let folder = Folder::with(RIGHT);
    let code = |arguments: &[&str]| folder.run(arguments).status.code();
    assert_eq!(code(&["serve", "-t", "--workers", "none"]), Some(2), "a flag");
    assert_eq!(
        code(&["serve", "-t", "--max-connections", "1", "--soft-connections", "2"]),
        Some(2),
        "two flags"
    );
    assert_eq!(code(&["-t", "-c", "no.toml"]), Some(78), "a file that is not there");
    assert_eq!(code(&["--config", "staunch.toml"]), Some(2), "nothing to do");
    let finished = finish(folder.staunch(&["serve", "-t"]).env("STAUNCH_KEEP_ALIVE", "long"));
    assert_eq!(finished.status.code(), Some(78), "a variable");
    assert!(
        finished.stderr.starts_with("staunch: STAUNCH_KEEP_ALIVE: \"long\" is wrong: "),
        "{}",
        finished.stderr
    );
    let finished = finish(folder.staunch(&["serve", "-t"]).env("STAUNCH_WORKER", "2"));
    assert_eq!(finished.status.code(), Some(0), "a variable of nobody");
    let hint = "staunch: warning: STAUNCH_WORKER has no effect: there is no such setting (did you mean \
                STAUNCH_WORKERS?)";
    assert!(finished.stderr.contains(hint), "{}", finished.stderr);
    let sites = Folder::with("[[site]]\nroot = '.'\n");
    let finished = sites.run(&["serve", "-c", "staunch.toml", "--listing", "on"]);
    assert_eq!(finished.status.code(), Some(2));
    assert!(finished.stderr.contains("--listing: this is for a single site"), "{}", finished.stderr);
}

#[test]
fn the_file_of_the_package_is_right() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/staunch.toml");
    let text = std::fs::read_to_string(path).expect("the file of the package");
    // With the folders of this test in the place of the system's, and everything that is commented out in.
    let folder = Folder::with("");
    let own = |text: &str| text.replace("/usr/share/staunch/welcome", ".").replace("/var/log/staunch/", "");
    let whole: String = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let users = "# staff\nanna:$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW\n";
    for (name, content) in [("users", users), ("404.html", "404"), ("busy.html", "503")] {
        std::fs::write(folder.tree.root().join(name), content).expect("our own folder");
    }
    let run = format!("{}/", folder.tree.root().display());
    let whole = own(&whole).replace("/etc/staunch/users", "users").replace("/run/staunch/", &run);
    for text in [own(&text), whole] {
        std::fs::write(folder.settings(), &text).expect("our own folder");
        let finished = folder.run(&["-t", "-c", "staunch.toml"]);
        assert_eq!(finished.status.code(), Some(0), "{}\n{text}", finished.stderr);
    }
}
