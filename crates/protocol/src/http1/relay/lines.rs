//! Field lines, as they are written.

/// Appends a field.
pub(super) fn push_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    [name, b": ", value, b"\r\n"].iter().for_each(|part| out.extend_from_slice(part));
}

/// Appends a list in one line: what others said, and behind it what `own` writes, if it writes anything.
pub(super) fn push_list<'v>(
    name: &[u8],
    values: impl Iterator<Item = &'v [u8]>,
    out: &mut Vec<u8>,
    own: impl FnOnce(&mut Vec<u8>),
) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    let mut before = out.len();
    for value in values.filter(|value| !value.is_empty()) {
        out.extend_from_slice(value);
        before = out.len();
        out.extend_from_slice(b", ");
    }
    let own_start = out.len();
    own(out);
    if out.len() == own_start {
        out.truncate(before);
    }
    out.extend_from_slice(b"\r\n");
}
