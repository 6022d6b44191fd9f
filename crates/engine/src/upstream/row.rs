//! A connection that the worker makes: where it stands, and the next step.
//!
//! It must never ask the time.

use staunch_netio::{Outgoing, Slot, Target};

use super::words::{UpstreamDeadline, UpstreamEvent, UpstreamLoss, UpstreamTimeouts};
use crate::exchange::address::Address;
use crate::limits::OPEN_ROOM_BYTES;

/// What the worker has to do for an upstream.
#[derive(Debug)]
pub(crate) enum UpstreamStep {
    /// Begin to connect.
    Connect(Box<Target>),
    /// Tell the handler.
    Tell(UpstreamNews),
    /// Hand this to the network.
    Send(Slot, Box<Outgoing>),
    /// Half-close.
    Shutdown(Slot),
    /// Begin to receive.
    Receive(Slot),
    /// Stop receiving.
    Pause(Slot),
    /// The connection of this slot is to be closed.
    Close(Slot),
    /// The upstream has no slot, and is over.
    Forget,
    /// Nothing, until something else happens.
    Rest,
}

/// What is told of an upstream that the backend does not hold in its buffers.
#[derive(Debug)]
pub(crate) enum UpstreamNews {
    Connected,
    Kept(Vec<u8>),
    Room,
    Ended,
    Lost(UpstreamLoss),
}

impl UpstreamNews {
    pub(crate) fn event(&self) -> UpstreamEvent<'_> {
        match self {
            Self::Connected => UpstreamEvent::Connected,
            Self::Kept(bytes) => UpstreamEvent::Received(bytes),
            Self::Room => UpstreamEvent::Room,
            Self::Ended => UpstreamEvent::Ended,
            Self::Lost(loss) => UpstreamEvent::Lost(*loss),
        }
    }
}

/// Where an upstream stands in its life.
#[derive(Debug, Default)]
pub(super) enum UpstreamStage {
    /// The row is free.
    #[default]
    Free,
    /// The handler has asked for it.
    Wanted(Box<Target>),
    /// The backend connects it, or is about to.
    Connecting,
    /// Bytes go both ways.
    Open,
    /// The upstream is to be closed behind what stands to be sent; its name is good no more.
    Parting,
    /// The upstream is to be closed; its name is good no more.
    Leaving,
    /// The backend closes it.
    Closing,
}

/// A row of the table.
#[derive(Debug, Default)]
pub(crate) struct UpstreamRow {
    pub(super) stage: UpstreamStage,
    /// Which use of the row.
    pub(super) generation: u32,
    pub(super) slot: Option<Slot>,
    pub(super) exchange: Option<Address>,
    pub(super) timeouts: UpstreamTimeouts,
    /// What stands to be sent.
    pub(super) outgoing: Option<Box<Outgoing>>,
    /// What came while it was held.
    kept: Vec<u8>,
    /// When something moved last.
    since_ms: u64,
    /// Memory of the container in flight.
    in_flight_bytes: u32,
    /// Memory that stands in the worker's account for it.
    pub(crate) counted_bytes: u32,
    /// That memory is known to come back by itself.
    pub(crate) is_counted_leaving: bool,
    is_sending: bool,
    is_receiving: bool,
    /// The handler wants nothing to come at present.
    pub(super) is_held: bool,
    /// Deadlines begin anew with the next step: the upstream was held, begins to serve another exchange, or
    /// is closed behind its last bytes.
    was_held: bool,
    /// The handler wants to be told when there is room.
    wants_room: bool,
    /// The handler sends no more.
    pub(super) is_finishing: bool,
    /// The peer was told so.
    is_shut: bool,
    /// The handler is to be told that it is connected.
    is_news: bool,
    /// The peer sends no more, and whether the handler knows.
    has_ended: bool,
    has_told_end: bool,
    /// A send has failed: nothing goes out any more, but what has come is still told.
    pub(super) send_errno: Option<i32>,
    /// The upstream is lost, and the handler is to be told why.
    pub(super) loss: Option<UpstreamLoss>,
    /// The upstream is lost, and the handler was told.
    pub(super) is_lost: bool,
    /// The row waits for the worker to take steps.
    pub(super) is_asked: bool,
}

impl UpstreamRow {
    /// Frees the row and returns what it was.
    pub(super) fn retire(&mut self) -> Self {
        let next = Self { generation: self.generation, is_asked: self.is_asked, ..Self::default() };
        std::mem::replace(self, next)
    }

    /// Whether nobody is in the row.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.stage, UpstreamStage::Free)
    }

    /// Whether its name is good.
    pub(super) fn is_named(&self) -> bool {
        !self.is_parting() && !self.is_given_back()
    }

    /// Whether it is closed behind what stands to be sent.
    pub(super) fn is_parting(&self) -> bool {
        matches!(self.stage, UpstreamStage::Parting)
    }

    fn is_given_back(&self) -> bool {
        matches!(self.stage, UpstreamStage::Free | UpstreamStage::Leaving | UpstreamStage::Closing)
    }

    /// The upstream is to be closed, with `sends_first` behind what stands to be sent if there is anything.
    /// The name of the row is good no more.
    pub(super) fn leave(&mut self, sends_first: bool) {
        let is_unsent = self.is_sending || self.standing_bytes() > 0;
        let can_send = matches!(self.stage, UpstreamStage::Open) && self.send_errno.is_none();
        let parts = sends_first && is_unsent && can_send;
        self.stage = if parts { UpstreamStage::Parting } else { UpstreamStage::Leaving };
        self.generation = self.generation.wrapping_add(1);
        (self.loss, self.kept, self.was_held) = (None, Vec::new(), true);
    }

    /// Deadlines are these from now on, counted from the next step.
    pub(super) fn begin_anew(&mut self, timeouts: UpstreamTimeouts) {
        (self.timeouts, self.was_held) = (timeouts, true);
    }

    /// Whether it is about to give back what it holds.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_given_back() || self.is_lost || self.loss.is_some()
    }

    pub(crate) fn slot(&self) -> Option<Slot> {
        self.slot
    }

    /// Whether more is worth sending now; if not, the handler will be told.
    pub(super) fn has_room(&mut self) -> bool {
        let has_room = self.standing_bytes() < OPEN_ROOM_BYTES;
        self.wants_room |= !has_room;
        has_room
    }

    /// How much stands to be sent.
    pub(super) fn standing_bytes(&self) -> u64 {
        self.outgoing.as_ref().map_or(0, |outgoing| outgoing.length_bytes())
    }

    /// Connecting is over.
    pub(crate) fn note_connected(&mut self, errno: i32, now_ms: u64) {
        if !matches!(self.stage, UpstreamStage::Connecting) {
            return;
        }
        if errno != 0 {
            return self.lose(UpstreamLoss::Failed(errno));
        }
        (self.stage, self.is_news, self.since_ms) = (UpstreamStage::Open, true, now_ms);
    }

    /// Whether bytes that come may be told at once. Else they have to be kept.
    pub(crate) fn note_received(&mut self, now_ms: u64) -> bool {
        self.note_progress(now_ms);
        !self.is_held && self.kept.is_empty() && self.is_heard()
    }

    /// Keeps what came, if it will ever be told.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        if self.is_heard() {
            self.kept.extend_from_slice(bytes);
        }
    }

    /// Whether the handler is told of what comes.
    fn is_heard(&self) -> bool {
        self.is_named() && !self.is_leaving()
    }

    /// Something has moved. One that is closed behind its last bytes has a single deadline for them.
    pub(crate) fn note_progress(&mut self, now_ms: u64) {
        if !self.is_parting() {
            self.since_ms = now_ms;
        }
    }

    /// A send is over.
    pub(crate) fn note_sent(&mut self, errno: i32, now_ms: u64) {
        (self.is_sending, self.in_flight_bytes) = (false, 0);
        self.note_progress(now_ms);
        if errno != 0 {
            (self.send_errno, self.outgoing) = (Some(errno), None);
            if self.has_ended {
                self.lose(UpstreamLoss::Failed(errno));
            }
        }
    }

    /// Nothing more comes.
    pub(crate) fn note_ended(&mut self, errno: i32) {
        (self.is_receiving, self.has_ended) = (false, true);
        match (errno, self.send_errno) {
            (0, None) => {}
            _ if self.is_parting() => self.outgoing = None,
            (0, Some(errno)) | (errno, _) => self.lose(UpstreamLoss::Failed(errno)),
        }
    }

    /// Notes that the upstream is lost: the handler is told once, unless it has closed it.
    pub(super) fn lose(&mut self, loss: UpstreamLoss) {
        if self.is_named() && !self.is_lost {
            self.loss.get_or_insert(loss);
        }
    }

    /// The next step; the caller has asked for names and losses before.
    pub(super) fn step(&mut self, now_ms: u64) -> UpstreamStep {
        if let Some(loss) = self.loss.take() {
            self.is_lost = true;
            return UpstreamStep::Tell(UpstreamNews::Lost(loss));
        }
        match (std::mem::take(&mut self.stage), self.slot) {
            (UpstreamStage::Wanted(target), _) => {
                (self.stage, self.since_ms) = (UpstreamStage::Connecting, now_ms);
                UpstreamStep::Connect(target)
            }
            (UpstreamStage::Open, Some(slot)) => {
                self.stage = UpstreamStage::Open;
                self.step_open(slot, now_ms)
            }
            (UpstreamStage::Parting, Some(slot)) if self.is_sending || self.standing_bytes() > 0 => {
                self.stage = UpstreamStage::Parting;
                if std::mem::take(&mut self.was_held) {
                    self.since_ms = now_ms;
                }
                self.step_send(slot, now_ms).unwrap_or(UpstreamStep::Rest)
            }
            (UpstreamStage::Parting | UpstreamStage::Leaving, Some(slot)) => {
                self.stage = UpstreamStage::Closing;
                (self.outgoing, self.kept) = (None, Vec::new());
                UpstreamStep::Close(slot)
            }
            (UpstreamStage::Parting | UpstreamStage::Leaving, None) => {
                self.stage = UpstreamStage::Closing;
                UpstreamStep::Forget
            }
            (stage, _) => {
                self.stage = stage;
                UpstreamStep::Rest
            }
        }
    }

    /// Begins to send what stands to be sent, unless something is in flight.
    fn step_send(&mut self, slot: Slot, now_ms: u64) -> Option<UpstreamStep> {
        if self.is_sending {
            return None;
        }
        let outgoing = self.outgoing.take_if(|outgoing| !outgoing.is_empty())?;
        (self.is_sending, self.since_ms) = (true, now_ms);
        self.in_flight_bytes = u32::try_from(outgoing.held_bytes()).unwrap_or(u32::MAX);
        Some(UpstreamStep::Send(slot, outgoing))
    }

    fn step_open(&mut self, slot: Slot, now_ms: u64) -> UpstreamStep {
        if std::mem::take(&mut self.is_news) {
            return UpstreamStep::Tell(UpstreamNews::Connected);
        }
        if let Some(send) = self.step_send(slot, now_ms) {
            return send;
        }
        if self.is_finishing && !self.is_shut && !self.is_sending && self.send_errno.is_none() {
            self.is_shut = true;
            return UpstreamStep::Shutdown(slot);
        }
        if self.wants_room && self.standing_bytes() < OPEN_ROOM_BYTES {
            self.wants_room = false;
            return UpstreamStep::Tell(UpstreamNews::Room);
        }
        if self.is_held {
            self.was_held = true;
            let pauses = std::mem::take(&mut self.is_receiving);
            return if pauses { UpstreamStep::Pause(slot) } else { UpstreamStep::Rest };
        }
        if std::mem::take(&mut self.was_held) {
            self.since_ms = now_ms;
        }
        if !self.kept.is_empty() {
            return UpstreamStep::Tell(UpstreamNews::Kept(std::mem::take(&mut self.kept)));
        }
        if self.has_ended {
            let tells = !std::mem::replace(&mut self.has_told_end, true);
            return if tells { UpstreamStep::Tell(UpstreamNews::Ended) } else { UpstreamStep::Rest };
        }
        if !self.is_receiving {
            (self.is_receiving, self.since_ms) = (true, now_ms);
            return UpstreamStep::Receive(slot);
        }
        UpstreamStep::Rest
    }

    /// The deadline that is running, and when it ends.
    pub(crate) fn due(&self) -> Option<(u64, UpstreamDeadline)> {
        let (deadline, length_ms) = match self.stage {
            UpstreamStage::Connecting => (UpstreamDeadline::Connect, self.timeouts.connect_ms),
            UpstreamStage::Parting => (UpstreamDeadline::Send, self.timeouts.send_ms),
            UpstreamStage::Open if self.is_held => return None,
            UpstreamStage::Open if self.is_sending => (UpstreamDeadline::Send, self.timeouts.send_ms),
            UpstreamStage::Open => (UpstreamDeadline::Receive, self.timeouts.receive_ms),
            _ => return None,
        };
        Some((self.since_ms + u64::from(length_ms), deadline))
    }

    /// Memory that it holds: what stands to be sent, what is in flight, and what came and is kept.
    pub(crate) fn held_bytes(&self) -> u32 {
        let standing_bytes = self.outgoing.as_ref().map_or(0, |outgoing| outgoing.held_bytes());
        let bytes = u32::try_from(standing_bytes + self.kept.capacity()).unwrap_or(u32::MAX);
        self.in_flight_bytes.saturating_add(bytes)
    }
}
