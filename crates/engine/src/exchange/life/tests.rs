//! The life of a request that is read, over a port that carries nothing.

use staunch_netio::Outgoing;
use staunch_protocol::http1::{Event, RequestMemory, Session};

use super::super::address::{Address, StreamRef};
use super::super::context::Context;
use super::super::outbox::Outbox;
use super::super::outlet::Outlet;
use super::super::pen::{Http1Pen, Pen};
use super::super::rendered::Rendered;
use super::*;
use crate::pressure::{Strain, Waited};
use crate::spare::Spare;
use crate::stats::Stats;

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";
const OWNER: Owner = Owner(5);

/// A handler's reply to a piece of a body, or to being woken.
#[derive(Debug, Clone, Copy)]
enum Say {
    GoOn,
    Hold,
    Take(usize),
    Answer,
    Open,
    Later,
}

/// Says one after another, and writes down what it was asked.
struct Script {
    says: std::vec::IntoIter<Say>,
    log: String,
}

impl Handler for Script {
    type Mail = ();

    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        answer.read(request).owned_by(OWNER)
    }

    fn resume(&mut self, _mail: (), _request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.log += "resume;";
        answer.later()
    }

    fn reading(&mut self, body: Option<Body<'_>>, request: &Request<'_>, reading: Reading<'_>) -> Answered {
        assert_eq!(reading.owner(), OWNER);
        self.log += &match body {
            Some(Body::Piece(piece)) => format!("+{};", piece.escape_ascii()),
            Some(Body::End) => "end;".to_owned(),
            None => "woken;".to_owned(),
        };
        match self.says.next().expect("asked more often than the script has answers") {
            Say::GoOn => reading.go_on(),
            Say::Hold => reading.hold(),
            Say::Take(bytes) => reading.take(bytes),
            Say::Answer => reading.answer().bytes(Status::OK, b"Content-Length: 0\r\n", b""),
            Say::Open => reading.answer().open(request, Status::OK, b"", None, true),
            Say::Later => reading.answer().later(),
        }
    }

    fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        self.log += "body;";
        if body == Body::End {
            open.end();
        }
    }

    fn finished(&mut self, finished: &Finished<'_>) {
        self.log += &format!("{:?};", finished.why);
    }

    fn left(&mut self, owner: Owner, _address: Address, departure: Departure, _outbox: &Outbox) {
        assert_eq!(owner, OWNER);
        self.log += &format!("{departure:?};");
    }
}

/// A port that keeps one exchange, and counts what is asked of it.
struct Bare {
    session: Session,
    under_way: UnderWay,
    outgoing: Outgoing,
    taken_bytes: usize,
    /// Number of times that the deadline of the body began.
    begun: usize,
    awaits: bool,
}

impl Port for Bare {
    fn under_way(&self) -> Option<&UnderWay> {
        Some(&self.under_way)
    }

    fn under_way_mut(&mut self) -> Option<&mut UnderWay> {
        Some(&mut self.under_way)
    }

    fn put(&mut self, exchange: Box<Exchange>) {
        self.under_way = UnderWay::Exchange(exchange);
    }

    fn end(&mut self, address: &mut Address) {
        self.discard(address);
    }

    fn discard(&mut self, _address: &mut Address) {
        self.under_way = UnderWay::Nothing;
    }

    fn awaits(&self) -> bool {
        self.awaits
    }

    fn pen<'a>(&'a mut self, rendered: &'a mut Rendered) -> (Pen<'a>, &'a mut Outgoing) {
        let pen = Http1Pen { session: &mut self.session, rendered: Some(rendered) };
        (Pen::Http1(pen), &mut self.outgoing)
    }

    fn outlet(&mut self) -> Option<Outlet<'_>> {
        Some(Outlet::Connection(&mut self.outgoing))
    }

    fn has_room(&self) -> bool {
        true
    }

    fn is_sending(&self) -> bool {
        false
    }

    fn peer_ended(&self) -> bool {
        false
    }

    fn turned_away(&self) -> bool {
        false
    }

    fn conclude(&mut self, _state: OpenState) -> bool {
        true
    }

    fn reset(&mut self) {}

    fn begin_reading(&mut self) {
        self.begun += 1;
    }

    fn taken(&mut self, bytes: usize) {
        self.taken_bytes += bytes;
    }
}

/// A request is read by a handler that says this; `act` tells what happens. Gives the port as it is then, and
/// what the handler was asked.
fn read_with(says: &[Say], act: impl FnOnce(&mut Bare, &mut Turn<'_, Script>)) -> (Bare, String) {
    let mut handler = Script { says: Vec::from(says).into_iter(), log: String::new() };
    let (stats, outbox) = (Stats::default(), Outbox::default());
    let (mut spare, mut heads, mut rendered) =
        (Spare::default(), RequestMemory::default(), Rendered::default());
    let address = Address { worker: 0, slot: 0, generation: 1, stream: StreamRef::ONLY };
    let mut turn = Turn {
        handler: &mut handler,
        spare: &mut spare,
        context: Context::new(&stats, DATE, 0, &outbox, address),
        now_ms: 0,
        heads: &mut heads,
        rendered: &mut rendered,
        http2: None,
        draining: false,
        strain: Strain { waited: Waited::SHORT, full: false },
        written_bytes_max: usize::MAX,
        came_ms: 0,
    };
    let (session, outgoing, under_way) = (Session::new(0), Outgoing::default(), UnderWay::Nothing);
    let mut port = Bare { session, under_way, outgoing, taken_bytes: 0, begun: 0, awaits: true };
    let mut input = &b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"[..];
    let event = port.session.poll_event(&mut input, 0, DATE, &mut Vec::new());
    let Event::Request(request) = event else { panic!("{event:?}") };
    let answered = ask(&mut port, &request, NEW, &mut turn, Script::handle);
    begin(&mut port, &request, &answered, &mut turn);
    act(&mut port, &mut turn);
    (port, handler.log)
}

fn takes_body(port: &Bare) -> bool {
    port.under_way.takes_body()
}

#[test]
fn pieces_are_given_until_there_is_an_answer() {
    let (port, log) = read_with(&[Say::GoOn, Say::GoOn, Say::GoOn, Say::Answer], |port, turn| {
        assert!(takes_body(port));
        give(port, Body::Piece(b"abc"), turn);
        give(port, Body::Piece(b"de"), turn);
        assert_eq!(move_on(port, turn), Moved::Nothing, "nothing has woken it");
        give(port, Body::End, turn);
        assert_eq!(move_on(port, turn), Moved::Nothing);
        wake(port, turn);
        assert_eq!(move_on(port, turn), Moved::Over);
        break_off(port, Ended::Gone, turn);
    });
    assert_eq!((log.as_str(), port.taken_bytes), ("+abc;+de;end;woken;", 5));
    assert!(port.under_way.is_nothing());
}

#[test]
fn what_was_not_taken_comes_again_when_it_is_woken() {
    let says = [Say::Take(1), Say::Take(0), Say::Take(1), Say::GoOn, Say::Take(9)];
    let (port, log) = read_with(&says, |port, turn| {
        give(port, Body::Piece(b"abc"), turn);
        for (taken_bytes, takes) in [(1, false), (2, false), (3, true)] {
            assert!(!takes_body(port), "something is left");
            assert_eq!(move_on(port, turn), Moved::Nothing, "nothing has woken it");
            wake(port, turn);
            assert_eq!(move_on(port, turn), Moved::Again);
            assert_eq!((port.taken_bytes, takes_body(port)), (taken_bytes, takes));
        }
        give(port, Body::Piece(b"de"), turn);
    });
    assert_eq!((log.as_str(), port.taken_bytes, port.begun), ("+abc;+bc;+bc;+c;+de;", 5, 3));
}

#[test]
fn a_handler_that_holds_gets_nothing_until_it_is_woken() {
    let (port, log) = read_with(&[Say::Hold, Say::Hold, Say::GoOn], |port, turn| {
        give(port, Body::Piece(b"abc"), turn);
        for takes in [false, true] {
            assert!(!takes_body(port));
            wake(port, turn);
            assert_eq!((move_on(port, turn), takes_body(port)), (Moved::Again, takes));
        }
    });
    // The deadline of the body runs anew behind each hold.
    assert_eq!((log.as_str(), port.taken_bytes, port.begun), ("+abc;woken;woken;", 3, 2));
}

#[test]
fn its_handler_is_told_once_that_the_peer_has_left() {
    let (_, log) = read_with(&[Say::GoOn], |port, turn| {
        give(port, Body::Piece(b"abc"), turn);
        hear_end(port, turn);
        break_off(port, Ended::BadBody, turn);
        break_off(port, Ended::Gone, turn);
        give(port, Body::Piece(b"de"), turn);
        wake(port, turn);
        assert_eq!(move_on(port, turn), Moved::Nothing);
    });
    assert_eq!(log, "+abc;SendsNoMore;Gone;");
}

#[test]
fn the_body_goes_on_behind_the_beginning_of_an_answer() {
    let (_, log) = read_with(&[Say::GoOn, Say::Open], |port, turn| {
        give(port, Body::Piece(b"abc"), turn);
        give(port, Body::Piece(b"de"), turn);
        give(port, Body::Piece(b"f"), turn);
        break_off(port, Ended::Gone, turn);
    });
    assert_eq!(log, "+abc;+de;body;Gone;");
}

#[test]
fn a_request_that_was_read_may_wait() {
    let (_, log) = read_with(&[Say::Later], |port, turn| {
        give(port, Body::Piece(b"abc"), turn);
        assert!(port.under_way.is_waiting() && !takes_body(port));
        resume(port, turn, |handler, request, answer| handler.resume((), request, answer));
        break_off(port, Ended::Gone, turn);
    });
    assert_eq!(log, "+abc;resume;Gone;");
}

#[test]
fn a_peer_that_awaits_nothing_is_not_read() {
    let (_, log) = read_with(&[], |port, turn| {
        port.awaits = false;
        give(port, Body::Piece(b"abc"), turn);
        wake(port, turn);
        move_on(port, turn);
        break_off(port, Ended::Gone, turn);
    });
    assert_eq!(log, "Gone;");
}
