//! Frames of a WebSocket, whole and byte by byte: the same happens, or the same fault. It must never hold
//! more than was sent.
#![cfg_attr(fuzzing, no_main)]

use staunch_protocol::websocket::{Inflater, Role, Session};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

fn run(pieces: &mut dyn Iterator<Item = &mut [u8]>) -> Vec<String> {
    let (mut session, mut inflater) = (Session::new(Role::Server, true, 4096), Inflater::default());
    let mut told = Vec::new();
    for mut rest in pieces {
        loop {
            match session.step(rest, &mut inflater) {
                Ok((Some(happening), behind)) => {
                    told.push(format!("{happening:?}"));
                    rest = behind;
                }
                Ok((None, _)) => break,
                Err(fault) => return [told, vec![fault.to_string()]].concat(),
            }
        }
        assert!(session.held_bytes() <= 64 * 1024);
    }
    told
}

pub(crate) fn judge(bytes: &[u8]) {
    let (mut whole, mut single) = (bytes.to_vec(), bytes.to_vec());
    assert_eq!(run(&mut [&mut whole[..]].into_iter()), run(&mut single.chunks_mut(1)));
}
