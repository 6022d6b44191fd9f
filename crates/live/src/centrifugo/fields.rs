//! The wire format of Protobuf (protobuf.dev/programming-guides/encoding): fields in, fields out.
//!
//! It must never know a message: those are in `client.proto`, and the modules beside this one.

/// Longest varint: 64 bits, seven in each byte.
const VARINT_BYTES_MAX: usize = 10;
/// Wire types: numbers, and what has a length before it.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

/// Bytes that are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A kind that no message here has.
    Other,
}

impl<'a> Field<'a> {
    /// The number; 0 of anything else is an error.
    pub(crate) fn number(self) -> Result<u64, Malformed> {
        if let Self::Number(number) = self { Ok(number) } else { Err(Malformed) }
    }

    pub(crate) fn bytes(self) -> Result<&'a [u8], Malformed> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(Malformed) }
    }

    pub(crate) fn text(self) -> Result<String, Malformed> {
        let text = std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)?;
        Ok(text.to_owned())
    }
}

/// The fields of a message, in the order in which they stand.
#[derive(Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next field with its number; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Field<'a>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let field = match tag & 7 {
            VARINT => Field::Number(self.varint()?),
            LENGTH => Field::Bytes(self.delimited()?),
            FIXED64 => self.take(8).map(|_| Field::Other)?,
            FIXED32 => self.take(4).map(|_| Field::Other)?,
            // Groups are of an older Protobuf.
            _ => return Err(Malformed),
        };
        match tag >> 3 {
            0 => Err(Malformed),
            number => Ok(Some((number, field))),
        }
    }

    /// What has its length before it.
    pub(crate) fn delimited(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| Malformed)?)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for place in 0..VARINT_BYTES_MAX {
            let (&byte, rest) = self.0.split_first().ok_or(Malformed)?;
            self.0 = rest;
            // Bits beyond the 64th are none of a number.
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }
}

/// Appends a number without a field.
pub(crate) fn append_varint(mut value: u64, output: &mut Vec<u8>) {
    while value >= 0x80 {
        output.push(value as u8 | 0x80);
        value >>= 7;
    }
    output.push(value as u8);
}

/// Appends a field with a number; none for 0, which is what is read then.
pub(crate) fn append_number(field: u64, value: u64, output: &mut Vec<u8>) {
    if value != 0 {
        append_varint(field << 3 | VARINT, output);
        append_varint(value, output);
    }
}

/// Appends a field with bytes, a text, or a message, also of none.
pub(crate) fn append_bytes(field: u64, bytes: &[u8], output: &mut Vec<u8>) {
    append_varint(field << 3 | LENGTH, output);
    append_varint(bytes.len() as u64, output);
    output.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_is_read() {
        let mut message = Vec::new();
        for (field, value) in [(1, 1), (2, 127), (3, 128), (16, u64::MAX), (u64::MAX >> 3, 300)] {
            append_number(field, value, &mut message);
        }
        append_number(9, 0, &mut message);
        append_bytes(4, b"", &mut message);
        append_bytes(5, &[7; 200], &mut message);
        let mut fields = Fields(&message);
        let mut read = Vec::new();
        while let Some(field) = fields.next().unwrap() {
            read.push(field);
        }
        let numbers = [(1, 1), (2, 127), (3, 128), (16, u64::MAX), (u64::MAX >> 3, 300)];
        let mut expected: Vec<_> = numbers.map(|(field, value)| (field, Field::Number(value))).into();
        expected.extend([(4, Field::Bytes(b"")), (5, Field::Bytes(&[7; 200]))]);
        assert_eq!(read, expected);
    }

    #[test]
    fn fields_of_other_kinds_are_passed_over() {
        let mut fields = Fields(b"\x09\0\0\0\0\0\0\0\0\x15\0\0\0\0\x18\x05");
        assert_eq!(fields.next(), Ok(Some((1, Field::Other))));
        assert_eq!(fields.next(), Ok(Some((2, Field::Other))));
        assert_eq!(fields.next(), Ok(Some((3, Field::Number(5)))));
        assert_eq!(fields.next(), Ok(None));
    }

    #[test]
    fn what_is_no_message() {
        let long = [&[0x08][..], &[0xff; 10], &[0]].concat();
        let cases: [&[u8]; 7] = [b"\x80", b"\x08", b"\x0a\x02a", b"\x0b", b"\x02\0", b"\x0d\0\0\0", &long];
        for bytes in cases {
            assert_eq!(Fields(bytes).next(), Err(Malformed), "{bytes:?}");
        }
    }
}
