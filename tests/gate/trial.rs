//! Programs on no interface, and the orders they are shown frames under.
//!
//! It must never put one on an interface.

use staunch_gate::fault::GateError;
use staunch_gate::observation::{Orders, State};
use staunch_gate::program::{Attach, Sizes, Trial};
use staunch_netio::clock::now_ns;

/// What the program returns.
pub(crate) const DROP: u32 = 1;
pub(crate) const PASS: u32 = 2;
pub(crate) const REPLY: u32 = 3;

/// Ports that are protected unless a test says otherwise.
pub(crate) const PORTS: [u16; 2] = [80, 443];
/// A single place for clients, and a single one for a SYN that is remembered: a test finds them.
pub(crate) const ONE_PLACE: Sizes = Sizes { again: 1, known: 1, waiting: 16 };
/// Orders hold for an hour: no test has to renew them.
pub(crate) const HOUR_NS: u64 = 3_600_000_000_000;

/// A program. `None`, with the reason printed, where it is not allowed; with `CI=true` that is a panic.
pub(crate) fn load(attach: &Attach<'_>, sizes: &Sizes) -> Option<Trial> {
    permitted(Trial::load(attach, sizes))
}

/// What was asked for, or `None` with the reason printed where it is not allowed.
pub(crate) fn permitted<T>(asked: Result<T, GateError>) -> Option<T> {
    match asked {
        Ok(given) => Some(given),
        Err(GateError::Privilege(missing)) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "capabilities are missing: {missing:?}");
            println!("skipped: capabilities are missing: {missing:?}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A program that drops, on the usual ports.
pub(crate) fn plain() -> Option<Trial> {
    load(&Attach { ports: &PORTS, ..Attach::default() }, &ONE_PLACE)
}

/// Orders by which no SYN gets in.
pub(crate) fn shed() -> Orders {
    Orders { state: State::Shedding, ..Orders::default() }
}

/// So many of each class get in.
pub(crate) fn ration(credits: [u64; 3]) -> Orders {
    Orders { credits, ..shed() }
}

/// Gives orders that hold for an hour.
pub(crate) fn give(trial: &mut Trial, orders: &Orders) {
    trial.give(orders, now_ns() + HOUR_NS).expect("orders");
}

/// What the program returns for a frame.
pub(crate) fn action(trial: &mut Trial, frame: &[u8]) -> u32 {
    trial.judge(frame).expect("a judgement").action
}
