//! Live data as bytes, for the process that takes over from this one: numberings, topics and rings.
//!
//! It owns the layout: frames of a kind, a length (little endian) and so many bytes. It must never trust a
//! length, nor take a part for the whole: what ends before its last frame is a fault.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};

use crate::letter::{Letter, News};
use crate::limits::CARRIED_FRAME_BYTES_MAX;
use crate::name::TopicName;
use crate::state::{KeptState, KeptTopic, kind_code, kind_of, record};
use crate::topic::TopicId;
use crate::version::Epoch;

/// The layout written here.
const LAYOUT: u8 = 1;
/// A numbering begins: the layout, the epoch, the last number, the name of its site.
const STATE: u8 = b's';
/// A topic: its kind, the number of the last update that left its ring, its name.
const TOPIC: u8 = b't';
/// An update: its number, the places of the topics whose rings hold it, and its record.
const UPDATE: u8 = b'u';
/// All was told.
const END: u8 = b'e';

/// Writes what a hub holds, by its introduction. `site` is the name under which it is read.
///
/// # Errors
/// Nobody reads any more.
pub fn write_state(site: &str, introduction: &Letter, out: &mut impl Write) -> io::Result<()> {
    let numbers = [introduction.epoch.0.to_le_bytes(), introduction.number.to_le_bytes()].concat();
    frame(STATE, &[&[LAYOUT], &numbers[..], site.as_bytes()], out)?;
    let mut dropped: BTreeMap<TopicId, u64> = BTreeMap::new();
    for news in introduction.news.iter() {
        if let News::Dropped(place) = news {
            dropped.insert(place.topic, place.number);
        }
    }
    let left = |id: &TopicId| dropped.get(id).copied().unwrap_or(0);
    let mut places: BTreeMap<TopicId, u32> = BTreeMap::new();
    for news in introduction.news.iter() {
        match news {
            News::Topic(topic) => {
                places.insert(topic.id, places.len() as u32);
                let dropped_to = left(&topic.id).to_le_bytes();
                frame(TOPIC, &[&[kind_code(topic.kind)], &dropped_to, topic.name.as_str().as_bytes()], out)?;
            }
            News::Update(update, _) => {
                let holds = |(id, _): &&(TopicId, TopicName)| left(id) < update.number;
                let holders = update.topics.iter().filter(holds).filter_map(|(id, _)| places.get(id));
                let holders: Vec<u8> = holders.flat_map(|place| place.to_le_bytes()).collect();
                let count = (holders.len() as u32 / 4).to_le_bytes();
                let parts = [&update.number.to_le_bytes(), &count[..], &holders, &record::write(update)];
                frame(UPDATE, &parts, out)?;
            }
            News::Dropped(_) | News::Forgotten(_) | News::Form(..) | News::FormsDropped(_) => {}
        }
    }
    Ok(())
}

/// Writes that there is no further state.
///
/// # Errors
/// Nobody reads any more.
pub fn write_end(out: &mut impl Write) -> io::Result<()> {
    frame(END, &[], out)?;
    out.flush()
}

fn frame(kind: u8, parts: &[&[u8]], out: &mut impl Write) -> io::Result<()> {
    let length = parts.iter().map(|part| part.len()).sum::<usize>() as u32;
    out.write_all(&[kind])?;
    out.write_all(&length.to_le_bytes())?;
    parts.iter().try_for_each(|part| out.write_all(part))
}

/// Reads what was written up to its end: states by the names of their sites.
///
/// # Errors
/// It ends before, or is not what [`write_state`] writes.
pub fn read_states(input: &mut impl Read) -> io::Result<BTreeMap<String, KeptState>> {
    let mut states = BTreeMap::new();
    let mut present: Option<(String, KeptState)> = None;
    loop {
        let (kind, payload) = read_frame(input)?;
        let is_read = match (kind, &mut present) {
            (STATE | END, _) => {
                states.extend(present.take());
                if kind == END {
                    return Ok(states);
                }
                present = state(&payload);
                present.is_some()
            }
            (TOPIC, Some((_, state))) => topic(&payload).map(|topic| state.topics.push(topic)).is_some(),
            (UPDATE, Some((_, state))) => take_update(&payload, state).is_some(),
            _ => false,
        };
        if !is_read {
            let what = "it is of another version, or damaged".to_owned();
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
    }
}

fn read_frame(input: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    input.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let length = u64::from(u32::from_le_bytes(length));
    if length > CARRIED_FRAME_BYTES_MAX {
        return Err(io::Error::new(ErrorKind::InvalidData, format!("a part of it has {length} bytes")));
    }
    let mut payload = Vec::new();
    if (input.take(length).read_to_end(&mut payload)? as u64) < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok((kind, payload))
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*number), rest))
}

fn state(payload: &[u8]) -> Option<(String, KeptState)> {
    let (&layout, rest) = payload.split_first()?;
    let (epoch, rest) = number(rest)?;
    let (last, site) = number(rest)?;
    let state = KeptState { epoch: Some(Epoch(epoch)), number: last, ..KeptState::default() };
    (layout == LAYOUT).then_some((String::from_utf8(site.to_vec()).ok()?, state))
}

fn topic(payload: &[u8]) -> Option<KeptTopic> {
    let (&kind, rest) = payload.split_first()?;
    let (dropped_to, name) = number(rest)?;
    let name = std::str::from_utf8(name).ok()?;
    let name = TopicName::new(name).or_else(|_| TopicName::of_server(name)).ok()?;
    Some(KeptTopic { name, kind: kind_of(kind)?, dropped_to, updates: Vec::new() })
}

fn take_update(payload: &[u8], state: &mut KeptState) -> Option<()> {
    let (number, rest) = number(payload)?;
    let (count, rest) = rest.split_first_chunk::<4>()?;
    let holders_bytes = usize::try_from(u32::from_le_bytes(*count)).ok()?.checked_mul(4)?;
    let (holders, record) = rest.split_at_checked(holders_bytes)?;
    let update = record::read(number, record)?;
    for place in holders.as_chunks::<4>().0 {
        let topic = state.topics.get_mut(usize::try_from(u32::from_le_bytes(*place)).ok()?)?;
        topic.updates.push(update.clone());
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{Hub, HubSettings, Publication};
    use crate::topic::{Kind, TopicRules};
    use crate::update::Value;

    fn settings() -> HubSettings {
        let mut settings = HubSettings::default();
        let log = TopicRules { kind: Kind::Log, ring_entries: 3, ..TopicRules::default() };
        settings.add_rules("l.*", log).unwrap();
        settings.add_rules("k.*", TopicRules { keep_ms: 50, ..TopicRules::default() }).unwrap();
        settings
    }

    fn publish(hub: &mut Hub, topics: &[&str], value: &str, now_ms: u64) {
        let topics: Vec<_> = topics.iter().map(|name| TopicName::new(name).unwrap()).collect();
        let publication = Publication::new(topics[0].clone(), Value::of_bytes(value.as_bytes()));
        let publication = Publication { topics, id: Some(format!("id-{value}").into()), ..publication };
        hub.publish(publication, now_ms).unwrap();
    }

    /// A hub with a log that has lost updates, one update of two topics, and a topic that has begun anew.
    fn hub() -> Hub {
        let mut hub = Hub::new(settings(), Epoch(0xabc));
        publish(&mut hub, &["k.a", "v"], "old", 0);
        hub.tick(100);
        publish(&mut hub, &["k.a"], "new", 100);
        (0..5).for_each(|count| publish(&mut hub, &["l.a"], &count.to_string(), 100));
        publish(&mut hub, &["l.a", "w"], "both", 100);
        hub
    }

    fn carried() -> Vec<u8> {
        let mut bytes = Vec::new();
        write_state("a.example", &hub().introduction(), &mut bytes).unwrap();
        write_state("", &Hub::new(settings(), Epoch(7)).introduction(), &mut bytes).unwrap();
        write_end(&mut bytes).unwrap();
        bytes
    }

    /// What a hub tells, but for the numbers of topics, which are given anew.
    fn told(hub: &Hub) -> Vec<String> {
        let introduction = hub.introduction();
        let mut names = BTreeMap::new();
        for news in introduction.news.iter() {
            if let News::Topic(topic) = news {
                names.insert(topic.id, topic.name.as_str().to_owned());
            }
        }
        let mut told: Vec<_> = introduction
            .news
            .iter()
            .map(|news| match news {
                News::Topic(topic) => format!("{} {:?}", topic.name.as_str(), topic.kind),
                News::Dropped(place) => format!("{} to {}", names[&place.topic], place.number),
                News::Update(update, _) => {
                    let held = update.topics.iter().filter_map(|(id, _)| names.get(id));
                    let held: Vec<_> = held.collect();
                    format!("{} {held:?} {:?} {:?}", update.number, update.value, update.id)
                }
                News::Forgotten(_) | News::Form(..) | News::FormsDropped(_) => String::new(),
            })
            .collect();
        told.sort();
        told
    }

    #[test]
    fn a_hub_reads_as_it_was_written() {
        let mut states = read_states(&mut &carried()[..]).unwrap();
        let state = states.remove("a.example").unwrap();
        let restored = Hub::restore(settings(), state, Epoch(1), 0);
        assert_eq!(restored.version(), hub().version());
        assert_eq!(told(&restored), told(&hub()));
        let empty = states.remove("").unwrap();
        assert_eq!((empty.epoch, empty.number, empty.topics.len()), (Some(Epoch(7)), 0, 0));
    }

    #[test]
    fn no_part_is_taken_for_the_whole() {
        let bytes = carried();
        for cut in 0..bytes.len() {
            let fault = read_states(&mut &bytes[..cut]).unwrap_err();
            assert_eq!(fault.kind(), ErrorKind::UnexpectedEof, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_something_else_is_refused() {
        let mut of_another = carried();
        of_another[5] = LAYOUT + 1;
        let long = [&[STATE][..], &u32::MAX.to_le_bytes()].concat();
        let no_state = [&[TOPIC][..], &0_u32.to_le_bytes()].concat();
        for bytes in [of_another, long, no_state] {
            assert_eq!(read_states(&mut &bytes[..]).unwrap_err().kind(), ErrorKind::InvalidData);
        }
    }
}
