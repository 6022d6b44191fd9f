//! The program against the frames it must write, one call at a time: nothing is sent.
//!
//! It must never run on live frames.

use super::super::frame::Ends;
use super::super::frame::tests::CASES;
use super::*;

const XDP_DROP: u32 = 1;
const XDP_REDIRECT: u32 = 4;
const SECOND: Duration = Duration::from_secs(1);

fn template(to: &str, sources: &str) -> Template {
    let ends = Ends { from: [2, 0, 0, 0, 0, 2], to: [2, 0, 0, 0, 0, 1] };
    Template::new(ends, to.parse().unwrap(), sources.parse().unwrap(), 42)
}

/// `None`, with the reason printed, where programs cannot be loaded; with `CI=true` that is a panic.
fn loaded(
    template: &Template,
    rate_per_s: Option<f64>,
    duration: Duration,
) -> Option<(LiveFrames, FrameCounts)> {
    let link = route::link("lo").unwrap();
    if let Some(names) = super::super::privilege::lacks(super::super::Method::LiveFrames) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no BPF: {names}");
        println!("skipped: this process lacks {names}");
        return None;
    }
    Some(load(template, &link, rate_per_s, Some(duration)).unwrap())
}

/// What the program says to a frame, and what it makes of it.
fn call(live: &mut LiveFrames, frame: &[u8]) -> (u32, Vec<u8>) {
    let mut made = vec![0; frame.len()];
    let mut options = TestRunOptions::new();
    options.data_in = Some(frame);
    options.data_out = Some(&mut made);
    let verdict = program(&mut live.ebpf).unwrap().test_run(options).unwrap().return_value;
    (verdict, made)
}

#[test]
fn the_program_writes_the_same_frames() {
    for (to, sources) in CASES {
        let template = template(to, sources);
        let Some((mut live, reader)) = loaded(&template, None, SECOND * 3600) else { return };
        let mut expected = vec![0; template.bytes.len()];
        for number in 0..200 {
            // Pages come back with anything in them.
            let (verdict, made) = call(&mut live, &vec![number as u8; expected.len()]);
            template.write(number, &mut expected);
            assert_eq!((verdict, &made), (XDP_REDIRECT, &expected), "frame {number} to {to} from {sources}");
        }
        assert_eq!(reader.progress().sent, 200);
    }
}

#[test]
fn nothing_is_sent_before_its_time_or_after_the_end() {
    let template = template("10.0.0.1:80", "10.9.0.0/16");
    for (rate, duration) in [(Some(0.001), SECOND * 3600), (None, Duration::from_nanos(1))] {
        let Some((mut live, reader)) = loaded(&template, rate, duration) else { return };
        let verdicts: Vec<u32> = (0..3).map(|_| call(&mut live, &template.bytes).0).collect();
        assert_eq!(verdicts, [XDP_REDIRECT, XDP_DROP, XDP_DROP]);
        assert_eq!(reader.progress().sent, 1);
    }
}

#[test]
fn what_is_too_late_is_given_up() {
    let template = template("10.0.0.1:80", "10.9.0.0/16");
    let Some((mut live, mut reader)) = loaded(&template, Some(1000.0), SECOND * 3600) else { return };
    call(&mut live, &template.bytes);
    let [started_ns, due, sent, given_up, seen_ns] = reader.map.get(&0, 0).unwrap();
    reader.map.set(0, [started_ns - 10 * 1_000_000_000, due, sent, given_up, seen_ns], 0).unwrap();
    call(&mut live, &template.bytes);
    let progress = reader.progress();
    // Of 10 s, a tenth of a second is made up for.
    assert!(progress.given_up >= 9_898 && progress.sent == 2, "{progress:?}");
}

#[test]
fn a_frame_that_is_too_short_is_not_written() {
    let template = template("10.0.0.1:80", "10.9.0.0/16");
    let Some((mut live, reader)) = loaded(&template, None, SECOND * 3600) else { return };
    assert_eq!(call(&mut live, &template.bytes[..60]).0, XDP_DROP);
    assert_eq!(reader.progress().sent, 0);
}
