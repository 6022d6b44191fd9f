//! Channels of a WebSocket: what it reads changes while it reads.
//!
//! It must never let a channel begin while its reader is owed something: from the number at which it begins,
//! waves bring everything in one order.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::Open;
use staunch_live::centrifugo::{Ask, ClientError, Command, Language, Reply, Subscription};
use staunch_live::limits::{INTERESTS_PER_SOCKET_MAX, PATTERNS_PER_READER_MAX, SLICES_PER_DELIVERY_MAX};
use staunch_live::{
    Awaited, Bytes, Epoch, First, Form, Grants, Interest, Marks, Reader, Start, TopicName, Version,
};

use super::super::pending::Pending;
use super::super::socket::{Closing, Wait};
use super::LiveWorker;
use super::commands::{Addressee, Obeyed, say};

/// Channels that begin together.
struct Begun {
    form: Form,
    grants: Grants,
    /// By which number patterns are shared out.
    client: u64,
    /// How many commands are answered.
    obeyed: usize,
    language: Language,
    /// All that is replied, in one message.
    replies: Vec<u8>,
    /// What the channels owe.
    slices: Vec<Bytes>,
    /// The last one owes more, from this number on.
    catching_up: Option<(Arc<Interest>, u64)>,
    /// The next one waits for this.
    waits: Option<(Arc<Interest>, Awaited)>,
    /// There is no room for the one that owes more.
    is_full: bool,
}

impl Begun {
    fn reply(&mut self, id: u32, reply: &Reply<'_>) {
        self.language.append_reply(id, reply, &mut self.replies);
    }
}

impl LiveWorker {
    /// Whether a WebSocket's reader is owed nothing. What it is owed is given to it, if that exists.
    pub(super) fn is_settled(&mut self, slot: u32) -> bool {
        if self.seats.reader_seat(slot).is_none() {
            return true;
        }
        self.waves.sent(&mut self.view, &mut self.seats, slot);
        let Some(seat) = self.seats.reader_seat(slot) else { return true };
        !seat.reader.marks.has(Marks::SENDING) && !self.view.is_owed(&seat.reader)
    }

    /// What becomes of a command whose reader is owed something.
    pub(super) fn unsettled(&mut self, slot: u32) -> Obeyed {
        let is_sending = |reader: &Reader| reader.marks.has(Marks::SENDING);
        match self.seats.reader_seat(slot).is_some_and(|seat| is_sending(&seat.reader)) {
            true => Obeyed::Later,
            false => Obeyed::Waits(Wait::View(Awaited::Letter)),
        }
    }

    /// Begins the channels that the first commands ask for: one step of its reader for all of them.
    pub(super) fn subscribe_channels(&mut self, slot: u32, open: &mut Open<'_>) -> Obeyed {
        // A client may come from a worker that is ahead of this one.
        if self.is_behind() {
            return Obeyed::Waits(Wait::View(Awaited::Letter));
        }
        if !self.is_settled(slot) {
            return self.unsettled(slot);
        }
        let Some(socket) = self.seats.socket(slot) else { return Obeyed::Done };
        let (form, language) = (socket.form, socket.language());
        let Some(client) = socket.client() else { return Obeyed::Done };
        let held = client.held.take();
        let mut begun = Begun {
            form,
            grants: client.rights.reading().0,
            client: client.number,
            obeyed: 0,
            language,
            replies: Vec::new(),
            slices: Vec::new(),
            catching_up: None,
            waits: None,
            is_full: false,
        };
        match client.catching_up.take() {
            Some((channel, number)) => self.catch_up(slot, channel, number, &mut begun),
            None => self.begin_channels(slot, &mut begun),
        }
        if let Some(channel) = held {
            self.view.waited(&channel, form);
        }
        self.carry_out(slot, begun, open)
    }

    fn begin_channels(&mut self, slot: u32, begun: &mut Begun) {
        let commands: Vec<(u32, Subscription)> = self.client(slot).map_or(Vec::new(), |client| {
            let asked = client.commands.iter().map_while(|command| match command {
                Command { id, ask: Ask::Subscribe(asked) } if *id > 0 => Some((*id, asked.clone())),
                _ => None,
            });
            asked.take(SLICES_PER_DELIVERY_MAX).collect()
        });
        for (id, asked) in commands {
            let is_full = begun.slices.len() >= SLICES_PER_DELIVERY_MAX;
            if is_full || begun.catching_up.is_some() {
                return;
            }
            match self.begin_channel(slot, id, &asked, begun) {
                Ok(()) => {}
                Err(error) => begun.reply(id, &Reply::Refused(error)),
            }
            if begun.waits.is_some() {
                return;
            }
            begun.obeyed += 1;
        }
    }

    /// Begins one channel, unless something has to be done before.
    ///
    /// # Errors
    /// Why it cannot begin.
    fn begin_channel(
        &mut self,
        slot: u32,
        id: u32,
        asked: &Subscription,
        begun: &mut Begun,
    ) -> Result<(), ClientError> {
        if asked.has_token {
            return Err(ClientError::NOT_AVAILABLE);
        }
        let channel = Interest::read([&asked.channel[..]], begun.grants.clone(), 1);
        let channel = Arc::new(channel.map_err(|_| ClientError::UNKNOWN_CHANNEL)?);
        // Before anything waits or is looked up: that tells nobody whether there is something.
        let is_forbidden = |name: &TopicName| self.shared.is_private(name) && !begun.grants.cover(name);
        if channel.names().any(is_forbidden) {
            return Err(ClientError::PERMISSION_DENIED);
        }
        if let Some(reader) = self.seats.reader_of(slot) {
            if self.view.reads(reader, &channel) {
                return Err(ClientError::ALREADY_SUBSCRIBED);
            }
            let (count, patterns) = self.view.counts(reader);
            let has_pattern = channel.patterns_count() > 0;
            if count >= INTERESTS_PER_SOCKET_MAX || (has_pattern && patterns >= PATTERNS_PER_READER_MAX) {
                return Err(ClientError::LIMIT_EXCEEDED);
            }
        }
        let own = self.view.version();
        let (start, is_known) = start_of(asked, own);
        let batch = match self.view.first((&channel, begun.client), begun.form, start) {
            First::Batch(batch) => batch,
            First::Later(awaited) => {
                begun.waits = Some((channel, awaited));
                return Ok(());
            }
            First::Full => return Err(ClientError::TOO_MANY_REQUESTS),
        };
        let is_over = batch.number >= own.number;
        if is_over && !self.add_channel(slot, &channel, begun.client) {
            return Err(ClientError::TOO_MANY_REQUESTS);
        }
        let recovered = asked.recover.as_ref().map(|_| is_known && !batch.has_gap);
        begun.reply(id, &Reply::Subscribed { from: Version { number: batch.from, ..own }, recovered });
        begun.slices.extend(batch.slices);
        begun.catching_up = (!is_over).then_some((channel, batch.number));
        Ok(())
    }

    /// Goes on with a channel that owes more than one delivery. Its command was answered.
    fn catch_up(&mut self, slot: u32, channel: Arc<Interest>, number: u64, begun: &mut Begun) {
        let own = self.view.version();
        let start = Start::After(Version { number, ..own });
        match self.view.first((&channel, begun.client), begun.form, start) {
            First::Batch(batch) => {
                begun.slices.extend(batch.slices);
                if batch.number < own.number {
                    begun.catching_up = Some((channel, batch.number));
                } else {
                    begun.is_full = !self.add_channel(slot, &channel, begun.client);
                }
            }
            First::Later(awaited) => {
                begun.catching_up = Some((channel.clone(), number));
                begun.waits = Some((channel, awaited));
            }
            First::Full => begun.is_full = true,
        }
    }

    /// From now on the WebSocket reads a channel that owes nothing any more. Whether there is room for that.
    fn add_channel(&mut self, slot: u32, channel: &Arc<Interest>, client: u64) -> bool {
        match self.seats.reader_of(slot).is_some() {
            true => self.waves.widen(&mut self.view, &mut self.seats, slot, (channel, client)),
            false => self.begin_reading(slot, (channel, client)),
        }
    }

    /// Tells the client, and leaves what the channels owe to be sent.
    fn carry_out(&mut self, slot: u32, begun: Begun, open: &mut Open<'_>) -> Obeyed {
        let Begun { obeyed, language, replies, slices, catching_up, waits, is_full, .. } = begun;
        self.counts().commands.fetch_add(obeyed as u64, Relaxed);
        let Some(client) = self.client(slot) else { return Obeyed::Done };
        client.commands.drain(..obeyed.min(client.commands.len()));
        client.catching_up = catching_up;
        client.held = waits.as_ref().map(|(channel, _)| channel.clone());
        if is_full {
            // The client comes back, with what it has.
            return Obeyed::Close(Closing::FULL);
        }
        if let Some(socket) = self.seats.socket(slot) {
            socket.pending = Pending::of(&slices);
        }
        if !replies.is_empty() {
            say(language, &replies, open);
        }
        waits.map_or(Obeyed::Later, |(_, awaited)| Obeyed::Waits(Wait::View(awaited)))
    }

    pub(super) fn unsubscribe(&mut self, to: Addressee, channel: &str) -> Obeyed {
        let slot = to.slot;
        if !self.is_settled(slot) {
            return self.unsettled(slot);
        }
        let number = self.client(slot).map_or(0, |client| client.number);
        if let (Some(reader), Ok(channel)) =
            (self.seats.reader_of(slot), Interest::read([channel], Grants::default(), 1))
            && self.view.reads(reader, &channel)
        {
            let (count, _) = self.view.counts(reader);
            if count == 1 {
                self.end_reading(slot);
            } else if !self.waves.narrow(&mut self.view, &mut self.seats, slot, (&channel, number)) {
                return to.refuse(ClientError::TOO_MANY_REQUESTS);
            }
        }
        to.reply(&Reply::Unsubscribed)
    }
}

/// Where a channel begins, and whether that is where its client was.
fn start_of(asked: &Subscription, own: Version) -> (Start, bool) {
    let Some((epoch, number)) = &asked.recover else { return (Start::Values, false) };
    match *epoch == own.epoch.to_string() && *number <= own.number {
        true => (Start::After(Version { number: *number, ..own }), true),
        // Counted as unknown, and answered by a snapshot.
        false => (Start::After(Version { epoch: Epoch(!own.epoch.0), number: *number }), false),
    }
}
