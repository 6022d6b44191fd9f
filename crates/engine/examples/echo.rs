//! The engine with exchanges that stay open, to be tried with any client.
//!
//! `echo 127.0.0.1:8081 epoll|uring [UPSTREAM...]`, then for instance
//! `curl --data-binary @FILE -H 'Transfer-Encoding: chunked' http://127.0.0.1:8081/echo` or
//! `curl -N 'http://127.0.0.1:8081/drip?every=100ms&count=50'`.

#[path = "echo/handler.rs"]
mod handler;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use handler::{Echo, Tick};
use staunch_engine::{
    ClientPolicy, Engine, IoChoice, Owner, Pressure, Settings, UpstreamTimeouts, notice_on_standard_error,
};
use staunch_protocol::Timeouts;

/// How exactly drips keep their time.
const TICK: Duration = Duration::from_millis(10);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8081".into());
    let io = match arguments.next().as_deref() {
        Some("epoll") => IoChoice::Epoll,
        Some("uring") => IoChoice::Uring,
        _ => IoChoice::Auto,
    };
    let upstreams: Vec<SocketAddr> = arguments.map(|text| text.parse().expect("an address")).collect();
    let engine = Engine::<Tick>::bind(Settings {
        listen: vec![address.parse().expect("an address")],
        socket_mode: 0o666,
        workers: vec![None],
        io,
        connections_max: None,
        upstream_descriptors: 0,
        tls: None,
        memory_budget_bytes: None,
        http2: true,
        timeouts: Timeouts::default(),
        clients: ClientPolicy::default(),
        pressure: Pressure::default(),
        notice: notice_on_standard_error(),
    })
    .expect("a free address");
    println!("listening on http://{}: {:?}", engine.addresses()[0], engine.backend());
    let (post, drips) = (engine.post(), Arc::<AtomicUsize>::default());
    let under_way = Arc::clone(&drips);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(TICK);
            if under_way.load(Relaxed) > 0 {
                (0..post.workers()).for_each(|worker| post.send_to_worker(worker, Owner::default(), Tick));
            }
        }
    });
    let timeouts = UpstreamTimeouts::default();
    let end = engine.run(|_| Echo::new(Arc::clone(&drips), None).with_upstreams(upstreams.clone(), timeouts));
    end.expect("workers that do not fail");
}
