//! The server under the kernels of Debian 12 and 13 and under the newest one: what it runs on there, and that
//! connections end and leave nothing behind.

use crate::is_possible;
use crate::parts;
use crate::shared::SERVERS;

/// The output of the script, under a kernel of this series. `None`, with a reason, where there is no
/// emulator.
fn said_under(series: &str) -> Option<String> {
    if !is_possible() {
        return None;
    }
    Some(SERVERS.said(series, &parts::closing(), &[]).out)
}

/// Four hundred are answered and end while one is idle; gives what was said of the engine, and how the server
/// ended that was to run on io_uring.
fn closes_while_one_is_idle(series: &str) -> Option<(String, String)> {
    let said = said_under(series)?;
    let value = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name:?} in\n{said}")).trim().to_owned()
    };
    assert_eq!(value("answered:"), "400", "{said}");
    let sockets: u32 = value("sockets left:").parse().expect("a number");
    assert!(sockets < 20, "{said}");
    assert_eq!(value("server:"), "lives", "{said}");
    Some((value("  engine"), value("asked for by name:")))
}

/// Before Linux 6.13 io_uring closes a connection only when older ones have ended: one idle visitor kept all
/// others waiting for the end of their answers, and kept their sockets; under 6.1 it also gave a place away
/// before it said that it was free, and the server ended.
fn falls_back_to_epoll(series: &str) {
    let Some((engine, ended)) = closes_while_one_is_idle(series) else { return };
    assert!(engine.starts_with("epoll (io_uring: ") && engine.contains("at once"), "{engine}");
    assert_eq!(ended, "78");
}

#[test]
fn linux_6_12() {
    falls_back_to_epoll("6.12");
}

/// For `make soak`: second kernels. The host of a landing is itself one under which io_uring is whole.
mod in_depth {
    use super::*;

    #[test]
    fn linux_6_1() {
        falls_back_to_epoll("6.1");
    }

    #[test]
    fn the_newest_linux() {
        let Some((engine, ended)) = closes_while_one_is_idle("newest") else { return };
        assert!(engine.starts_with("io_uring (every operation"), "{engine}");
        assert_eq!(ended, "0");
    }
}
