//! What stands between the secured connections of a worker and their bytes: a wall for each.
//!
//! It owns handshakes at work, keys in use, and what is kept of connections at rest, with the bound of each.
//! This module must never touch a connection or the network: `worker/securing.rs` and
//! `transport/sealing.rs` do. A plain connection costs it a comparison.

mod drawing;
mod handshakes;
mod rests;
mod settings;
mod visitors;
mod wall;

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use staunch_netio::{FileReader, Outgoing, Slot, WarmedPart};
use staunch_tls::{Agreed, Asleep, Awake, ClientIdentity, Fault, Handshake};

pub(crate) use self::drawing::Drawn;
use self::drawing::FileInput;
use self::handshakes::Handshakes;
use self::rests::Rests;
pub use self::settings::TlsSettings;
use self::visitors::Visitors;
use self::wall::{ActiveWall, NameMark, Shaking, Wall, WallKeys};
pub(crate) use self::wall::{OpenedContent, OpenedInput};
use crate::limits::{AWAKE_MAX, AWAKE_MS, LOOKS_MAX};
use crate::stats::TlsStats;

/// The walls of one worker.
#[derive(Default)]
pub(crate) struct Secured {
    /// `None` where no listener is secured.
    settings: Option<TlsSettings>,
    /// By slot, as far as a secured connection ever was there.
    walls: Vec<Wall>,
    handshakes: Handshakes,
    rests: Rests,
    visitors: Visitors,
    file_input: FileInput,
    /// Connections whose next bytes nobody reads ahead yet.
    cold: Vec<Slot>,
    awake: u32,
    asleep: u32,
    /// Makes marks of names that nobody can foretell.
    marks: RandomState,
}

impl Secured {
    /// From now on secured listeners have this.
    pub(crate) fn set(&mut self, settings: TlsSettings, reader: FileReader) {
        self.settings = Some(settings);
        self.file_input.reader = Some(reader);
    }

    /// Whether a wall stands before this connection.
    #[inline]
    pub(crate) fn is_walled(&self, slot: Slot) -> bool {
        self.walls.get(slot as usize).is_some_and(|wall| !matches!(wall, Wall::None))
    }

    /// A connection came to a secured listener. `false`: nothing is there to secure it with.
    pub(crate) fn await_hello(&mut self, slot: Slot, now_ms: u64, most_ms: u32) -> bool {
        let Some(settings) = &self.settings else { return false };
        let index = slot as usize;
        if self.walls.len() <= index {
            self.walls.resize_with(index + 1, Wall::default);
        }
        let until_ms = now_ms + u64::from(settings.handshake_ms.min(most_ms));
        self.walls[index] = Wall::Awaited { until_ms };
        true
    }

    /// Whether a request for this host came on a connection that was made for another name.
    pub(crate) fn is_misdirected(&self, slot: Slot, host: &[u8]) -> bool {
        let name = match self.walls.get(slot as usize) {
            Some(Wall::Active(wall)) => wall.name,
            Some(Wall::Asleep(_, name, _)) => *name,
            Some(Wall::None | Wall::Awaited { .. }) | None => 0,
        };
        // A client of HTTP/1.0 may name no host.
        name != 0 && !host.is_empty() && name != mark(&self.marks, host)
    }

    /// Whether the client of a connection was here before: a ticket of ours began its session.
    pub(crate) fn is_resumed(&self, slot: Slot) -> bool {
        match self.walls.get(slot as usize) {
            Some(Wall::Active(wall)) => wall.is_resumed,
            Some(Wall::Asleep(_, _, is_resumed)) => *is_resumed,
            Some(Wall::None | Wall::Awaited { .. }) | None => false,
        }
    }

    /// The identity of a connection's client, if it showed a certificate.
    pub(crate) fn identity(&self, slot: Slot) -> Option<&ClientIdentity> {
        self.visitors.get(slot)
    }

    /// Whether the client of a connection showed a certificate that would not be verified now as it was then.
    pub(crate) fn is_outdated(&self, slot: Slot, unix_s: u64) -> bool {
        let identity = self.visitors.get(slot).zip(self.settings.as_ref());
        identity.is_some_and(|(identity, settings)| !settings.context.upholds(identity, unix_s))
    }

    /// When the handshake of a connection has to be over, if it is not.
    pub(crate) fn handshake_until_ms(&self, slot: Slot) -> Option<u64> {
        match self.walls.get(slot as usize)? {
            Wall::Awaited { until_ms } => Some(*until_ms),
            Wall::Active(wall) => match &wall.keys {
                WallKeys::Shaking(shaking) => Some(shaking.until_ms),
                WallKeys::Awake(_) | WallKeys::Gone => None,
            },
            Wall::None | Wall::Asleep(..) => None,
        }
    }

    /// The first bytes came: a handshake begins. Gives the oldest one at work if it has to go for this one.
    pub(crate) fn begin(&mut self, slot: Slot, now_ms: u64, unix_s: u64) -> Option<Slot> {
        let (Some(settings), Some(Wall::Awaited { until_ms })) =
            (&self.settings, self.walls.get(slot as usize))
        else {
            return None;
        };
        settings.context.tell_time(unix_s);
        let is_full = self.handshakes.count >= settings.handshakes_max;
        let context = settings.context.clone();
        let until_ms = *until_ms;
        let walls = &self.walls;
        let oldest = if is_full {
            self.handshakes.take_oldest(|slot, number| is_at_work(walls, slot, number))
        } else {
            None
        };
        let number = self.handshakes.begin(slot);
        let shaking = Shaking { handshake: Handshake::new(context, None), until_ms, number };
        let wall = ActiveWall::new(WallKeys::Shaking(Box::new(shaking)), 0, now_ms);
        self.walls[slot as usize] = Wall::Active(Box::new(wall));
        oldest
    }

    /// Takes bytes of a handshake; what it agreed upon, once it is over.
    pub(crate) fn shake(&mut self, slot: Slot, bytes: &[u8], now_ms: u64) -> Result<Option<Agreed>, Fault> {
        let Some(Wall::Active(wall)) = self.walls.get_mut(slot as usize) else { return Ok(None) };
        if !wall.is_shaking() {
            return Ok(None);
        }
        let result = wall.shake(bytes);
        wall.used_ms = now_ms;
        if !wall.is_shaking() {
            if let Ok(Some(agreed)) = &result {
                let name = agreed.server_name.as_deref().unwrap_or_default();
                wall.name = mark(&self.marks, name.as_bytes());
                wall.is_resumed = agreed.is_resumed;
                if let Some(identity) = &agreed.client {
                    self.visitors.insert(slot, identity.clone());
                }
                self.awake += 1;
                self.rests.push(slot, now_ms);
            }
            self.end_handshake();
        }
        result
    }

    fn end_handshake(&mut self) {
        let walls = &self.walls;
        self.handshakes.end(|slot, number| is_at_work(walls, slot, number));
    }

    /// Opens what came in `input`, which may be nothing. `None` without keys.
    pub(crate) fn open(
        &mut self,
        slot: Slot,
        input: &mut [u8],
        now_ms: u64,
    ) -> Result<Option<OpenedInput>, Fault> {
        let Some(wall) = self.wake(slot, now_ms) else { return Ok(None) };
        let was_awake = matches!(wall.keys, WallKeys::Awake(_));
        let result = wall.open(input);
        if was_awake && result.is_err() {
            self.awake -= 1;
        }
        result
    }

    /// The wall of a connection, awake. `None`: no byte has come yet, or there is none.
    pub(crate) fn wake(&mut self, slot: Slot, now_ms: u64) -> Option<&mut ActiveWall> {
        let wall = self.walls.get_mut(slot as usize)?;
        if let Wall::Asleep(asleep, name, is_resumed) = wall {
            let keys = WallKeys::Awake(Awake::wake(asleep));
            let mut active = ActiveWall::new(keys, *name, now_ms);
            active.is_resumed = *is_resumed;
            *wall = Wall::Active(Box::new(active));
            (self.asleep, self.awake) = (self.asleep - 1, self.awake + 1);
            self.rests.push(slot, now_ms);
        }
        match wall {
            Wall::Active(wall) => {
                wall.used_ms = now_ms;
                Some(wall)
            }
            Wall::None | Wall::Awaited { .. } | Wall::Asleep(..) => None,
        }
    }

    /// The wall of a connection if it is at work; it is left asleep.
    pub(crate) fn active(&mut self, slot: Slot) -> Option<&mut ActiveWall> {
        match self.walls.get_mut(slot as usize)? {
            Wall::Active(wall) => Some(wall),
            Wall::None | Wall::Awaited { .. } | Wall::Asleep(..) => None,
        }
    }

    /// Whether a handshake is over on this connection, and nothing has ended it.
    pub(crate) fn has_keys(&self, slot: Slot) -> bool {
        match self.walls.get(slot as usize) {
            Some(Wall::Active(wall)) => matches!(wall.keys, WallKeys::Awake(_)),
            Some(Wall::Asleep(..)) => true,
            Some(Wall::None | Wall::Awaited { .. }) | None => false,
        }
    }

    /// Whether a fault has ended what was agreed upon, or was to be.
    pub(crate) fn is_given_up(&self, slot: Slot) -> bool {
        let wall = self.walls.get(slot as usize);
        matches!(wall, Some(Wall::Active(wall)) if matches!(wall.keys, WallKeys::Gone))
    }

    /// Fills `output` with the next piece that stands to be sent on a connection.
    pub(crate) fn fill(&mut self, slot: Slot, bytes_max: usize, output: &mut Vec<u8>) -> Drawn {
        match self.walls.get_mut(slot as usize) {
            Some(Wall::Active(wall)) => wall.fill(&mut self.file_input, bytes_max, output),
            _ => Drawn::All,
        }
    }

    /// Has the bytes read ahead for which a connection waits; `token` tells it from others.
    pub(crate) fn warm(&mut self, slot: Slot, token: u64) {
        let Some(Wall::Active(wall)) = self.walls.get_mut(slot as usize) else { return };
        if !wall.warm(&self.file_input, token) {
            self.cold.push(slot);
        }
    }

    /// What was read ahead.
    pub(crate) fn take_warmed(&mut self) -> Vec<WarmedPart> {
        self.file_input.reader.as_ref().map_or_else(Vec::new, FileReader::take)
    }

    /// Connections that are to try again.
    pub(crate) fn take_cold(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.cold)
    }

    /// Whether a connection is to try again soon.
    #[inline]
    pub(crate) fn has_cold(&self) -> bool {
        !self.cold.is_empty()
    }

    /// Lays the first connection to sleep that rests, or whose room others want.
    pub(crate) fn lay_to_sleep(&mut self, now_ms: u64, is_tight: bool) -> Option<Slot> {
        let awake_max = if is_tight { 0 } else { AWAKE_MAX };
        for _ in 0..LOOKS_MAX {
            let is_crowded = self.rests.len() > awake_max;
            let slot = self.rests.pop(now_ms, awake_max)?;
            let Some(place) = self.walls.get_mut(slot as usize) else { continue };
            let Wall::Active(wall) = place else { continue };
            if !matches!(wall.keys, WallKeys::Awake(_)) {
                continue;
            }
            let rests = wall.used_ms + AWAKE_MS <= now_ms || is_crowded && wall.used_ms < now_ms;
            match wall.sleep().filter(|_| rests) {
                Some(asleep) => {
                    *place = Wall::Asleep(Box::new(asleep), wall.name, wall.is_resumed);
                    (self.awake, self.asleep) = (self.awake - 1, self.asleep + 1);
                    return Some(slot);
                }
                None => self.rests.push(slot, now_ms),
            }
        }
        None
    }

    /// When somebody is to be looked at for sleep.
    #[inline]
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.rests.next_ms()
    }

    /// A connection has no wall any more: it is over, or speaks plain. Gives back what was not drawn.
    pub(crate) fn tear_down(&mut self, slot: Slot) -> Option<Box<Outgoing>> {
        let wall = std::mem::take(self.walls.get_mut(slot as usize)?);
        self.visitors.remove(slot);
        match wall {
            Wall::Active(mut wall) => {
                match wall.keys {
                    WallKeys::Shaking(_) => self.end_handshake(),
                    WallKeys::Awake(_) => self.awake -= 1,
                    WallKeys::Gone => {}
                }
                wall.take_drawing()
            }
            Wall::Asleep(..) => {
                self.asleep -= 1;
                None
            }
            Wall::None | Wall::Awaited { .. } => None,
        }
    }

    /// Memory of a wall, in bytes.
    pub(crate) fn held_bytes(&self, slot: Slot) -> usize {
        match self.walls.get(slot as usize) {
            Some(Wall::Active(wall)) => wall.held_bytes() + self.visitors.held_bytes(slot),
            Some(Wall::Asleep(..)) => size_of::<Asleep>() + self.visitors.held_bytes(slot),
            Some(Wall::None | Wall::Awaited { .. }) | None => 0,
        }
    }

    /// Shows how many there are.
    #[inline]
    pub(crate) fn show(&self, stats: &TlsStats) {
        if !self.walls.is_empty() {
            stats.shaking.set(u64::from(self.handshakes.count));
            stats.awake.set(u64::from(self.awake));
            stats.asleep.set(u64::from(self.asleep));
        }
    }

    /// Gives memory back.
    pub(crate) fn shrink(&mut self) {
        self.file_input.shrink();
        self.rests.shrink();
        self.visitors.shrink();
        self.cold.shrink_to_fit();
    }
}

/// Stands for a name; 0 for none. Case and a dot at the end do not matter.
fn mark(marks: &RandomState, name: &[u8]) -> NameMark {
    let name = name.strip_suffix(b".").unwrap_or(name);
    if name.is_empty() {
        return 0;
    }
    let mut hasher = marks.build_hasher();
    name.iter().for_each(|byte| hasher.write_u8(byte.to_ascii_lowercase()));
    (hasher.finish() as NameMark).max(1)
}

/// A worker's walls hold keys, and show none.
impl fmt::Debug for Secured {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Secured").finish_non_exhaustive()
    }
}

/// Whether the handshake of that number is still at work in that slot.
fn is_at_work(walls: &[Wall], slot: Slot, number: u32) -> bool {
    match walls.get(slot as usize) {
        Some(Wall::Active(wall)) => match &wall.keys {
            WallKeys::Shaking(shaking) => shaking.number == number,
            WallKeys::Awake(_) | WallKeys::Gone => false,
        },
        _ => false,
    }
}
