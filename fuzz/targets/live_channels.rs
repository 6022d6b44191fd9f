//! Channels of one WebSocket among others, as commands bring them. It must never read another set of channels
//! than was asked for, nor count less than their names.
#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeSet;
use std::sync::Arc;

use staunch_live::centrifugo::{Ask, Language};
use staunch_live::{
    Audience, Bytes, Coding, Delivery, Epoch, First, Form, Grants, Interest, Joined, Marks, Reader, Shape,
    Start, Transport, View, Waves,
};

struct One(Option<Reader>);

impl Audience for One {
    fn reader(&mut self, _slot: u32) -> &mut Reader {
        self.0.as_mut().expect("the only reader")
    }

    fn deliver(&mut self, _slot: u32, _slices: &[Bytes]) -> Delivery {
        Delivery::Sent
    }
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(bytes: &[u8]) {
    let Ok(commands) = Language::Json.read_commands(bytes) else { return };
    let form = Form::new(Shape::Enveloped, Transport::Socket, Coding::Identity);
    let (mut view, mut waves, mut one) = (View::new(Epoch(1), 10), Waves::new(), One(None));
    let mut model: BTreeSet<String> = BTreeSet::new();
    for command in commands {
        let (text, is_more) = match command.ask {
            Ask::Subscribe(asked) => (asked.channel, true),
            Ask::Unsubscribe(channel) => (channel, false),
            _ => continue,
        };
        let Ok(channel) = Interest::read([&text[..]], Grants::default(), 1).map(Arc::new) else { continue };
        let reads = one.0.as_ref().is_some_and(|reader| view.reads(reader, &channel));
        assert_eq!(reads, model.contains(&text));
        match (reads, is_more) {
            (false, true) => {
                assert!(matches!(view.first((&channel, 1), form, Start::Now), First::Batch(_)));
                model.insert(text);
                if one.0.is_some() {
                    assert!(waves.widen(&mut view, &mut one, 0, (&channel, 1)));
                } else if let Joined::Reader(reader, _) =
                    view.join(0, (&channel, 1), form, Start::Now, Marks::default(), 0)
                {
                    one.0 = Some(reader);
                }
            }
            (true, false) => {
                model.remove(&text);
                if model.is_empty() {
                    waves.leave(&mut view, &mut one, 0);
                    one.0 = None;
                } else {
                    assert!(waves.narrow(&mut view, &mut one, 0, (&channel, 1)));
                }
            }
            _ => {}
        }
        let counted = one.0.as_ref().map_or(0, |reader| view.counts(reader).0);
        assert_eq!(counted, model.len());
        let held_bytes = one.0.as_ref().map_or(0, |reader| view.held_bytes(reader));
        assert!(held_bytes >= model.iter().map(String::len).sum());
    }
}
