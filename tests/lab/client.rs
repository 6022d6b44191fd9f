//! The standard client: it counts exactly what came, from models and from peers that break every promise.
//!
//! It asserts no time: a patience is only there to be over.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use rustix::process::Signal;
use staunch_lab::results::ClientReport;
use staunch_lab::{MODELS, Model};
use staunch_tests::process::{Finished, binary, finish};

use crate::model::{PATIENCE, Running, tell};

const HTTP_404: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nxxxx";

fn client(port: u16, numbers: [u32; 3], flags: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(["lab", "client", "127.0.0.1", &port.to_string()]);
    command.args(numbers.map(|number| number.to_string())).args(flags);
    command
}

/// Runs it, and gives its report, whose exit code must be right.
fn report(port: u16, numbers: [u32; 3], flags: &[&str]) -> ClientReport {
    report_of(&finish(client(port, numbers, flags).args(["--json", "-"])))
}

fn report_of(finished: &Finished) -> ClientReport {
    let said = (&finished.stdout, &finished.stderr);
    let report: ClientReport =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    assert_eq!(finished.status.code(), Some(i32::from(report.failed() > 0)), "{said:?}");
    assert_eq!(finished.stderr, "");
    report
}

fn model(name: &str) -> Running {
    Running::start(Model::find(MODELS, name).expect("a model"))
}

/// What becomes of a connection.
type Deal = fn(TcpStream);

/// A peer that deals with each connection in this way.
fn peer(deal: Deal) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || listener.incoming().flatten().for_each(deal));
    port
}

/// Takes the request, answers, and closes.
fn answer(mut stream: TcpStream, text: &[u8]) {
    let _ = stream.read(&mut [0; 1000]);
    let _ = stream.write_all(text);
}

/// Lets the connection stay and says nothing.
fn keep_silent(stream: TcpStream) {
    std::mem::forget(stream);
}

#[test]
fn every_answer_is_counted() {
    for name in ["iterative", "fork", "prefork-passing", "prethread", "epoll-edge", "uring"] {
        let running = model(name);
        for flags in [
            &[][..],
            &["--threads"],
            &["--epoll"],
            &["--http"],
            &["--http", "--threads"],
            &["--http", "--epoll"],
        ] {
            let report = report(running.address().port(), [7, 30, 4000], flags);
            let counts = (report.answered, report.connections, report.bytes, &report.errors[..]);
            assert_eq!(counts, (210, 210, 840_000, &[][..]), "{name} {flags:?}");
            assert_eq!(report.child_s.len(), 7, "{name} {flags:?}");
            assert!(report.child_s.iter().all(|seconds| (0.0..=report.wall_s).contains(seconds)));
            assert!(report.usage.user_s + report.usage.system_s > 0.0, "{name} {flags:?}");
        }
        running.end("after the client");
    }
}

#[test]
fn requests_on_kept_connections() {
    for name in ["thread", "epoll-level", "staunch-epoll", "staunch-uring"] {
        let running = model(name);
        let kinds =
            [&["--keep-alive"][..], &["--keep-alive", "--http", "--threads"], &["--keep-alive", "--epoll"]];
        for flags in kinds {
            let report = report(running.address().port(), [6, 40, 10_000], flags);
            let counts = (report.answered, report.connections, &report.errors[..]);
            assert_eq!(counts, (240, 6, &[][..]), "{name} {flags:?}");
            assert!(report.bytes >= 10_000 * report.answered, "{name} {flags:?}");
        }
        running.end("after the client");
    }
}

#[test]
fn answers_of_any_size() {
    let running = model("epoll-edge");
    for bytes in [0, 1, 131_072, 16 * 1024 * 1024] {
        let kinds = [&[][..], &["--http"], &["--keep-alive"]];
        let by_epoll = [&["--epoll"][..], &["--epoll", "--http"], &["--epoll", "--keep-alive"]];
        for flags in kinds.into_iter().chain(by_epoll) {
            let report = report(running.address().port(), [2, 2, bytes], flags);
            assert_eq!((report.answered, report.bytes), (4, 4 * u64::from(bytes)), "{bytes} {flags:?}");
        }
    }
}

#[test]
fn a_crowd_of_children() {
    let running = model("thread");
    for flags in [&[][..], &["--threads"], &["--epoll"]] {
        let report = report(running.address().port(), [500, 4, 4000], flags);
        assert_eq!((report.answered, report.child_s.len(), report.failed()), (2000, 500, 0), "{flags:?}");
    }
}

/// Each kind of failure has its name, and is counted as often as it was.
#[test]
fn failures_by_kind() {
    let reset = |stream: TcpStream| {
        let _ = (&stream).read(&mut [0; 1000]);
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("an option");
    };
    let table: [(Deal, &[&str], &str, u64); 10] = [
        (|stream| answer(stream, &[b'x'; 1999]), &[], "short answer", 1999),
        (|stream| answer(stream, b""), &[], "short answer", 0),
        (|stream| answer(stream, &[b'x'; 4001]), &[], "answer too long", 4001),
        (reset, &[], "connection reset", 0),
        (|stream| answer(stream, HTTP_404.as_bytes()), &["--http"], "status 404", 4),
        (|stream| answer(stream, HTTP_404.as_bytes()), &["--keep-alive"], "status 404", 4),
        (|stream| answer(stream, &[b'x'; 4000]), &["--http"], "not HTTP", 0),
        (|stream| answer(stream, b"HTTP/1.1 200 OK\r\nContent-"), &["--http"], "short answer", 0),
        (|stream| answer(stream, b"HTTP/1.1 200 OK\r\n\r\nxx"), &["--keep-alive"], "short answer", 2),
        (
            |stream| answer(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"),
            &["--http"],
            "short answer",
            1,
        ),
    ];
    for (deal, flags, words, bytes) in table {
        for kind in [&[][..], &["--epoll"]] {
            let report = report(peer(deal), [3, 5, 4000], &[flags, kind].concat());
            assert_eq!(report.errors, [(words.to_owned(), 15)], "{flags:?} {kind:?}");
            assert_eq!((report.answered, report.connections), (0, 15), "{words} {kind:?}");
            assert_eq!(report.bytes, 15 * bytes, "{words} {kind:?}");
        }
    }
}

/// A port that is taken, at which nobody listens.
#[test]
fn nobody_listens() {
    let taken = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&taken, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
    let address: SocketAddr = getsockname(&taken).expect("an address").try_into().expect("of IPv4");
    for flags in [&[][..], &["--keep-alive"], &["--threads"], &["--epoll"], &["--epoll", "--keep-alive"]] {
        let report = report(address.port(), [5, 2000, 4000], flags);
        assert_eq!(report.errors, [("connection refused".to_owned(), 10_000)], "{flags:?}");
        assert_eq!((report.answered, report.connections, report.bytes), (0, 0, 0), "{flags:?}");
    }
}

/// A child does not hang for ever: kept waiting three times in a row it gives up, and says for how much.
#[test]
fn a_silent_peer() {
    for kind in ["--http", "--threads", "--epoll"] {
        let report = report(peer(keep_silent), [2, 50, 4000], &[kind, "--patience", "50ms"]);
        let errors = [("not tried after timing out".to_owned(), 94), ("timed out".to_owned(), 6)];
        assert_eq!((report.errors, report.connections), (errors.to_vec(), 6), "{kind}");
    }
}

#[test]
fn no_descriptor_left() {
    // A loop on each processor shares them.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    for (kind, children) in [("--threads", 60), ("--epoll", 60 * processors)] {
        let (port, count) = (peer(keep_silent).to_string(), children.to_string());
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 30; exec \"$0\" \"$@\""]).arg(binary());
        command.args(["lab", "client", "127.0.0.1", &port, &count, "1", "4000", kind, "--patience", "3s"]);
        let report = report_of(&finish(command.args(["--json", "-"])));
        assert_eq!((report.failed(), report.answered), (children as u64, 0), "{kind}");
        let errors = &report.errors;
        assert!(errors.iter().any(|(words, _)| words == "no descriptor left"), "{kind}: {errors:?}");
    }
}

/// Starts a client whose report goes to a pipe, and waits until the server has had work.
fn start(running: &Running, numbers: [u32; 3], flags: &[&str]) -> Child {
    let before_ms = running.server.processor_time_ms();
    let mut command = client(running.address().port(), numbers, flags);
    command.args(["--json", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the client");
    let start = Instant::now();
    while running.server.processor_time_ms() < before_ms + 50 {
        assert!(start.elapsed() < PATIENCE, "the server has nothing to do");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

fn report_at_the_end(child: Child) -> ClientReport {
    let output = child.wait_with_output().expect("an end");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    report_of(&Finished { status: output.status, stdout, stderr })
}

#[test]
fn a_server_that_dies_in_the_middle() {
    for flags in [&[][..], &["--keep-alive"], &["--epoll"], &["--epoll", "--keep-alive"]] {
        let running = model("epoll-edge");
        let child = start(&running, [4, 40_000, 4000], flags);
        tell(running.server.process_id(), Signal::KILL);
        let report = report_at_the_end(child);
        assert_eq!(report.answered + report.failed(), 160_000, "{flags:?}: {report:?}");
        assert!(report.answered > 0, "{flags:?}: {report:?}");
        assert_eq!(report.errors[0].0, "connection refused", "{flags:?}: {report:?}");
        assert_eq!(report.child_s.len(), 4, "{flags:?}");
    }
}

/// What was measured until then is told, and all of it was right.
#[test]
fn a_run_that_is_ended_early() {
    let running = model("epoll-edge");
    for flags in [&[][..], &["--threads"], &["--keep-alive"], &["--epoll"], &["--epoll", "--keep-alive"]] {
        let child = start(&running, [4, 4_000_000, 4000], flags);
        tell(child.id(), Signal::INT);
        let report = report_at_the_end(child);
        assert!((1..16_000_000).contains(&report.answered), "{flags:?}: {report:?}");
        assert_eq!((report.failed(), report.bytes), (0, 4000 * report.answered), "{flags:?}");
    }
}

/// Children that wait for their peer are not waited for.
#[test]
fn a_run_that_is_ended_while_nobody_answers() {
    for flags in [&[][..], &["--threads"], &["--epoll"]] {
        let mut command = client(peer(keep_silent), [3, 10, 4000], flags);
        // A shell tells it to end: the client's number is that of the shell that became it.
        let mut shell = Command::new("sh");
        shell.args(["-c", "(sleep 0.5; kill -INT $$) & exec \"$0\" \"$@\""]).arg(binary());
        shell.args(command.args(["--patience", "1h", "--json", "-"]).get_args());
        let report = report_of(&finish(&mut shell));
        assert_eq!((report.answered, report.failed(), report.connections), (0, 0, 3), "{flags:?}");
    }
}

/// A server and a client in a network of their own, where the kernel has so many ports to choose from.
const FEW_PORTS: &str = "\
    ip link set lo up && echo $1 > /proc/sys/net/ipv4/ip_local_port_range || exit 99
    \"$0\" lab serve epoll-edge --port 8080 >\"$2\" & server=$!
    shift; said=\"$1\"; shift
    until grep -q listening \"$said\"; do sleep 0.02; done
    \"$0\" lab client 127.0.0.1 8080 \"$@\" --json -; code=$?
    kill $server; wait $server; exit $code";

/// A port serves again and again, for it is the server that keeps what is left of a connection; and when
/// more are open at a time than an address has ports, others of this machine's addresses are come from.
#[test]
fn ports_do_not_run_out() {
    let said = std::env::temp_dir().join(format!("staunch-lab-ports-{}", std::process::id()));
    let run = |ports: &str, arguments: &[&str]| {
        std::fs::write(&said, "").expect("a file");
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "sh", "-c", FEW_PORTS]).arg(binary());
        finish(command.arg(ports).arg(&said).args(arguments))
    };
    let first = run("40000 40199", &["10", "200", "100"]);
    let is_made = !first.stderr.contains("unshare") && first.status.code() != Some(99);
    if !is_made {
        let continuous = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!continuous, "no network namespace may be made: {}", first.stderr);
        return println!("skipped: no network namespace may be made");
    }
    assert_eq!(report_of(&first).connections, 2000);
    let http = report_of(&run("40000 40199", &["10", "200", "100", "--http"]));
    assert_eq!((http.answered, http.connections), (2000, 2000));
    let by_epoll = report_of(&run("40000 40199", &["10", "200", "100", "--http", "--epoll"]));
    assert_eq!((by_epoll.answered, by_epoll.connections), (2000, 2000));
    for kind in ["--threads", "--epoll"] {
        let kept = report_of(&run("40000 40049", &["120", "200", "100", "--keep-alive", kind]));
        assert_eq!((kept.answered, kept.connections), (24_000, 120), "{kind}");
    }
    std::fs::remove_file(&said).expect("our file");
}

#[test]
fn words_for_people_and_a_file() {
    let running = model("poll");
    let path = std::env::temp_dir().join(format!("staunch-lab-client-{}.json", std::process::id()));
    let text_path = path.to_str().expect("text");
    let finished = finish(&mut client(running.address().port(), [3, 10, 4000], &["--json", text_path]));
    let text = std::fs::read_to_string(&path).expect("a file");
    std::fs::remove_file(&path).expect("our file");
    let report: ClientReport = serde_json::from_str(&text).expect("a report");
    assert_eq!((report.answered, report.bytes), (30, 120_000));
    assert!(finished.stdout.starts_with("answered     30 of 30\nconnections  30, "), "{}", finished.stdout);
    for title in ["bytes        120000, ", "children     fastest ", "own CPU      "] {
        assert!(finished.stdout.contains(title), "{title}: {}", finished.stdout);
    }
    let finished = finish(&mut client(peer(|stream| answer(stream, b"x")), [1, 2, 4000], &[]));
    assert!(finished.stdout.contains("failed       2 short answer\n"), "{}", finished.stdout);
    assert_eq!(finished.status.code(), Some(1));
}

#[test]
fn wrong_calls_name_the_fault() {
    let table: [(&[&str], i32, &str); 13] = [
        (&["127.0.0.1", "80", "1", "1"], 2, "BYTES"),
        (&["127.0.0.1", "0", "1", "1", "1"], 2, "PORT"),
        (&["127.0.0.1", "65536", "1", "1", "1"], 2, "PORT"),
        (&["127.0.0.1", "80", "0", "1", "1"], 2, "CHILDREN"),
        (&["127.0.0.1", "80", "20000", "1", "1"], 2, "CHILDREN"),
        (&["127.0.0.1", "80", "1", "0", "1"], 2, "LOOPS"),
        (&["127.0.0.1", "80", "2", "1000000000001", "1"], 2, "LOOPS"),
        (&["127.0.0.1", "80", "1", "1", "16777217"], 2, "BYTES"),
        (&["127.0.0.1", "80", "1", "1", "1", "--patience", "0s"], 2, "--patience"),
        (&["127.0.0.1", "80", "1", "1", "1", "--epoll", "--threads"], 2, "--threads"),
        (&["127.0.0.1", "80", "1", "1", "1", "--cpus", "4095"], 1, "processor 4095"),
        (&["127.0.0.1", "80", "1", "1", "1", "--json", "/nowhere/file"], 1, "/nowhere/file"),
        (&["no-such-name.invalid", "80", "1", "1", "1"], 1, "no-such-name.invalid"),
    ];
    for (arguments, code, word) in table {
        let finished = finish(Command::new(binary()).args(["lab", "client"]).args(arguments));
        assert_eq!(finished.status.code(), Some(code), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(word), "{arguments:?}: {}", finished.stderr);
        assert_eq!(finished.stdout, "", "{arguments:?}");
    }
}
