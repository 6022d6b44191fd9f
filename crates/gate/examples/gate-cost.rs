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
/// them knows nothing of others. Who shares a core with another machine is held up for seconds at a time, so
/// the runs of a kind are spread over all the time there is.
const REPEAT_COUNT: u32 = 50_000;
const RUN_COUNT: u32 = 200;
/// The orders hold for an hour.
const LEASE_NS: u64 = 3_600_000_000_000;
const ROOM: u64 = u64::MAX / 4;

/// Shown to a program that protects one port; the others are shown to one that protects two.
const ONE_PORT: &str = "-one-port";

const UNKNOWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
const KNOWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

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
    let mut empty = std::env::args().nth(1).map(|file| Empty::load(&file)).transpose()?;
    let attach = Attach { ports: &[80, 443], ..Attach::default() };
    let sizes = Sizes { known: 1, ..Sizes::default() };
    let mut trial = Trial::load(&attach, &sizes).map_err(|error| error.to_string())?;
    trial.learn(IpAddr::from(KNOWN), 1).map_err(|error| error.to_string())?;
    let attach = Attach { ports: &[80], ..Attach::default() };
    let mut one_port = Trial::load(&attach, &sizes).map_err(|error| error.to_string())?;
    let mut fastest: Vec<(&str, u64)> = Vec::new();
    let mut note = |place: usize, name, cost: u64| match fastest.get_mut(place) {
        Some((_, least)) => *least = cost.min(*least),
        None => fastest.push((name, cost)),
    };
    for number in 0..RUN_COUNT {
        let cases = cases(number);
        let places = cases.len();
        for (place, (name, orders, frame)) in cases.into_iter().enumerate() {
            let trial = if name.ends_with(ONE_PORT) { &mut one_port } else { &mut trial };
            trial.give(&orders, now_ns() + LEASE_NS).map_err(|error| error.to_string())?;
            let cost = trial.cost_ns(&frame, REPEAT_COUNT).map_err(|error| error.to_string())?;
            note(place, name, cost);
        }
        if let Some(empty) = &mut empty {
            let cost = empty.cost_ns().map_err(|error| error.to_string())?;
            note(places, "empty", cost);
        }
    }
    fastest.iter().for_each(|(name, cost)| println!("{name} {cost}"));
    Ok(())
}

/// What is shown in a run: name, orders, frame. Each run has SYNs of its own, or they would be those that
/// were shed a second ago.
fn cases(number: u32) -> [(&'static str, Orders, Vec<u8>); 14] {
    let shed = Orders { state: State::Shedding, verify: true, prefix_limit: u32::MAX, ..Orders::default() };
    let open = Orders::default();
    let rich = Orders { credits: [ROOM; 3], burst: [ROOM; 3], ..shed };
    let fair = Orders { prefix_limit: 1, ..rich };
    let syn = |source| ipv4(6, source, segment(80, SYN, number));
    [
        ("other-arp", shed, arp()),
        ("other-udp", shed, ipv4(17, UNKNOWN, segment(80, SYN, number))),
        ("other-port", shed, ipv4(6, UNKNOWN, segment(8080, SYN, number))),
        ("other-segment", shed, ipv4(6, UNKNOWN, segment(80, ACK, number))),
        ("other-segment-ipv6", shed, ipv6(segment(80, ACK, number))),
        ("syn-shed", shed, syn(UNKNOWN)),
        ("syn-shed-ipv6", shed, ipv6(segment(80, SYN, number))),
        ("syn-shed-known", shed, syn(KNOWN)),
        ("syn-shed-fair", fair, syn(UNKNOWN)),
        ("syn-pass-open", open, syn(UNKNOWN)),
        ("syn-pass-credit", rich, syn(UNKNOWN)),
        ("syn-pass-known", rich, syn(KNOWN)),
        ("other-segment-one-port", shed, ipv4(6, UNKNOWN, segment(80, ACK, number))),
        ("syn-shed-one-port", shed, syn(UNKNOWN)),
    ]
}

/// A program that does nothing.
struct Empty(Ebpf);

impl Empty {
    fn load(file: &str) -> Result<Self, String> {
        let mut object = Ebpf::load_file(file).map_err(|error| format!("{file}: {error}"))?;
        let program = pass(&mut object).map_err(|error| format!("{file}: {error}"))?;
        program.load().map_err(|error| format!("{file}: {error}"))?;
        Ok(Self(object))
    }

    fn cost_ns(&mut self) -> Result<u64, Box<dyn std::error::Error>> {
        let frame = arp();
        let mut options = TestRunOptions::new();
        options.data_in = Some(&frame);
        options.repeat = REPEAT_COUNT;
        Ok(pass(&mut self.0)?.test_run(options)?.duration.as_nanos() as u64)
    }
}

fn pass(object: &mut Ebpf) -> Result<&mut Xdp, Box<dyn std::error::Error>> {
    Ok(object.program_mut("pass").ok_or("no program `pass`")?.try_into()?)
}

fn arp() -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..14].copy_from_slice(&[8, 6]);
    frame
}

fn segment(port: u16, flags: u8, sequence: u32) -> [u8; 20] {
    let mut segment = [0; 20];
    segment[..2].copy_from_slice(&40_000_u16.to_be_bytes());
    segment[2..4].copy_from_slice(&port.to_be_bytes());
    segment[4..8].copy_from_slice(&sequence.to_be_bytes());
    segment[12] = 5 << 4;
    segment[13] = flags;
    segment
}

fn ipv4(protocol: u8, source: Ipv4Addr, segment: [u8; 20]) -> Vec<u8> {
    let mut frame = vec![0; 34];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&40_u16.to_be_bytes());
    frame[23] = protocol;
    frame[26..30].copy_from_slice(&source.octets());
    frame.extend(segment);
    frame.resize(60, 0);
    frame
}

fn ipv6(segment: [u8; 20]) -> Vec<u8> {
    let mut frame = vec![0; 54];
    frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    frame[14] = 6 << 4;
    frame[18..20].copy_from_slice(&20_u16.to_be_bytes());
    frame[20] = 6;
    frame[22..26].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
    frame.extend(segment);
    frame
}
