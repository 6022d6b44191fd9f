//! What epoll is told about a connection, and when: never before there is something to wait for.
//!
//! It owns no state but the marks it sets. Closing a socket ends its watching, so there is no call to end it.

use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::table::Connection;
use crate::Slot;

const WATCH_INPUT: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);
const WATCH_ROOM: EventFlags = WATCH_INPUT.union(EventFlags::OUT);

/// Begins to watch for input. Input that is there already is reported too.
pub(super) fn watch(epoll: &OwnedFd, slot: Slot, connection: &mut Connection) -> Result<(), Errno> {
    epoll::add(epoll, connection.socket(), event_data(slot, connection), WATCH_INPUT)?;
    connection.set(Connection::WATCHED);
    Ok(())
}

/// Watches for room to send from now on. Room that is there already is reported too.
pub(super) fn watch_room(epoll: &OwnedFd, slot: Slot, connection: &mut Connection) -> Result<(), Errno> {
    let data = event_data(slot, connection);
    if !connection.is(Connection::WATCHED) {
        epoll::add(epoll, connection.socket(), data, WATCH_ROOM)?;
    } else if !connection.is(Connection::ROOM_WATCHED) {
        epoll::modify(epoll, connection.socket(), data, WATCH_ROOM)?;
    }
    connection.set(Connection::WATCHED | Connection::ROOM_WATCHED);
    Ok(())
}

fn event_data(slot: Slot, connection: &Connection) -> EventData {
    EventData::new_u64(u64::from(connection.generation()) << 32 | u64::from(slot))
}
