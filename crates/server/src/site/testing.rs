//! A peer for tests: drives a real session and the site's handler, follows mail, and gives back bytes.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use staunch_engine::{
    Address, Answer, Context, Handler, Mailbox, Outbox, Outgoing, Part, Post, Stats, StreamRef,
};
use staunch_protocol::http1::{Event, Session};

use crate::content::testing::Folder;
use crate::{Front, FrontParts, Mail, SiteConfig, SitesShared};

/// Sites with running threads, one worker and one connection.
pub(crate) struct Peer {
    pub(crate) shared: Arc<SitesShared>,
    pub(crate) date: [u8; 29],
    front: Front,
    mailbox: Arc<Mailbox<Mail>>,
    rung: Arc<(Mutex<bool>, Condvar)>,
    stats: Stats,
}

/// A response taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The value of a field, if it is there exactly once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.head.lines().filter_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        });
        let value = values.next();
        assert!(values.next().is_none(), "{name} stands twice in {}", self.head);
        value
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Peer {
    pub(crate) fn new(folder: &Folder) -> Self {
        Self::with(SiteConfig { root: folder.path().to_path_buf(), ..SiteConfig::default() })
    }

    pub(crate) fn with(config: SiteConfig) -> Self {
        Self::with_sites(vec![config])
    }

    pub(crate) fn with_sites(configs: Vec<SiteConfig>) -> Self {
        let shared = SitesShared::open(configs).unwrap();
        let rung = Arc::new((Mutex::new(false), Condvar::new()));
        let signal = Arc::clone(&rung);
        let mailbox = Arc::new(Mailbox::new(Box::new(move || {
            *signal.0.lock().unwrap() = true;
            signal.1.notify_all();
        })));
        shared.start(&Post::new(vec![Arc::clone(&mailbox)])).unwrap();
        let front = Front::new(&FrontParts::of_sites(&shared), 0);
        let date = *b"Fri, 20 Nov 2026 10:00:00 GMT";
        Self { shared, date, front, mailbox, rung, stats: Stats::default() }
    }

    /// A site without threads: what waits, waits for ever.
    pub(crate) fn without_threads(config: SiteConfig) -> Self {
        let shared = SitesShared::open(vec![config]).unwrap();
        let mailbox = Arc::new(Mailbox::new(Box::new(|| {})));
        let (front, rung) = (Front::new(&FrontParts::of_sites(&shared), 0), Arc::default());
        let date = *b"Fri, 20 Nov 2026 10:00:00 GMT";
        Self { shared, date, front, mailbox, rung, stats: Stats::default() }
    }

    /// Waits until everything is prepared, as long as preparation gets on.
    pub(crate) fn settle(&self) {
        let (mut last, mut still) = (self.shared.progress(), 0);
        while !last.done {
            // Threads that encode give way to all others, so a step may take minutes on a busy machine.
            assert!(still < 120_000, "preparation stands still for ten minutes: {last:?}");
            // tidy: allow(clock): a test waits for background threads, with a bound.
            std::thread::sleep(Duration::from_millis(5));
            let now = self.shared.progress();
            still = if now == last { still + 1 } else { 0 };
            last = now;
        }
    }

    pub(crate) fn get(&mut self, target: &str) -> Response {
        self.ask("GET", target, &[])
    }

    pub(crate) fn get_with(&mut self, target: &str, fields: &[(&str, &str)]) -> Response {
        self.ask("GET", target, fields)
    }

    /// Sends one request on a new connection and reads its response.
    pub(crate) fn ask(&mut self, method: &str, target: &str, fields: &[(&str, &str)]) -> Response {
        self.ask_host("example", method, target, fields)
    }

    /// Sends a request for this name of the server on a new connection and reads its response.
    pub(crate) fn ask_host(
        &mut self,
        host: &str,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
    ) -> Response {
        parse(&self.answer(&head(host, method, target, fields), || {}))
    }

    /// Something is done as soon as the request waits for mail.
    pub(crate) fn ask_and(&mut self, host: &str, target: &str, meanwhile: impl FnMut()) -> Response {
        parse(&self.answer(&head(host, "GET", target, &[]), meanwhile))
    }

    fn answer(&mut self, head: &[u8], mut meanwhile: impl FnMut()) -> Vec<u8> {
        let mut session = Session::new(0);
        let mut outgoing = Outgoing::default();
        let address = Address { worker: 0, slot: 0, generation: 0, stream: StreamRef::ONLY };
        let mut mail: Option<Mail> = None;
        let mut input = head;
        let event = session.poll_event(&mut input, 0, &self.date, outgoing.bytes());
        let Event::Request(request) = event else { return collect(&outgoing) };
        loop {
            let outbox = Outbox::default();
            let context = Context::new(&self.stats, &self.date, self.unix_ms(), &outbox, address);
            let answer = Answer::new(&mut session, &mut outgoing, &context);
            let answered = match mail.take() {
                Some(mail) => self.front.resume(mail, &request, answer),
                None => self.front.handle(&request, answer),
            };
            if !answered.is_later() {
                break;
            }
            meanwhile();
            mail = Some(self.wait_for_mail());
        }
        collect(&outgoing)
    }

    /// Asks and goes away: the answer, unless the request has to wait for mail.
    pub(crate) fn ask_in_passing(
        &mut self,
        slot: u32,
        target: &str,
        fields: &[(&str, &str)],
    ) -> Option<Response> {
        let head = head("example", "GET", target, fields);
        let (mut session, mut outgoing) = (Session::new(0), Outgoing::default());
        let address = Address { worker: 0, slot, generation: 0, stream: StreamRef::ONLY };
        let mut input = &head[..];
        let event = session.poll_event(&mut input, 0, &self.date, outgoing.bytes());
        let Event::Request(request) = event else { panic!("no request") };
        let outbox = Outbox::default();
        let context = Context::new(&self.stats, &self.date, self.unix_ms(), &outbox, address);
        let answer = Answer::new(&mut session, &mut outgoing, &context);
        let waits = self.front.handle(&request, answer).is_later();
        (!waits).then(|| parse(&collect(&outgoing)))
    }

    fn unix_ms(&self) -> u64 {
        let date = std::str::from_utf8(&self.date).unwrap();
        let since = httpdate::parse_http_date(date).unwrap().duration_since(std::time::UNIX_EPOCH);
        since.unwrap().as_millis() as u64
    }

    fn wait_for_mail(&self) -> Mail {
        loop {
            if let Some((_, mail)) = self.mailbox.take().pop() {
                return mail;
            }
            let mut rung = self.rung.0.lock().unwrap();
            while !*rung {
                let (next, timeout) = self.rung.1.wait_timeout(rung, Duration::from_secs(20)).unwrap();
                assert!(!timeout.timed_out(), "no mail came");
                rung = next;
            }
            *rung = false;
        }
    }
}

fn head(host: &str, method: &str, target: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn collect(outgoing: &Outgoing) -> Vec<u8> {
    let (own, parts) = outgoing.contents();
    let mut bytes = Vec::new();
    let mut used = 0;
    for part in parts {
        match part {
            Part::Own(length) => {
                bytes.extend_from_slice(&own[used..used + length]);
                used += length;
            }
            Part::Shared(slice) => bytes.extend_from_slice(slice.as_bytes()),
            Part::File(part) => {
                let mut piece = vec![0; usize::try_from(part.length_bytes).unwrap()];
                let length = rustix::io::pread(&part.file, &mut piece, part.offset_bytes).unwrap();
                assert_eq!(length, piece.len());
                bytes.extend_from_slice(&piece);
            }
        }
    }
    bytes.extend_from_slice(&own[used..]);
    bytes
}

fn parse(bytes: &[u8]) -> Response {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a blank line") + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { code, head, body: bytes[end..].to_vec() }
}
