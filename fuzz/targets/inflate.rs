//! A compressed message of any bytes: inflated within the limit, or refused. It must never be longer.
#![cfg_attr(fuzzing, no_main)]

use staunch_protocol::websocket::{Happening, Inflater, Opcode, Role, Session, append_frame};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(payload: &[u8]) {
    let mut frame = Vec::new();
    append_frame(Opcode::Binary, true, Some([1, 2, 3, 4]), payload, &mut frame);
    let (mut session, mut inflater) = (Session::new(Role::Server, true, 65_536), Inflater::default());
    match session.step(&mut frame, &mut inflater) {
        Ok((Some(Happening::Binary(message)), rest)) => {
            assert!(message.len() <= 65_536 && rest.is_empty());
        }
        Ok(other) => panic!("{other:?}"),
        Err(fault) => assert!([1007, 1009].contains(&fault.code.number())),
    }
}
