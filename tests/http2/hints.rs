//! Early hints (103, RFC 8297): links that a client hears of while its answer is still made, and who hears of
//! none.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use staunch_tests::house::waiting::HANG;

use crate::client::{Client, get, request};
use crate::world::{ENGINES, World, say};

const STYLE: &str = "</app.css>; rel=preload; as=style";

/// The hash of somebody's password.
const HASH: &str = "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW";

/// An application whose answers wait until the test says so.
pub(crate) struct Application {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Receiver<()>,
    pub(crate) go: Sender<()>,
}

fn serve(mut stream: TcpStream, answer: &str, asked: &Sender<()>, gate: &Receiver<()>) {
    stream.set_read_timeout(Some(HANG)).expect("an open socket");
    let (mut head, mut byte) = (Vec::new(), [0]);
    loop {
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return;
        }
        head.push(byte[0]);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        head.clear();
        // The test may be over.
        let _ = asked.send(());
        if gate.recv_timeout(HANG).is_err() {
            return;
        }
        let _ = stream.write_all(answer.as_bytes());
    }
}

impl Application {
    /// With this page, of this type.
    pub(crate) fn new(kind: &str, body: &str) -> Self {
        let fields = format!("Content-Type: {kind}\r\nContent-Length: {}", body.len());
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let ((tell, asked), (go, gate)) = (channel(), channel());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &answer, &tell, &gate);
            }
        });
        Self { address, asked, go }
    }
}

#[test]
fn a_rule_names_links_for_what_an_application_answers() {
    for io in ENGINES {
        let application = Application::new("text/plain", "page");
        let settings = format!(
            "[[path]]\nmatch = \"/app*\"\nproxy = \"{}\"\nearly_hints = [\"{STYLE}\", \"<https://cdn.example>; rel=preconnect\"]\n\
             [[path]]\nmatch = \"/app/off*\"\nearly_hints = \"off\"\n",
            application.address
        );
        let world = World::with_settings(io, &settings, &[]);
        let mut client = Client::new(world.address());
        for (stream, fields) in [(1, &[][..]), (3, &[("sec-fetch-mode", "navigate")])] {
            client.send(&request(stream, true, "GET", "/app/page", fields));
            client.until(stream, |reply| reply.status > 0);
            let hints = client.heard(stream);
            let links: Vec<&str> =
                hints.fields.iter().filter(|(name, _)| name == "link").map(|(_, value)| &value[..]).collect();
            assert_eq!((hints.status, hints.is_whole), (103, false), "{io}: {hints:?}");
            assert_eq!(links, [STYLE, "<https://cdn.example>; rel=preconnect"], "{io}");
            application.asked.recv_timeout(HANG).expect("a request");
            application.go.send(()).expect("an application");
            let reply = client.reply(stream);
            assert_eq!(
                (reply.status, &reply.body[..], &reply.interim[..]),
                (200, &b"page"[..], &[103][..]),
                "{io}"
            );
            assert_eq!(reply.field("link"), None, "{io}: the answer is the application's");
        }
        type Asked<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);
        let none: [Asked<'_>; 4] = [
            ("GET", "/app/page", &[("sec-fetch-mode", "cors")]),
            ("HEAD", "/app/page", &[]),
            ("POST", "/app/page", &[]),
            ("GET", "/app/off", &[]),
        ];
        for ((method, path, fields), stream) in none.into_iter().zip((5..).step_by(2)) {
            client.send(&request(stream, true, method, path, fields));
            application.go.send(()).expect("an application");
            let reply = client.reply(stream);
            assert_eq!(
                (reply.status, &reply.interim[..]),
                (200, &[][..]),
                "{io}: {method} {path} {fields:?}"
            );
        }
        application.go.send(()).expect("an application");
        let by_http1 =
            say(world.address(), b"GET /app/page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert!(by_http1.starts_with(b"HTTP/1.1 200 "), "{io}: {}", String::from_utf8_lossy(&by_http1));
    }
}

/// A page that has to be read first tells of links that its own field will have; one that is held does not.
#[test]
fn links_of_a_page_are_told_while_it_is_read() {
    let settings = format!(
        "[[path]]\nmatch = \"*.html\"\nheaders = {{ Link = \"{STYLE}, </next>; rel=next\" }}\n\
         [[path]]\nmatch = \"/sub/*\"\nheaders = {{ Link = \"{STYLE}\" }}\n\
         basic_auth = {{ users = {{ anna = \"{HASH}\" }} }}\n"
    );
    for io in ENGINES {
        let world = World::with_settings(io, &settings, &["--cache-size", "64KiB"]);
        for (name, bytes) in [("one.html", 50_000), ("two.html", 60_000)] {
            std::fs::write(world.tree.root().join(name), vec![b'x'; bytes]).expect("a file of ours");
        }
        let mut client = Client::new(world.address());
        // The two are not held at a time.
        let mut told = 0;
        for (path, stream) in ["/one.html", "/two.html"].into_iter().cycle().take(8).zip((1..).step_by(2)) {
            client.send(&get(stream, path));
            client.until(stream, |reply| reply.status > 0);
            let first = client.heard(stream);
            let reply = client.reply(stream);
            assert_eq!((reply.status, reply.body.len() >= 50_000), (200, true), "{io}");
            assert_eq!(reply.field("link"), Some(&format!("{STYLE}, </next>; rel=next")[..]), "{io}");
            assert!(matches!(reply.interim[..], [] | [103]), "{io}: {reply:?}");
            if first.status == 103 {
                assert_eq!(first.field("link"), Some(STYLE), "{io}");
                told += 1;
            }
        }
        assert!(told > 0, "{io}: one of them was read again");
        let refused = client.get(101, "/sub/index.html");
        assert_eq!((refused.status, &refused.interim[..]), (401, &[][..]), "{io}");
    }
}
