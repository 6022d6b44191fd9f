//! Values as events: read as they were written, line ends aside; and any bytes as a stream. It must never
//! depend on how a stream is split.
#![cfg_attr(fuzzing, no_main)]

use staunch_protocol::event_stream::{EventFrame, EventReader, ReadEvent};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<ReadEvent> {
    let (mut reader, mut events) = (EventReader::new(), Vec::new());
    for piece in pieces {
        reader.read(piece, |event| events.push(event)).unwrap();
    }
    events
}

pub(crate) fn judge(bytes: &[u8]) {
    assert_eq!(read([bytes].into_iter()), read(bytes.chunks(1)));
    let value = String::from_utf8_lossy(bytes);
    let mut stream = Vec::new();
    EventFrame { id: Some("a-1"), kind: None, retry_ms: Some(1), data: &value }.append(&mut stream).unwrap();
    let data = value.replace("\r\n", "\n").replace('\r', "\n");
    let expected = ReadEvent { last_id: "a-1".into(), kind: "message".into(), data };
    assert_eq!(read([&stream[..]].into_iter()), [expected]);
}
