//! Records as an application writes and reads them, by the letter of the specification.

pub(crate) const STDOUT: u8 = 6;
pub(crate) const STDERR: u8 = 7;

/// A record of request 1.
pub(crate) fn record(kind: u8, content: &[u8], padding_bytes: u8) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let head = [1, kind, 0, 1, high, low, padding_bytes, 0];
    [&head[..], content, &vec![0xff; usize::from(padding_bytes)]].concat()
}

/// The end of a request.
pub(crate) fn end(protocol_status: u8) -> Vec<u8> {
    record(3, &[0, 0, 0, 0, protocol_status, 0, 0, 0], 0)
}

/// The kind and the content of each record of these bytes.
pub(crate) fn records(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut records = Vec::new();
    while let Some(([1, kind, 0, 1, high, low, padding_bytes, 0], rest)) = bytes.split_first_chunk() {
        let (content, rest) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        records.push((*kind, content.to_vec()));
        bytes = &rest[usize::from(*padding_bytes)..];
    }
    assert!(bytes.is_empty(), "no record: {}", bytes.escape_ascii());
    records
}

/// The names and values of a stream of parameters.
pub(crate) fn variables(mut bytes: &[u8]) -> Vec<(String, String)> {
    let length = |bytes: &mut &[u8]| match **bytes {
        [short @ ..=0x7f, ref rest @ ..] => {
            *bytes = rest;
            usize::from(short)
        }
        [a, b, c, d, ref rest @ ..] => {
            *bytes = rest;
            u32::from_be_bytes([a & 0x7f, b, c, d]) as usize
        }
        _ => panic!("half a length"),
    };
    let mut variables = Vec::new();
    while !bytes.is_empty() {
        let (name_bytes, value_bytes) = (length(&mut bytes), length(&mut bytes));
        let (name, rest) = bytes.split_at(name_bytes);
        let (value, rest) = rest.split_at(value_bytes);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        variables.push((text(name), text(value)));
        bytes = rest;
    }
    variables
}
