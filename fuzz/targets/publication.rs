//! Bodies of publications: JSON, forms, lines whole and byte by byte. It must never tell other lines by a
//! split.
#![cfg_attr(fuzzing, no_main)]

use staunch_live::{LineReader, LinesMax, read_form, read_json};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

fn lines<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let limits = LinesMax { line_bytes: 200, lines: Some(9), bytes: Some(1000) };
    let (mut reader, mut told) = (LineReader::new(limits), Vec::new());
    for piece in pieces {
        reader.read(piece, |number, line| told.push(format!("{number} {line:?}")));
        assert!(reader.held_bytes() <= 1024);
    }
    reader.end(|number, line| told.push(format!("{number} {line:?}")));
    told
}

pub(crate) fn judge(body: &[u8]) {
    let _ = read_json(body, 1);
    let _ = read_form(body);
    assert_eq!(lines([body].into_iter()), lines(body.chunks(1)));
}
