//! Channels of a WebSocket: what it reads changes while it reads.
//!
//! It must never let a channel begin while its reader is owed something: from the number at which it begins,
//! waves bring everything in one order.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::Open;
use staunch_live::centrifugo::{Ask, ClientError, Command, Subscription, done, refused, subscribed};
use staunch_live::limits::{INTERESTS_PER_SOCKET_MAX, SLICES_PER_DELIVERY_MAX};
use staunch_live::{Bytes, Epoch, First, Form, Grants, Interest, Marks, Reader, Start, Version};

use super::super::pending::Pending;
use super::super::socket::{Closing, Wait};
use super::LiveWorker;
use super::commands::{Obeyed, say};

/// Channels that begin together.
struct Begun {
    form: Form,
    grants: Grants,
    /// What is read then.
    interest: Option<Arc<Interest>>,
    /// How many commands are answered.
    obeyed: usize,
    replies: Vec<String>,
    /// What the channels owe.
    slices: Vec<Bytes>,
    /// The last one owes more, from this number on.
    catching_up: Option<(Arc<Interest>, u64)>,
    /// Forms have to be made before the next one.
    waits: bool,
    /// There is no room for the one that owes more.
    is_full: bool,
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
            false => Obeyed::Waits(Wait::Letter),
        }
    }

    /// Begins the channels that the first commands ask for: one step of its reader for all of them.
    pub(super) fn subscribe_channels(&mut self, slot: u32, open: &mut Open<'_>) -> Obeyed {
        // A client may come from a worker that is ahead of this one.
        if self.is_behind() {
            return Obeyed::Waits(Wait::Letter);
        }
        if !self.is_settled(slot) {
            return self.unsettled(slot);
        }
        let interest = self.interest(slot);
        let Some(socket) = self.seats.socket(slot) else { return Obeyed::Done };
        let form = socket.form;
        let Some(client) = socket.client() else { return Obeyed::Done };
        let holds_form = std::mem::take(&mut client.holds_form);
        let (replies, slices) = (Vec::new(), Vec::new());
        let (grants, before) = (client.rights.reading().0, interest.clone());
        let mut begun = Begun {
            form,
            grants,
            interest,
            obeyed: 0,
            replies,
            slices,
            catching_up: None,
            waits: false,
            is_full: false,
        };
        match client.catching_up.take() {
            Some((channel, number)) => self.catch_up(channel, number, &mut begun),
            None => self.begin_channels(slot, &mut begun),
        }
        if holds_form {
            self.view.waited(form);
        }
        self.carry_out(slot, before, begun, open)
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
            match self.begin_channel(id, &asked, begun) {
                Ok(()) => {}
                Err(Some(error)) => begun.replies.push(refused(id, error)),
                Err(None) => {
                    begun.waits = true;
                    return;
                }
            }
            begun.obeyed += 1;
        }
    }

    /// Begins one channel.
    ///
    /// # Errors
    /// Why it cannot begin; none if forms have to be made before.
    fn begin_channel(
        &mut self,
        id: u32,
        asked: &Subscription,
        begun: &mut Begun,
    ) -> Result<(), Option<ClientError>> {
        if asked.has_token {
            return Err(Some(ClientError::NOT_AVAILABLE));
        }
        let channel = Interest::read([&asked.channel[..]], begun.grants.clone(), 1);
        let channel = Arc::new(channel.map_err(|_| Some(ClientError::UNKNOWN_CHANNEL))?);
        let known = begun.interest.as_deref();
        if known.is_some_and(|interest| interest.includes(&channel)) {
            return Err(Some(ClientError::ALREADY_SUBSCRIBED));
        }
        if known.map_or(0, Interest::count) >= INTERESTS_PER_SOCKET_MAX {
            return Err(Some(ClientError::LIMIT_EXCEEDED));
        }
        let own = self.view.version();
        let (start, is_known) = start_of(asked, own);
        let batch = match self.view.first(&channel, begun.form, start) {
            First::Batch(batch) => batch,
            First::Later => return Err(None),
            First::Full => return Err(Some(ClientError::TOO_MANY_REQUESTS)),
        };
        let recovered = asked.recover.as_ref().map(|_| is_known && !batch.has_gap);
        begun.replies.push(subscribed(id, Version { number: batch.from, ..own }, recovered));
        begun.slices.extend(batch.slices);
        if batch.number < own.number {
            begun.catching_up = Some((channel, batch.number));
        } else {
            begun.add(&channel);
        }
        Ok(())
    }

    /// Goes on with a channel that owes more than one delivery. Its command was answered.
    fn catch_up(&mut self, channel: Arc<Interest>, number: u64, begun: &mut Begun) {
        let own = self.view.version();
        let start = Start::After(Version { number, ..own });
        match self.view.first(&channel, begun.form, start) {
            First::Batch(batch) => {
                begun.slices.extend(batch.slices);
                if batch.number < own.number {
                    begun.catching_up = Some((channel, batch.number));
                } else {
                    begun.add(&channel);
                }
            }
            First::Later => {
                (begun.waits, begun.catching_up) = (true, Some((channel, number)));
            }
            First::Full => begun.is_full = true,
        }
    }

    /// Moves the reader, tells the client, and leaves what the channels owe to be sent.
    fn carry_out(
        &mut self,
        slot: u32,
        before: Option<Arc<Interest>>,
        begun: Begun,
        open: &mut Open<'_>,
    ) -> Obeyed {
        let Begun { interest, obeyed, replies, slices, catching_up, waits, is_full, .. } = begun;
        let has_room = match (&before, &interest) {
            _ if is_full => false,
            (_, None) => true,
            (None, Some(interest)) => self.begin_reading(slot, interest),
            (Some(before), Some(interest)) if before == interest => true,
            (Some(_), Some(interest)) => self.waves.change(&mut self.view, &mut self.seats, slot, interest),
        };
        self.counts().commands.fetch_add(obeyed as u64, Relaxed);
        let Some(client) = self.client(slot) else { return Obeyed::Done };
        client.commands.drain(..obeyed.min(client.commands.len()));
        client.catching_up = catching_up;
        client.holds_form = waits;
        if !has_room {
            // It comes back, with what it has.
            return Obeyed::Close(Closing::FULL);
        }
        if let Some(socket) = self.seats.socket(slot) {
            socket.pending = Pending::of(&slices);
        }
        if !replies.is_empty() {
            say(&replies.join("\n"), open);
        }
        if waits { Obeyed::Waits(Wait::Letter) } else { Obeyed::Later }
    }

    pub(super) fn unsubscribe(&mut self, slot: u32, id: u32, channel: &str, ask: &Ask) -> Obeyed {
        if !self.is_settled(slot) {
            return self.unsettled(slot);
        }
        let left = Interest::read([channel], Grants::default(), 1);
        if let (Some(interest), Ok(channel)) = (self.interest(slot), left) {
            match interest.without(&channel) {
                None => self.end_reading(slot),
                Some(rest) if rest == *interest => {}
                Some(rest) => {
                    let rest = Arc::new(rest);
                    if !self.waves.change(&mut self.view, &mut self.seats, slot, &rest) {
                        return Obeyed::Reply(refused(id, ClientError::TOO_MANY_REQUESTS));
                    }
                }
            }
        }
        Obeyed::Reply(done(id, ask).unwrap_or_default())
    }
}

impl Begun {
    fn add(&mut self, channel: &Arc<Interest>) {
        self.interest = Some(match &self.interest {
            None => Arc::clone(channel),
            Some(interest) => Arc::new(interest.with(channel)),
        });
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
