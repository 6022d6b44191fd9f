//! A DOSTP frame, as it is and with its check made right: what is understood is written again as it was. It
//! must never be read beyond its end, nor the frames behind it without end.
#![cfg_attr(fuzzing, no_main)]

use staunch_dostp::{Fault, Frame, JoinedFrames};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    for check in 0..=u8::MAX {
        if let Ok(frame) = Frame::decode(&bytes, 3) {
            assert_eq!(frame.header.encode(3)[..], bytes[..16]);
            assert!(16 + frame.payload.len() + frame.trailer.len() <= bytes.len());
            assert_eq!(frame.greeting().is_some(), frame.header.kind.is_control());
            frame.is_sum_right(3);
        }
        if Frame::decode(&bytes, 3) != Err(Fault::Check) {
            break;
        }
        bytes[15] = check;
    }
    let frames_max = bytes.len() / 16 + 1;
    let mut joined = JoinedFrames::new(&mut bytes);
    assert!(std::iter::from_fn(|| joined.next_frame(3)).count() <= frames_max);
}
