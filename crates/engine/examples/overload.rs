//! An application that costs processor time: for rehearsing what happens when more is asked than can be done.
//!
//! `overload 127.0.0.1:8082 epoll|uring WORK_US PATIENCE_MS|off [MAX_CONNECTIONS]`, and once a second a
//! line of what was done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use staunch_engine::{
    Answer, Answered, ClientPolicy, Engine, Handler, IoChoice, Pressure, Settings, Stats,
    notice_on_standard_error,
};
use staunch_netio::clock;
use staunch_protocol::{Request, Status, Timeouts};

struct Burner {
    work_ns: u64,
    /// Processor time this worker has used, for the report.
    busy_ns: Arc<AtomicU64>,
}

impl Handler for Burner {
    type Mail = ();

    fn handle(&mut self, _: &Request<'_>, answer: Answer<'_>) -> Answered {
        let until_ns = clock::thread_busy_ns() + self.work_ns;
        while clock::thread_busy_ns() < until_ns {}
        self.busy_ns.store(until_ns, Ordering::Relaxed);
        answer.bytes(Status::OK, b"Content-Length: 5\r\n", b"done\n")
    }

    fn resume(&mut self, (): (), request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.handle(request, answer)
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = |otherwise: &str| arguments.next().unwrap_or_else(|| otherwise.into());
    let listen = next("127.0.0.1:8082").parse().expect("an address");
    let io = match next("auto").as_str() {
        "epoll" => IoChoice::Epoll,
        "uring" => IoChoice::Uring,
        _ => IoChoice::Auto,
    };
    let work_ns = next("300").parse::<u64>().expect("microseconds") * 1_000;
    let engine = Engine::<()>::bind(Settings {
        socket_mode: 0o666,
        listen: vec![listen],
        workers: vec![None],
        io,
        pressure: Pressure { patience_ms: next("1000").parse().ok(), ..Pressure::default() },
        connections_max: next("auto").parse().ok(),
        upstream_descriptors: 0,
        tls: None,
        memory_budget_bytes: None,
        http2: true,
        timeouts: Timeouts::default(),
        clients: ClientPolicy::default(),
        notice: notice_on_standard_error(),
    })
    .expect("a free address");
    println!("listening on http://{}: {:?}", engine.addresses()[0], engine.backend());
    let stats = engine.stats();
    let busy_ns = Arc::<AtomicU64>::default();
    let seen = Arc::clone(&busy_ns);
    std::thread::spawn(move || report(&stats[0], work_ns, &seen));
    let error = engine.run(|_| Burner { work_ns, busy_ns: Arc::clone(&busy_ns) });
    eprintln!("{}", error.expect_err("runs until it fails"));
}

fn report(stats: &Stats, work_ns: u64, busy_ns: &AtomicU64) {
    let read = || {
        [
            ("accepted", stats.connections.accepted.get()),
            ("open", stats.connections.accepted.get() - stats.connections.closed.get()),
            ("answered", stats.requests.answered.get()),
            ("late", stats.pressure.shed_patience.get()),
            ("full", stats.pressure.shed_full.get()),
            ("evicted", stats.pressure.evicted_idle.get()),
            ("stops", stats.pressure.accept_stops.get()),
            ("pauses", stats.pressure.accept_pauses.get()),
            ("newcomers stopped", stats.pressure.newcomers_stopped.get()),
            ("turns", stats.turns.count.get()),
            ("busy us", busy_ns.load(Ordering::Relaxed) / 1_000),
        ]
    };
    let mut before = read();
    loop {
        clock::pause(Duration::from_secs(1));
        let now = read();
        let words = now.iter().zip(before).map(|((name, now), (_, before))| match *name {
            "open" => format!("open {now}"),
            name => format!("{name} {}", now - before),
        });
        let (answered, busy_us) = (now[2].1 - before[2].1, now[10].1 - before[10].1);
        let useful = answered * work_ns / 10 / busy_us.max(1);
        println!("{}, useful {useful} %", words.collect::<Vec<_>>().join(", "));
        before = now;
    }
}
