//! The engine alone: every request gets the same prepared 5 000 bytes. For measuring what engine and session
//! cost.
//!
//! `fixed 127.0.0.1:8081 epoll|uring`

use std::sync::Arc;

use staunch_engine::{
    Answer, Answered, ClientPolicy, Engine, Handler, IoChoice, Pressure, Settings, notice_on_standard_error,
};
use staunch_protocol::{Request, Status, Timeouts};

struct Fixed {
    block: Arc<[u8]>,
    fields_bytes: usize,
}

impl Handler for Fixed {
    type Mail = ();

    fn handle(&mut self, _: &Request<'_>, answer: Answer<'_>) -> Answered {
        answer.block(Status::OK, &self.block, self.fields_bytes)
    }

    fn resume(&mut self, (): (), request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.handle(request, answer)
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8081".into());
    let io = match arguments.next().as_deref() {
        Some("epoll") => IoChoice::Epoll,
        Some("uring") => IoChoice::Uring,
        _ => IoChoice::Auto,
    };
    let engine = Engine::<()>::bind(Settings {
        socket_mode: 0o666,
        listen: vec![address.parse().expect("an address")],
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
    let fields = b"Content-Type: text/plain\r\nContent-Length: 5000\r\n";
    let block: Arc<[u8]> = [&fields[..], &[b'x'; 5000]].concat().into();
    println!("listening on http://{}: {:?}", engine.addresses()[0], engine.backend());
    let end = engine.run(|_| Fixed { block: Arc::clone(&block), fields_bytes: fields.len() });
    end.expect("workers that do not fail");
}
