use super::*;

#[test]
fn an_answer_in_steps() {
    let mut reader = RelayReader::new();
    reader.begin(false);
    let mut input = &b"HTTP/1.1 418 Tea\r\nServer: x\r\nA:b\r\nTransfer-Encoding: chunked\r\n\r\n\
        3\r\nabc\r\n0\r\nT: u\r\n\r\n"[..];
    let status = Status::from_code(418).unwrap();
    let fields = Fields::new(b"A: b\r\n");
    let head = RelayHead { status, fields, length_bytes: None, has_body: true };
    assert_eq!(reader.next(&mut input), Ok(RelayStep::Head(head)));
    assert_eq!(reader.next(&mut input), Ok(RelayStep::Piece(b"abc")));
    assert_eq!(
        reader.next(&mut input),
        Ok(RelayStep::End { trailers: Fields::new(b"T: u\r\n"), keeps: true })
    );
    assert_eq!(reader.next(&mut input), Ok(RelayStep::More));
    assert_eq!((reader.held_bytes(), input), (0, &b""[..]));
}
