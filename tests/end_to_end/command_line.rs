//! What the command line says: to who asks, to who errs, and by its exit code.

use std::net::TcpListener;
use std::process::Command;

use staunch_tests::house::ports::reserved_address;
use staunch_tests::process::{Finished, Server, address_in, binary, finish, serve, serve_by};
use staunch_tests::tree::Tree;

use crate::outside::{is_installed, server_of};

const FLAGS: [&str; 24] = [
    "--config",
    "--test-config",
    "--patience",
    "--client-rate",
    "--access-log",
    "--drain-timeout",
    "--listen",
    "--workers",
    "--cpus",
    "--leave-cpu0",
    "--io",
    "--keep-alive",
    "--header-timeout",
    "--tls <auto|local|FILES|off>",
    "--tls-certificate",
    "--body-timeout",
    "--send-timeout",
    "--max-connections",
    "--listing",
    "--no-cache",
    "--cache-size",
    "--encodings",
    "--index",
    "--dotfiles",
];

/// A flag of each group, each value of a flag that has a few, and what leads further.
const LOAD_FLAGS: [&str; 16] = [
    "Usage: staunch load",
    "--connections",
    "--rate",
    "--slow <headers|body|reader>",
    "--with",
    "--header",
    "--expect-body",
    "--patience",
    "--close <auto|fin|rst>",
    "--io <auto|uring|epoll>",
    "--probe",
    "--json",
    "--html",
    "--fail-if",
    "[default: what --rate says, else 10s]",
    "Examples:",
];

fn run(arguments: &[&str]) -> Finished {
    finish(Command::new(binary()).args(arguments))
}

/// Asserts an exit code and one sentence with this word in it, and no word of a panic.
fn assert_refusal(finished: &Finished, code: i32, word: &str) {
    let said = &finished.stderr;
    assert_eq!(finished.status.code(), Some(code), "{said}");
    assert!(said.contains(word), "`{word}` is not in: {said}");
    assert!(!said.contains("panicked"), "{said}");
    if code == 1 {
        let lines = said.lines().filter(|line| !line.trim().is_empty()).count();
        assert_eq!(lines, 1, "one sentence: {said}");
    }
}

/// The help of a subcommand: whole, not too long to be read, and the same for both flags that ask for it.
fn assert_help(command: &[&str], flags: &[&str], lines_max: usize) {
    let finished = run(&[command, &["--help"]].concat());
    assert_eq!(finished.status.code(), Some(0), "{command:?}: {}", finished.stderr);
    let help = &finished.stdout;
    for flag in flags {
        assert!(help.contains(flag), "{flag} is not in the help of {command:?}:\n{help}");
    }
    let lines = help.lines().count();
    assert!(lines <= lines_max, "{command:?}: {lines} lines are more than can be read at once:\n{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 110), "{command:?}:\n{help}");
    // What a flag takes stands on its line: never as a list with a line a value.
    assert!(!help.contains("Possible values:"), "{command:?}:\n{help}");
    assert_eq!(run(&[command, &["-h"]].concat()).stdout, *help);
}

#[test]
fn help_is_whole_and_short() {
    assert_help(&["serve"], &FLAGS, 150);
}

#[test]
fn help_of_the_load_generator_is_whole_and_short() {
    assert_help(&["load"], &LOAD_FLAGS, 110);
    assert_help(&["load", "sweep"], &["--factors", "--rounds", "--capacity", "--html", "--patience"], 80);
    assert_help(&["load", "hold"], &["--connections", "--for", "--request-first", "--source"], 80);
    assert_help(&["load", "compare"], &["--tolerance", "--json"], 40);
    assert_help(&["load", "flood"], &["--interface", "--to", "--by <auto|frames|socket>"], 40);
    assert_help(&["load", "webstone-files"], &["<FOLDER>"], 40);
}

#[test]
fn help_and_version_of_the_command() {
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(help.stdout.contains("serve"), "{}", help.stdout);
    let version = run(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert!(version.stdout.starts_with("staunch "), "{}", version.stdout);
    // As git, cargo and nginx are asked.
    for (words, expected) in [("help", "--help"), ("version", "--version"), ("-v", "--version")] {
        assert_eq!(run(&[words]).stdout, run(&[expected]).stdout, "{words}");
    }
    assert_eq!(run(&["help", "load", "sweep"]).stdout, run(&["load", "sweep", "--help"]).stdout);
}

#[test]
fn no_subcommand_is_a_usage_error() {
    let finished = run(&[]);
    assert_refusal(&finished, 2, "serve");
}

#[test]
fn an_unknown_flag_names_the_nearest() {
    assert_refusal(&run(&["serve", "--lissten", "127.0.0.1:0"]), 2, "--listen");
    assert_refusal(&run(&["serve", "--encoding", "br"]), 2, "--encodings");
    assert_refusal(&run(&["serve", "--keepalive", "5s"]), 2, "--keep-alive");
    assert_refusal(&run(&["sevre"]), 2, "serve");
    assert_refusal(&run(&["serve", "--port", "8000"]), 2, "--listen 8000");
    assert_refusal(&run(&["serve", "-p", "8000"]), 2, "--listen 8000");
}

#[test]
fn bad_values_are_usage_errors_that_name_the_flag() {
    let table = [
        ("--cache-size", "12XB"),
        ("--cache-size", "-1"),
        ("--cache-size", "99999999999999999999GiB"),
        ("--cache-size", ""),
        ("--keep-alive", "15parsecs"),
        ("--keep-alive", "s"),
        ("--header-timeout", "-1s"),
        ("--send-timeout", "1e9999s"),
        ("--workers", "none"),
        ("--workers", "0"),
        ("--max-connections", "many"),
        ("--cpus", "a-b"),
        ("--cpus", "3-1"),
        ("--io", "quantum"),
        ("--listing", "maybe"),
        ("--encodings", "rot13"),
        ("--listen", "127.0.0.1:99999"),
        ("--listen", "nowhere"),
    ];
    for (flag, value) in table {
        let finished = run(&["serve", &format!("{flag}={value}")]);
        assert_refusal(&finished, 2, flag);
    }
}

#[test]
fn a_missing_directory_is_named() {
    let finished = run(&["serve", "no/such/folder", "--listen", "127.0.0.1:0"]);
    assert_refusal(&finished, 1, "no/such/folder");
}

#[test]
fn a_file_is_no_directory() {
    let tree = Tree::with(&[]).expect("a tree");
    let path = tree.root().join("a.txt");
    let finished = finish(serve(&path).args(["--io", "epoll"]));
    assert_refusal(&finished, 1, "a.txt");
}

#[test]
fn a_busy_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let tree = Tree::with(&[]).expect("a tree");
    let mut command = Command::new(binary());
    let finished = finish(command.arg("serve").arg(tree.root()).args(["--listen", &address]));
    assert_refusal(&finished, 1, &address);
}

/// Workers share a port among themselves (SO_REUSEPORT): a second server must not slip in beside the first.
#[test]
fn a_port_of_another_staunch_is_busy() {
    let tree = Tree::with(&[]).expect("a tree");
    let first = server_of(&tree, &[]);
    let address = first.address().to_string();
    let mut command = Command::new(binary());
    let finished = finish(command.arg("serve").arg(tree.root()).args(["--listen", &address]));
    assert_refusal(&finished, 1, &address);
}

#[test]
fn an_address_of_another_machine_is_named() {
    let tree = Tree::with(&[]).expect("a tree");
    let mut command = Command::new(binary());
    let finished = finish(command.arg("serve").arg(tree.root()).args(["--listen", "192.0.2.1:8080"]));
    assert_refusal(&finished, 1, "192.0.2.1:8080");
}

#[test]
fn a_missing_privilege_is_named() {
    let first_free = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    if first_free.is_ok_and(|port| port.trim().parse::<u16>().is_ok_and(|port| port <= 81)) {
        println!("skipped: every port is free for everybody here");
        return;
    }
    if !is_installed("setpriv") {
        return;
    }
    let tree = Tree::with(&[]).expect("a tree");
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    }
    command.args(["--bounding-set", "-all", "--inh-caps", "-all"]);
    command.arg(binary()).arg("serve").arg(tree.root()).args(["--listen", "127.0.0.1:81"]);
    assert_refusal(&finish(&mut command), 1, "81");
}

#[test]
fn a_folder_that_may_not_be_read_is_named() {
    if !rustix::process::geteuid().is_root() || !is_installed("setpriv") {
        println!("skipped: this needs another user to be");
        return;
    }
    let tree = Tree::with(&[]).expect("a tree");
    let root = tree.root().to_str().expect("a path of text");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(root, closed).expect("our own folder");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(binary()).arg("serve").arg(root).args(["--listen", "127.0.0.1:0"]);
    assert_refusal(&finish(&mut command), 1, root);
}

#[test]
fn the_start_up_block_says_what_runs() {
    let tree = Tree::with(&[]).expect("a tree");
    for (io, word) in [("epoll", "epoll"), ("uring", "uring")] {
        let output = start_up_block(&tree, io);
        for expected in [word, "worker", "connections", "content"] {
            assert!(output.contains(expected), "`{expected}` is not in the start-up block:\n{output}");
        }
    }
}

/// The block, and what a folder without index page answers, told where a folder is named, where nothing is,
/// and where a file is.
#[test]
fn folders_are_listed_without_a_file_and_the_block_says_so() {
    let tree = Tree::with(&[]).expect("a tree");
    let bare = tree.root().join("bare-of-index");
    std::fs::create_dir(&bare).expect("our own folder");
    let file = tree.root().with_file_name("staunch.toml");
    std::fs::write(&file, format!("root = {:?}\n", tree.root())).expect("our own file");
    let on = "  listing      on: folders without an index page are listed (--listing off)";
    let off = "  listing      off: folders without index.html answer 403 (listing = true)";
    let off_by_flag = "  listing      off: folders without index.html answer 403 (--listing on)";
    let mut alone = Command::new(binary());
    alone.args(["serve", "--listen", "127.0.0.1:0", "--workers", "1"]).current_dir(tree.root());
    for (command, line, status) in [
        (&mut serve(tree.root()), on, 200),
        (&mut alone, on, 200),
        (serve(tree.root()).args(["--listing", "off"]), off_by_flag, 403),
        (&mut serve_by(&file), off, 403),
    ] {
        let server = Server::spawn(command).unwrap_or_else(|said| panic!("{said}"));
        let said = block(&server);
        assert!(said.lines().any(|other| other == line), "{line}\n{said}");
        let answer = crate::outside::get(server.address(), "/bare-of-index/").expect("an answer");
        assert_eq!(answer.status, status, "{said}");
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        let why = body.contains("This folder has no index page, and listings are off.");
        assert_eq!(why, status == 403, "{body}");
    }
}

/// A port alone is opened for IPv4 and IPv6, and the block names addresses one can open.
#[test]
fn a_port_alone_is_opened_for_everybody() {
    let tree = Tree::with(&[]).expect("a tree");
    for io in ["epoll", "uring"] {
        let listen = reserved_address().port().to_string();
        let mut command = Command::new(binary());
        command.arg("serve").arg(tree.root()).args(["--workers", "1", "--io", io, "--listen", &listen]);
        let server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
        let port = server.address().port();
        let said = block(&server);
        assert!(server.address().ip().is_loopback(), "an address that can be opened: {}", server.address());
        let second = format!("listening on http://[::1]:{port}/ (every IPv6 address: open to the network)");
        assert!(said.lines().any(|line| line == second), "{second}\n{said}");
        for address in [format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
            let answer = crate::outside::get(address.parse().expect("an address"), "/a.txt");
            assert_eq!(answer.expect("an answer").body, b"hello, world\n", "{address}");
        }
    }
}

/// Where the kernel has no IPv6, a port alone is IPv4's, and the server says so.
#[test]
fn without_ipv6_a_port_alone_is_served_all_the_same() {
    if !is_installed("strace") {
        return;
    }
    let tree = Tree::with(&[]).expect("a tree");
    let free = reserved_address();
    let log = tree.root().with_file_name("said");
    let trace = tree.root().with_file_name("trace");
    let mut command = Command::new("strace");
    // The first socket of the program is the one by which it asks for IPv6.
    // -D: the server is our child, and ends with the test.
    command.args(["-D", "-e", "trace=socket", "-e", "inject=socket:error=EAFNOSUPPORT:when=1", "-o"]);
    command.arg(&trace);
    command.arg(binary()).arg("serve").arg(tree.root()).args(["--io", "epoll", "--sandbox", "off"]);
    command.args(["--listen", &free.port().to_string(), "--error-log"]).arg(&log);
    let server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
    let answer = crate::outside::get(server.address(), "/a.txt").expect("an answer");
    assert_eq!(answer.body, b"hello, world\n");
    staunch_tests::house::waiting::until("it says so", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("this kernel has no IPv6"))
    });
    let traced = std::fs::read_to_string(&trace).expect("what strace saw");
    assert!(traced.contains("(INJECTED)"), "{traced}");
}

#[test]
fn every_site_stands_in_the_block() {
    let tree = Tree::with(&[]).expect("a tree");
    let file = tree.root().with_file_name("staunch.toml");
    let (first, second) = (tree.root(), tree.root().join("second"));
    std::fs::create_dir(&second).expect("our own folder");
    let text = format!(
        "[[site]]\nhosts = ['a.example', 'www.a.example']\nroot = {first:?}\n\
         [[site]]\nhosts = ['b.example']\nroot = {second:?}\n"
    );
    std::fs::write(&file, text).expect("our own file");
    let server = Server::spawn(&mut serve_by(&file)).unwrap_or_else(|said| panic!("{said}"));
    let said = block(&server);
    for line in [
        format!("  site         a.example, www.a.example and every other host: {}", first.display()),
        format!("  site         b.example: {}", second.display()),
    ] {
        assert!(said.lines().any(|other| other == line), "{line}\n{said}");
    }
}

/// The lines of the block behind the address, to its last one.
fn block(server: &Server) -> String {
    let mut said = String::new();
    staunch_tests::house::waiting::until("the start-up block ends", || {
        said.extend(server.said().into_iter().map(|line| line + "\n"));
        said.contains("  content  ")
    });
    said
}

fn start_up_block(tree: &Tree, io: &str) -> String {
    let server = Server::start(tree.root(), &["--io", io]).unwrap_or_else(|said| panic!("{said}"));
    block(&server)
}

#[test]
fn several_addresses_and_workers() {
    let tree = Tree::with(&[]).expect("a tree");
    let mut command = Command::new(binary());
    command.arg("serve").arg(tree.root());
    command.args(["--listen", "127.0.0.1:0", "--listen", "[::1]:0", "--workers", "2"]);
    let server = Server::spawn(&mut command).unwrap_or_else(|said| panic!("{said}"));
    let response = crate::outside::get(server.address(), "/a.txt").expect("an answer");
    assert_eq!(response.body, b"hello, world\n");
    let mut second = None;
    staunch_tests::house::waiting::until("the second address is said", || {
        second = second.or_else(|| server.said().iter().find_map(|line| address_in(line)));
        second.is_some()
    });
    let response = crate::outside::get(second.expect("an address"), "/a.txt").expect("an answer");
    assert_eq!(response.body, b"hello, world\n");
}

#[test]
fn a_flood_that_would_leave_is_refused_in_a_sentence() {
    for (interface, to, said) in [
        ("lo", "192.0.2.1:80", "loopback addresses only"),
        ("nosuchlink", "192.0.2.1:80", "nosuchlink"),
        ("lo", "127.0.0.1:0", "port 0"),
    ] {
        let finished = run(&["load", "flood", "--interface", interface, "--to", to]);
        assert_refusal(&finished, 1, said);
    }
    let public = ["load", "flood", "--interface", "lo", "--to", "127.0.0.1:80", "--from", "8.8.8.0/24"];
    assert_refusal(&run(&public), 2, "must be private addresses");
}
