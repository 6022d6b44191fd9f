//! Limits and odd requests: what is refused is told by its status and by the setting that it meets.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, connect as connect_to, socket};
use rustix::process::Signal;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{binary, write_program};

use crate::line::Line;
use crate::restart::metric;
use crate::socket::{TestSocket, handshake_on, upgrade_lines};
use crate::store::Store;
use crate::world::{ENGINES, Events, PATIENCE, TOKEN, World, ask, ask_host, connect, publisher};

#[test]
fn a_batch_is_bounded_in_lines_and_bytes() {
    for io in ENGINES {
        let world = World::new(io, &[]);
        let lines = publisher("application/x-ndjson");
        let batch = |count| "{\"topic\":\"a\"}\n".repeat(count);
        let most = world.ask("POST", "/publish?quiet", &lines, batch(10_000).as_bytes());
        assert_eq!(most.status, 200, "{io}: {most:?}");
        let more = world.ask("POST", "/publish?quiet", &lines, batch(10_001).as_bytes());
        assert_eq!(more.status, 413, "{io}: {more:?}");
        // Where the length is told, the answer comes before the body.
        let mut stream = connect(world.address());
        let head =
            format!("POST /publish?quiet HTTP/1.1\r\nHost: a\r\nContent-Length: 8388609\r\n{lines}\r\n");
        stream.write_all(head.as_bytes()).expect("a server that reads");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 413", "{io}");
    }
}

#[test]
fn names_and_expectations_that_cannot_be_are_refused() {
    let world = World::new("epoll", &[]);
    let put = |length| {
        let path = format!("/topics/{}", "x".repeat(length));
        world.ask("PUT", &path, &publisher("text/plain"), b"1")
    };
    assert_eq!(put(256).status, 200);
    let refused = put(257);
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.text().contains("a topic's name"), "{refused:?}");
    let lines = format!("{}Expect: something\r\n", publisher("application/json"));
    assert_eq!(world.ask("POST", "/publish", &lines, br#"{"topic":"a"}"#).status, 417);
}

#[test]
fn full_memory_is_named_and_what_is_there_goes_on() {
    for io in ENGINES {
        let world = World::new(io, &["--live-memory", "64KiB"]);
        let put = |topic: &str, count: usize| {
            let path = format!("/topics/{topic}");
            world.ask("PUT", &path, &publisher("text/plain"), &vec![b'x'; count])
        };
        let mut count = 0;
        let refused = loop {
            let answer = put(&format!("t{count}"), 8000);
            if answer.status != 200 {
                break answer;
            }
            count += 1;
        };
        assert!((4..9).contains(&count), "{io}: {count}");
        assert_eq!(refused.status, 503, "{io}: {refused:?}");
        assert!(refused.text().contains("values fill what `live_memory` allows"), "{refused:?}");
        assert_eq!(put("t0", 8000).status, 200, "{io}: no longer than the one before");
        let mut events = world.read("topic=t1&plain=1", "");
        assert_eq!(events.data().len(), 8000, "{io}");
    }
}

#[test]
fn a_file_that_an_endpoint_hides_is_named() {
    let world = World::of_file(&binary(), "epoll", &[], |root| {
        std::fs::write(format!("{root}/events"), "a file").expect("a file of ours");
        format!("root = \"{root}\"\nlive = true\npublish_token = \"{TOKEN}\"\n")
    });
    let world = world.unwrap_or_else(|fault| panic!("{fault}"));
    let mut said = Vec::new();
    until("it is said", || {
        said.extend(world.server.said());
        said.iter().any(|line| line.contains("/events is an endpoint, the file of that name is not served"))
    });
    assert_eq!(world.ask("GET", "/events", "", b"").status, 400, "the endpoint answers");
}

#[test]
fn a_body_that_comes_too_slowly_publishes_nothing() {
    for io in ENGINES {
        let world = World::new(io, &["--body-timeout", "1s"]);
        let lines = publisher("application/json");
        for (method, path) in [("PUT", "/topics/a"), ("POST", "/publish")] {
            let mut stream = connect(world.address());
            let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n{lines}\r\n");
            stream.write_all(head.as_bytes()).expect("a server that reads");
            stream.write_all(br#"{"topic":"a"}"#).expect("a server that reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer, and an end");
            assert!(answer.starts_with("HTTP/1.1 408 "), "{io}: {answer}");
            assert_eq!(world.ask("GET", "/live/a", "", b"").status, 404, "{io}");
        }
    }
}

/// Publications wait while a new program has begun and does not serve; as many as the queue takes.
#[test]
fn a_full_queue_is_told_and_what_waits_in_it_is_published() {
    let folder = Store::new();
    let [program, begun, go, new] = ["server", "begun", "go", "new"].map(|name| folder.path().join(name));
    write_program(&program, &std::fs::read(binary()).expect("the program"), 0o755);
    // A busy machine may take longer to read so many lines than requests have patience.
    let arguments = ["--sandbox", "off", "--admin", "127.0.0.1:0", "--patience", "off"];
    let line = Line::begin(&program, "epoll", "memory", &arguments);
    let script = format!(
        "#!/bin/sh\n: > {}\nwhile [ ! -e {} ]; do sleep 0.01; done\nexit 7\n",
        begun.display(),
        go.display()
    );
    write_program(&new, script.as_bytes(), 0o755);
    std::fs::rename(&new, &program).expect("a replacement");
    line.signal();
    until("the program has begun", || begun.exists());
    let batch = "{\"topic\":\"a\"}\n".repeat(10_000);
    let (address, admin) = (line.world.address(), line.world.server.admin_address());
    let ask = |body: &str| {
        ask(address, "POST", "/publish?quiet", &publisher("application/x-ndjson"), body.as_bytes())
    };
    std::thread::scope(|scope| {
        let waiting = [(); 7].map(|()| scope.spawn(|| ask(&batch)));
        until("the queue is full", || metric(admin, "staunch_live_queue_updates") >= 65_536);
        let refused = ask(&batch);
        assert_eq!((refused.status, refused.field("retry-after")), (503, Some("1")), "{refused:?}");
        assert!(refused.text().contains("too many updates wait to be published"), "{refused:?}");
        std::fs::write(&go, "").expect("a file of ours");
        let published = waiting.map(|waiting| waiting.join().expect("an answer").status);
        assert_eq!(published, [200; 7]);
    });
}

/// What the workers of a server hold for their peers, by its own account.
fn held_bytes(admin: SocketAddr) -> u64 {
    let text = ask_host(&admin.to_string(), admin, "GET", "/metrics", "", b"").text();
    let values = text.lines().filter_map(|line| line.strip_prefix("staunch_memory_held_bytes{"));
    values.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[test]
fn readers_at_rest_hold_nothing() {
    const READERS: usize = 60;
    for io in ENGINES {
        let world = World::new(io, &["--admin", "127.0.0.1:0"]);
        let admin = world.server.admin_address();
        world.put("a", "0");
        let long = format!("X-Long: {}\r\n", "x".repeat(4000));
        let query = |number: usize| ["topic=a&plain=1", "topic=*&plain=1"][number % 2];
        let mut readers: Vec<_> = (0..READERS).map(|number| world.read(query(number), &long)).collect();
        let old = [(); 2].map(|()| {
            let mut stream = connect(world.address());
            stream.write_all(b"GET /events?topic=a HTTP/1.0\r\n\r\n").expect("a server that reads");
            stream
        });
        for update in 0..3 {
            readers.iter_mut().for_each(|reader| assert_eq!(reader.data(), update.to_string(), "{io}"));
            until("they hold nothing", || held_bytes(admin) == 0);
            world.put("a", &(update + 1).to_string());
        }
        assert!(world.has_readers("a", READERS as u64 + 2));
        drop((readers, old));
        until("they are gone", || world.has_readers("a", 0));
    }
}

/// Of what a reader asked that rested when the log was switched on, the log says nothing; it says the rest.
#[test]
fn a_log_switched_on_tells_little_of_readers_at_rest() {
    for io in ENGINES {
        let line = Line::begin(&binary(), io, "memory", &["--sandbox", "off", "--admin", "127.0.0.1:0"]);
        let (world, log) = (&line.world, line.store.path().join("log"));
        let admin = world.server.admin_address();
        let early = world.read("topic=a&plain=1&early", "").begin();
        until("it rests", || held_bytes(admin) == 0);
        let settings = std::fs::read_to_string(world.settings_file()).expect("a file of ours");
        let logged = format!("access_log = {log:?}\naccess_log_format = \"combined\"\n{settings}");
        std::fs::write(world.settings_file(), logged).expect("a file of ours");
        world.signal(Signal::HUP);
        let said = "the access log tells nothing of what readers at rest have asked, up to 1";
        until("it is said", || line.said().contains(said));
        let lines = |part: &str| {
            let text = std::fs::read_to_string(&log).expect("a log");
            text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect::<Vec<_>>()
        };
        let late = world.read("topic=a&plain=1&late", "User-Agent: me\r\n").begin();
        drop((early, late));
        until("each has its line", || lines("\"-\" 200 ").len() + lines("&late").len() == 2);
        let (little, all) = (lines("\"-\" 200 "), lines("&late"));
        assert!(little[0].ends_with(" \"-\" \"-\""), "{little:?}");
        let asked = "\"GET /events?topic=a&plain=1&late HTTP/1.1\" 200 ";
        assert!(all[0].contains(asked) && all[0].ends_with(" \"me\""), "{all:?}");
    }
}

/// A connection whose own side takes little.
fn connect_narrow(address: SocketAddr) -> TcpStream {
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    set_socket_recv_buffer_size(&stream, 4096).expect("a socket");
    connect_to(&stream, &address).expect("a server");
    let stream = TcpStream::from(stream);
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Publishes until nothing more is delivered to the only reader; gives how many updates.
fn publish_until_it_stands(world: &World, admin: SocketAddr, value: impl Fn(u32) -> String) -> u32 {
    let counts =
        || ["staunch_live_deliveries_total", "staunch_live_passed_by_total"].map(|name| metric(admin, name));
    let (mut last, mut before, mut in_vain) = (0, counts(), 0);
    while in_vain < 20 {
        last += 1;
        assert!(last < 10_000, "the reader takes everything, or is gone");
        world.put("a", &value(last));
        let now = counts();
        let is_passed_by = now[1] > before[1];
        in_vain = if now[0] > before[0] { 0 } else { in_vain + u32::from(is_passed_by) };
        before = now;
    }
    last
}

/// The slices of a delivery are in the accounts of those who have not taken it, each with its share.
#[test]
fn what_readers_do_not_take_is_in_their_accounts() {
    const VALUE_BYTES: u64 = 600_000;
    for io in ENGINES {
        let world = World::new(
            io,
            &["--admin", "127.0.0.1:0", "--live-value-size", "1MiB", "--send-timeout", "10min"],
        );
        let admin = world.server.admin_address();
        let read = || {
            let mut stream = connect_narrow(world.address());
            stream.write_all(b"GET /events?topic=a&plain=1 HTTP/1.1\r\nHost: a\r\n\r\n").expect("a server");
            Events::new(stream).begin()
        };
        // Each of the two workers shares out what stands before its own.
        let holds = |least: u64, most: u64| {
            let bounds = VALUE_BYTES * least / 10 * 9..VALUE_BYTES * most / 10 * 11 + 64 * 1024;
            bounds.contains(&held_bytes(admin))
        };
        let value = |letter: &str| letter.repeat(VALUE_BYTES as usize);
        world.put("a", &value("x"));
        let mut left = read();
        let others = [(); 3].map(|()| read());
        until("they stand before one value", || holds(1, 2));
        world.put("a", &value("y"));
        let late = read();
        until("a further one stands before another", || holds(2, 3));
        drop((others, late));
        until("who is left has it all", || holds(1, 1));
        assert_eq!(left.data().len() as u64, VALUE_BYTES, "{io}");
        assert!(left.data() == value("y"), "{io}");
        until("what was taken is held no more", || held_bytes(admin) < VALUE_BYTES / 10);
    }
}

/// Publishes until nothing more goes to a reader that is there and does not read, then reads. What it did not
/// take stands in the kernel: it gets that, and then the last value alone. So the kernel's part is counted by
/// what comes before.
fn assert_little_in_the_kernel(what: &str, world: &World, mut next: impl FnMut() -> String) {
    const UPDATE_BYTES: usize = 1000;
    const KERNEL_BYTES_MAX: usize = 64 * 1024;
    let value = |number: u32| format!("{number:0UPDATE_BYTES$}");
    let last = publish_until_it_stands(world, world.server.admin_address(), value);
    let (mut taken, mut before) = (0, 0);
    while before < last {
        let number: u32 = next().parse().expect("a number");
        assert!(number > before, "{what}: {number} came after {before}");
        before = number;
        taken += 1;
    }
    let bytes = taken as usize * UPDATE_BYTES;
    assert!(bytes < KERNEL_BYTES_MAX, "{what}: {taken} of {last} updates were on their way");
}

#[test]
fn who_stops_reading_holds_little_in_the_kernel() {
    for io in ENGINES {
        let world = World::new(io, &["--admin", "127.0.0.1:0"]);
        let mut stream = connect_narrow(world.address());
        stream.write_all(b"GET /events?topic=a&plain=1 HTTP/1.1\r\nHost: a\r\n\r\n").expect("a server");
        let mut events = Events::new(stream).begin();
        assert_little_in_the_kernel(io, &world, || events.data());
    }
}

#[test]
fn a_websocket_that_is_not_read_holds_little_in_the_kernel() {
    for io in ENGINES {
        let world = World::new(io, &["--admin", "127.0.0.1:0"]);
        let stream = connect_narrow(world.address());
        let line = "GET /connection/websocket HTTP/1.1";
        let (stream, head, rest) = handshake_on(stream, line, &upgrade_lines());
        assert!(rest.is_empty() && head.starts_with("HTTP/1.1 101 "), "{head}");
        let mut socket = TestSocket::of(stream, head);
        socket.ask("\"connect\":{}");
        socket.subscribe("a", "");
        assert_little_in_the_kernel(io, &world, || {
            let data = socket.push().1["data"].clone();
            data.as_str().expect("a text").to_owned()
        });
    }
}
