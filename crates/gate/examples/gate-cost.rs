//! What a frame costs the gate's program, by test runs in the kernel: one line a kind, name and nanoseconds.
//! A file given holds a program `pass` that does nothing: its cost, `empty`, is that of a test run alone.
//!
//! It owns the frames that are shown. It must never judge a figure: `cargo xtask bench gate-cost` does.

use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;

use aya::Ebpf;
use aya::programs::{TestRun, TestRunOptions, Xdp};
use staunch_gate::observation::{Orders, State};
use staunch_gate::program::{Attach, Sizes, Trial};
use staunch_netio::clock::now_ns;

/// A run is some milliseconds, so that most end before another thread is put on the processor; the fastest of
/// them knows nothing of others.
const REPEAT_COUNT: u32 = 50_000;
const RUN_COUNT: u32 = 40;
/// The orders hold for an hour.
const LEASE_NS: u64 = 3_600_000_000_000;
const ROOM: u64 = u64::MAX / 4;

const SYN: u8 = 2;
const ACK: u8 = 16;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), String> {
    if let Some(file) = std::env::args().nth(1) {
        println!("empty {}", empty(&file).map_err(|error| format!("{file}: {error}"))?);
    }
    let attach = Attach { ports: &[80, 443], ..Attach::default() };
    let mut trial =
        Trial::load(&attach, &Sizes { known: 1, ..Sizes::default() }).map_err(|error| error.to_string())?;
    trial.learn(IpAddr::from(Ipv4Addr::new(192, 0, 2, 9)), 1).map_err(|error| error.to_string())?;
    let shed = Orders { state: State::Shedding, verify: true, prefix_limit: u32::MAX, ..Orders::default() };
    let open = Orders::default();
    let rich = Orders { credits: [ROOM; 3], burst: [ROOM; 3], ..shed };
    let fair = Orders { prefix_limit: 1, ..rich };
    let (unknown, known) = ([192, 0, 2, 7], [192, 0, 2, 9]);
    let cases = [
        ("other-arp", &shed, arp()),
        ("other-udp", &shed, ipv4(17, unknown, 80, SYN)),
        ("other-port", &shed, ipv4(6, unknown, 8080, SYN)),
        ("other-segment", &shed, ipv4(6, unknown, 80, ACK)),
        ("other-segment-ipv6", &shed, ipv6(ACK)),
        ("syn-shed", &shed, ipv4(6, unknown, 80, SYN)),
        ("syn-shed-ipv6", &shed, ipv6(SYN)),
        ("syn-shed-known", &shed, ipv4(6, known, 80, SYN)),
        ("syn-shed-fair", &fair, ipv4(6, unknown, 80, SYN)),
        ("syn-pass-open", &open, ipv4(6, unknown, 80, SYN)),
        ("syn-pass-credit", &rich, ipv4(6, unknown, 80, SYN)),
        ("syn-pass-known", &rich, ipv4(6, known, 80, SYN)),
    ];
    for (name, orders, frame) in cases {
        trial.give(orders, now_ns() + LEASE_NS).map_err(|error| error.to_string())?;
        let cost = fastest(|| trial.cost_ns(&frame, REPEAT_COUNT)).map_err(|error| error.to_string())?;
        println!("{name} {cost}");
    }
    Ok(())
}

/// The least of some runs.
fn fastest<E>(mut run: impl FnMut() -> Result<u64, E>) -> Result<u64, E> {
    let mut fastest = u64::MAX;
    for _ in 0..RUN_COUNT {
        fastest = fastest.min(run()?);
    }
    Ok(fastest)
}

fn empty(file: &str) -> Result<u64, Box<dyn std::error::Error>> {
    let mut object = Ebpf::load_file(file)?;
    let program: &mut Xdp = object.program_mut("pass").ok_or("no program `pass`")?.try_into()?;
    program.load()?;
    let frame = arp();
    fastest(|| {
        let mut options = TestRunOptions::new();
        options.data_in = Some(&frame);
        options.repeat = REPEAT_COUNT;
        Ok(program.test_run(options)?.duration.as_nanos() as u64)
    })
}

fn arp() -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..14].copy_from_slice(&[8, 6]);
    frame
}

fn segment(port: u16, flags: u8) -> [u8; 20] {
    let mut segment = [0; 20];
    segment[..2].copy_from_slice(&40_000_u16.to_be_bytes());
    segment[2..4].copy_from_slice(&port.to_be_bytes());
    segment[12] = 5 << 4;
    segment[13] = flags;
    segment
}

fn ipv4(protocol: u8, source: [u8; 4], port: u16, flags: u8) -> Vec<u8> {
    let mut frame = vec![0; 34];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&40_u16.to_be_bytes());
    frame[23] = protocol;
    frame[26..30].copy_from_slice(&source);
    frame.extend(segment(port, flags));
    frame.resize(60, 0);
    frame
}

fn ipv6(flags: u8) -> Vec<u8> {
    let mut frame = vec![0; 54];
    frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    frame[14] = 6 << 4;
    frame[18..20].copy_from_slice(&20_u16.to_be_bytes());
    frame[20] = 6;
    frame[22..26].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
    frame.extend(segment(80, flags));
    frame
}
