//! Exchanges that are tied to an upstream: cut at every byte on either side, stalled both ways, refused,
//! silent, too many, and too much to hold.

use staunch_engine::Ended;
use staunch_netio::simulated::{Faults, Random, Step};

use crate::reading::{answers, sum};
use crate::world::{Past, World, play_seeds, play_world};

const QUESTION: &[u8] = b"a question of some length";
const REPLY: &[u8] = b"and a reply that is somewhat longer than that";

fn request(target: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Bytes of which no two places are alike.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at + (at >> 8) * 31) as u8).collect()
}

/// Sends everything, and reads until the end.
fn asks(bytes: Vec<u8>) -> Vec<Step> {
    vec![Step::Send(bytes), Step::UntilReceived(usize::MAX)]
}

fn heard(past: &Past, peer: usize) -> (Vec<String>, Vec<u8>) {
    let (heard, rest) = answers(&past.transcripts[peer].received, false);
    (heard, rest.to_vec())
}

/// The body of an answer that was cut.
fn cut_body(rest: &[u8]) -> &[u8] {
    let end = rest.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    &rest[end + 4..]
}

/// What one client hears whose upstream does this.
fn play_one(target: &str, upstream: Vec<Step>) -> Past {
    play_world(World::new(vec![asks(request(target, QUESTION))], vec![upstream]))
}

#[test]
fn an_upstream_that_is_cut_at_every_byte_never_makes_a_whole_answer() {
    for cut in 0..=REPLY.len() {
        for end in [Step::Close, Step::HalfClose, Step::Reset] {
            let script = vec![
                Step::UntilReceived(QUESTION.len()),
                Step::Send(REPLY[..cut].to_vec()),
                Step::Wait(20),
                end.clone(),
            ];
            let past = play_one(&format!("/upstream?length={}", REPLY.len()), script);
            assert_eq!(past.upstreams[0].received, QUESTION, "{cut}, {end:?}");
            let (heard, rest) = heard(&past, 0);
            if cut == REPLY.len() {
                let whole = format!("200 length {}", String::from_utf8_lossy(REPLY));
                assert_eq!((heard, rest.len()), (vec![whole], 0), "{end:?}");
                // The handler does not know that a reset behind the last byte takes nothing away.
                let ended = if end == Step::Reset { Ended::Aborted } else { Ended::Complete };
                assert_eq!(past.ended, [ended], "{end:?}");
            } else {
                assert_eq!((heard.len(), cut_body(&rest)), (0, &REPLY[..cut]), "{end:?}");
                assert_eq!(past.ended, [Ended::Aborted], "{cut}, {end:?}");
            }
        }
    }
}

#[test]
fn an_upstream_that_ends_in_order_ends_an_answer_of_unknown_length() {
    for cut in 0..=REPLY.len() {
        let script =
            vec![Step::Send(REPLY[..cut].to_vec()), Step::UntilReceived(QUESTION.len()), Step::Close];
        let past = play_one("/upstream", script);
        let whole = format!("200 chunked {}", String::from_utf8_lossy(&REPLY[..cut]));
        assert_eq!(heard(&past, 0), (vec![whole], Vec::new()));
    }
}

#[test]
fn an_upstream_that_stops_reading_at_every_byte_gets_what_it_read() {
    for cut in 0..QUESTION.len() {
        let script = vec![Step::TakeUpTo(cut), Step::UntilReceived(cut), Step::Wait(20), Step::Reset];
        let past = play_one("/upstream", script);
        assert_eq!(past.upstreams[0].received, QUESTION[..cut]);
        let (heard, rest) = heard(&past, 0);
        assert_eq!((heard.len(), cut_body(&rest)), (0, &b""[..]), "{cut}");
        assert_eq!(past.ended, [Ended::Aborted]);
    }
}

#[test]
fn a_client_that_is_cut_at_every_byte_leaves_no_upstream_behind() {
    let bytes = request("/upstream", QUESTION);
    let head_bytes = bytes.len() - QUESTION.len();
    for cut in 0..=bytes.len() {
        for end in [Step::Reset, Step::Close, Step::HalfClose] {
            let script = vec![Step::Send(bytes[..cut].to_vec()), Step::Wait(1_000), end.clone()];
            let past = play_world(World::new(vec![script], vec![vec![Step::Echo]]));
            let sent = &QUESTION[..cut.saturating_sub(head_bytes)];
            assert_eq!(past.upstreams[0].received, sent, "{cut}, {end:?}");
            assert_eq!(past.ended.len(), usize::from(cut >= head_bytes), "{cut}, {end:?}");
        }
    }
}

#[test]
fn a_client_that_leaves_while_its_upstream_is_connected_leaves_nothing_behind() {
    for wait_ms in 0..40 {
        let script = vec![Step::Send(request("/upstream", QUESTION)), Step::Wait(wait_ms * 10), Step::Reset];
        let past = play_world(World { seed: wait_ms, ..World::new(vec![script], vec![vec![Step::Echo]]) });
        assert!(past.ended.len() <= 1);
    }
}

#[test]
fn who_stalls_is_waited_for_and_little_is_held_meanwhile() {
    let body = pattern(1 << 20);
    let bytes = request(&format!("/upstream?length={}", body.len()), &body);
    let slow_client = |wait_ms| vec![Step::Stall, Step::Send(bytes.clone()), Step::Wait(wait_ms), Step::Read];
    let slow_upstream = |wait_ms| vec![Step::Echo, Step::Stall, Step::Wait(wait_ms), Step::Read];
    for (client_ms, upstream_ms) in
        [(0, 0), (1_500, 0), (0, 1_500), (1_500, 1_500), (500, 1_500), (1_500, 500)]
    {
        for faults in [Faults::NONE, Faults::GENTLE] {
            let mut script = slow_client(client_ms);
            script.push(Step::UntilReceived(usize::MAX));
            let world = World::new(vec![script], vec![slow_upstream(upstream_ms)]);
            let past = play_world(World { faults, ..world });
            let whole = format!("200 length {} bytes, sum {}", body.len(), sum(&body));
            assert_eq!(heard(&past, 0), (vec![whole], Vec::new()), "{client_ms}, {upstream_ms}");
            assert_eq!(past.upstreams[0].received, body);
            assert!(past.held_bytes_max < 512 << 10, "{} bytes are held", past.held_bytes_max);
        }
    }
}

#[test]
fn who_stalls_for_ever_is_given_up() {
    let body = pattern(1 << 20);
    let target = format!("/upstream?length={}", body.len());
    let client = vec![Step::Stall, Step::Send(request(&target, &body)), Step::Wait(100_000)];
    let past = play_world(World::new(vec![client], vec![vec![Step::Echo]]));
    assert_eq!(past.ended, [Ended::Gone], "a client that reads nothing");
    for upstream in [vec![Step::Stall, Step::Wait(100_000)], vec![Step::Wait(100_000)]] {
        let past = play_world(World::new(vec![asks(request(&target, &body))], vec![upstream]));
        assert_eq!(past.ended, [Ended::Aborted], "an upstream that reads nothing, or says nothing");
        assert!(past.held_bytes_max < 512 << 10, "{} bytes are held", past.held_bytes_max);
    }
}

#[test]
fn an_upstream_that_sends_at_once_is_read_no_faster_than_its_client() {
    let reply = pattern(1 << 20);
    let client = vec![
        Step::Stall,
        Step::Send(request(&format!("/upstream?length={}", reply.len()), b"")),
        Step::Wait(1_500),
        Step::Read,
        Step::UntilReceived(usize::MAX),
    ];
    let upstream = vec![Step::Send(reply.clone()), Step::HalfClose];
    let past = play_world(World::new(vec![client], vec![upstream]));
    let whole = format!("200 length {} bytes, sum {}", reply.len(), sum(&reply));
    assert_eq!(heard(&past, 0), (vec![whole], Vec::new()));
    assert!(past.held_bytes_max < 512 << 10, "{} bytes are held", past.held_bytes_max);
}

#[test]
fn what_cannot_be_reached_is_said() {
    let next = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let script = |target| asks([&request(target, QUESTION)[..], next].concat());
    let plain = "200 length plain\n".to_owned();
    let past = play_world(World::new(vec![script("/upstream?to=0")], Vec::new()));
    assert_eq!(heard(&past, 0).0, ["502 length ".to_owned(), plain.clone()], "refused");
    let deaf = World { deaf: Some(0), ..World::new(vec![script("/upstream?to=0")], Vec::new()) };
    assert_eq!(heard(&play_world(deaf), 0).0, ["504 length ".to_owned(), plain.clone()], "silent");
    let scripts = (0..3).map(|_| script("/upstream?to=0")).collect();
    let upstreams = vec![vec![Step::Echo]; 1];
    let past = play_world(World { upstreams_max: 1, ..World::new(scripts, upstreams) });
    let mut all: Vec<String> = (0..3).map(|peer| heard(&past, peer).0[0].clone()).collect();
    all.sort();
    let whole = format!("200 chunked {}", String::from_utf8_lossy(QUESTION));
    assert_eq!(all, [whole.as_str(), "503 length ", "503 length "]);
}

#[test]
fn upstreams_that_fill_the_account_give_way() {
    const PEERS: usize = 60;
    const BUDGET_BYTES: u64 = 2 << 20;
    let body = pattern(300_000);
    let client = |_| vec![Step::Stall, Step::Send(request("/upstream", &body)), Step::Wait(50_000)];
    let scripts = (0..PEERS).map(client).collect();
    let upstreams = (0..PEERS).map(|_| vec![Step::Stall, Step::Wait(50_000)]).collect();
    let mut world = World { budget_bytes: Some(BUDGET_BYTES), ..World::new(scripts, upstreams) };
    // Each client has an upstream of its own.
    for (number, script) in world.scripts.iter_mut().enumerate() {
        script[1] = Step::Send(request(&format!("/upstream?to={number}"), &body));
    }
    let past = play_world(world);
    assert!(past.held_bytes_max <= BUDGET_BYTES + (256 << 10), "{} bytes are held", past.held_bytes_max);
    // Some were closed before their answer had begun.
    assert!(!past.ended.is_empty() && past.ended.iter().all(|ended| *ended != Ended::Complete));
}

/// A client with an upstream of its own; what it hears if all goes well, and what the upstream hears then.
struct Pair {
    client: Vec<Step>,
    upstream: Vec<Step>,
    expected: String,
    sent: Vec<u8>,
    /// Both have to hear everything.
    is_whole: bool,
}

fn pair(number: usize, random: &mut Random) -> Pair {
    let sizes = [0, 1, 300, 20_000, 150_000, 400_000];
    let body = pattern(sizes[random.below(6)] + random.below(30));
    let reply = pattern(sizes[random.below(6)] + random.below(30));
    let (mut client, mut upstream) = (Vec::new(), Vec::new());
    let mut is_whole = true;
    if random.below(3) == 0 {
        client.push(Step::Stall);
    }
    if random.below(3) == 0 {
        upstream.push(Step::TakeUpTo(random.below(body.len() + 1)));
    }
    let target = format!("/upstream?to={number}&length={}", reply.len());
    let mut bytes = request(&target, &body);
    if random.below(3) == 0 {
        let rest = bytes.split_off(random.below(bytes.len()).max(1));
        client.extend([Step::Send(std::mem::replace(&mut bytes, rest)), Step::Wait(500)]);
    }
    client.extend([Step::Send(bytes), Step::Wait(random.below(1_000) as u64), Step::Read]);
    upstream.extend([Step::Wait(random.below(1_000) as u64), Step::Read]);
    if random.below(2) == 0 {
        upstream.push(Step::UntilReceived(body.len()));
    }
    let cut = random.below(reply.len() + 1);
    upstream.extend([Step::Send(reply[..cut].to_vec()), Step::Wait(random.below(300) as u64)]);
    match random.below(8) {
        0 => {
            is_whole = false;
            upstream.push([Step::Reset, Step::Close][random.below(2)].clone());
        }
        1 => {
            is_whole = false;
            client.extend([Step::Wait(random.below(600) as u64), Step::Reset]);
        }
        _ => upstream.extend([
            Step::Send(reply[cut..].to_vec()),
            Step::UntilReceived(body.len()),
            Step::HalfClose,
        ]),
    }
    client.push(Step::UntilReceived(usize::MAX));
    let told = match std::str::from_utf8(&reply) {
        Ok(text) if reply.len() <= 100 => text.to_owned(),
        _ => format!("{} bytes, sum {}", reply.len(), sum(&reply)),
    };
    Pair { client, upstream, expected: format!("200 length {told}"), sent: body, is_whole }
}

/// Steps without the bytes they send.
fn brief(steps: &[Step]) -> Vec<String> {
    let brief = |step: &Step| match step {
        Step::Send(bytes) => format!("Send {}", bytes.len()),
        step => format!("{step:?}"),
    };
    steps.iter().map(brief).collect()
}

fn run(seed: u64) -> Vec<Ended> {
    let mut random = Random::new(seed ^ 0x0075);
    let faults = [Faults::NONE, Faults::GENTLE, Faults::HOSTILE][seed as usize % 3];
    let mut pairs: Vec<Pair> = (0..1 + random.below(5)).map(|number| pair(number, &mut random)).collect();
    if std::env::var_os("STAUNCH_SEED").is_some() {
        pairs.iter().for_each(|pair| println!("{:?}\n{:?}", brief(&pair.client), brief(&pair.upstream)));
    }
    let scripts = pairs.iter_mut().map(|pair| std::mem::take(&mut pair.client)).collect();
    let upstreams = pairs.iter_mut().map(|pair| std::mem::take(&mut pair.upstream)).collect();
    let past = play_world(World { seed, faults, ..World::new(scripts, upstreams) });
    for (number, pair) in pairs.iter().enumerate() {
        let (heard, rest) = heard(&past, number);
        let upstream = &past.upstreams[number].received;
        assert!(pair.sent.starts_with(upstream), "seed {seed}: {number}: the body of the request is wrong");
        if pair.is_whole && faults != Faults::HOSTILE {
            let ended = &past.ended;
            assert_eq!(
                (heard, rest.len()),
                (vec![pair.expected.clone()], 0),
                "seed {seed}: {number}: {ended:?}"
            );
        } else if let Some(first) = heard.first() {
            let is_refusal = faults == Faults::HOSTILE && first.ends_with(" length ");
            let is_timeout = first.starts_with("408 ");
            assert!(*first == pair.expected || is_refusal || is_timeout, "seed {seed}: {number}: {first}");
        }
    }
    past.ended
}

#[test]
fn every_seed_gives_every_byte_in_order_both_ways() {
    play_seeds(run, &[Ended::Complete, Ended::Gone, Ended::Aborted]);
}
