//! Many messages by one call, by every backend.

use std::collections::{BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use staunch_dostp::{Backend, Fault, Mode, Options, Secrets, Socket};

use crate::world::{self, INTERFACE, World, address};
use crate::{ETHERNET, each_backend, sockets_of};

/// Sizes of messages, some of one frame and some of many.
const SIZES: [usize; 9] = [1, 64, 0, 1_484, 1_485, 64, 30_000, 200, 65_000];

/// Messages of different sizes and bytes, by number.
fn messages(count: usize) -> Vec<Vec<u8>> {
    let size = |number: usize| SIZES[number % SIZES.len()];
    (0..count).map(|number| (0..size(number)).map(|place| (place * 7 + number) as u8).collect()).collect()
}

/// A batch to addresses in turn.
fn batch<'a>(messages: &'a [Vec<u8>], to: &[SocketAddrV4]) -> Vec<(&'a [u8], SocketAddrV4)> {
    messages.iter().zip(to.iter().cycle()).map(|(message, to)| (&message[..], *to)).collect()
}

/// Has a message come, so that the address is known from then on: a busy machine may take longer for the
/// answer than a message waits for it.
fn acquaint(sender: &Socket, receiver: &Socket, to: SocketAddrV4) {
    receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    world::until("a first message came", || {
        let sent = sender.send_to(b"first", to);
        assert!(
            sent.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::HostUnreachable),
            "{sent:?}"
        );
        receiver.receive().is_ok()
    });
    receiver.set_read_timeout(Some(world::PATIENCE)).unwrap();
    sender.send_to(b"last", to).unwrap();
    while receiver.receive().unwrap().payload != b"last" {}
}

fn expect(socket: &Socket, messages: impl Iterator<Item = Vec<u8>>) {
    for (place, message) in messages.enumerate() {
        let received = socket.receive().unwrap_or_else(|error| panic!("message {place}: {error}"));
        assert!(received.payload == message, "message {place}: {} bytes", received.payload.len());
    }
}

#[test]
fn a_batch_arrives_whole_and_in_order() {
    each_backend(|world, backend| {
        let secrets = Secrets { slots: [Some([7; 32]), None], sends_by: 0, mode: Mode::Aead };
        // Nodes that give rings have none; and in UDP, where the address need not be asked for, a node with
        // keys drops what comes before it believes the sender.
        let keyed = ETHERNET.contains(&backend).then_some(Some(secrets));
        for secrets in std::iter::once(None).chain(keyed) {
            let options = Options { secrets, backend: Some(backend), ..Options::on(INTERFACE) };
            let [one, other, sender] = sockets_of(world, &options);
            let messages = messages(90);
            let to = [address(1, 2001), address(2, 2002)];
            for (receiver, to) in [&one, &other].into_iter().zip(to) {
                acquaint(&sender, receiver, to);
            }
            let sent_before = sender.counts().0.messages_sent;
            // By and by, so that no queue is too short.
            for (messages, first) in messages.chunks(18).zip((0..).step_by(18)) {
                let batch = batch(messages, &to);
                let taken = sender.send_batch(&batch).unwrap();
                let next = batch.get(taken).map(|(payload, to)| sender.send_to(payload, *to));
                assert_eq!(taken, 18, "from {first} on: {next:?}");
                expect(&one, messages.iter().step_by(2).cloned());
                expect(&other, messages.iter().skip(1).step_by(2).cloned());
            }
            assert_eq!(sender.send_batch(&[]).unwrap(), 0);
            assert_eq!(sender.counts().0.messages_sent - sent_before, 90);
        }
    });
}

#[test]
fn small_messages_of_a_batch_are_joined() {
    each_backend(|world, backend| {
        let secrets = Secrets { slots: [Some([7; 32]), None], sends_by: 0, mode: Mode::Aead };
        let keyed = ETHERNET.contains(&backend).then_some((Some(secrets), false));
        for (secrets, sum) in [(None, false), (None, true)].into_iter().chain(keyed) {
            let options = Options { secrets, sum, backend: Some(backend), ..Options::on(INTERFACE) };
            let [receiver, other, sender] = sockets_of(world, &options);
            let to = [address(1, 2001), address(2, 2002)];
            acquaint(&sender, &receiver, to[0]);
            acquaint(&sender, &other, to[1]);
            let before = receiver.counts().0;
            let messages: Vec<Vec<u8>> = (0..500_u16).map(|number| number.to_be_bytes().repeat(32)).collect();
            assert_eq!(sender.send_batch(&batch(&messages, &to[..1])).unwrap(), 500);
            expect(&receiver, messages.iter().cloned());
            let after = receiver.counts().0;
            assert_eq!(after.messages_received - before.messages_received, 500);
            let control = after.control_received - before.control_received;
            let frames = after.frames_received - before.frames_received - control;
            assert!((28..50).contains(&frames), "{frames} frames");
            // Neighbours in a batch that go to different nodes are not.
            assert_eq!(sender.send_batch(&batch(&messages[..40], &to)).unwrap(), 40);
            expect(&receiver, messages[..40].iter().step_by(2).cloned());
            expect(&other, messages[..40].iter().skip(1).step_by(2).cloned());
            assert_eq!(receiver.counts().1.of(Fault::Flags), 0);
        }
    });
}

#[test]
fn a_batch_leaves_by_an_interface_that_takes_less_than_before() {
    let Some(world) = World::new(3, 1500) else { return };
    let options = Options { backend: Some(Backend::Ring), ..Options::on(INTERFACE) };
    let [receiver, _other, sender] = sockets_of(&world, &options);
    let to = [address(1, 2001)];
    acquaint(&sender, &receiver, to[0]);
    world.ip(3, &format!("link set {INTERFACE} mtu 1000"));
    let messages: Vec<Vec<u8>> = (0..50_u8).map(|number| vec![number; 64]).collect();
    assert_eq!(sender.send_batch(&batch(&messages, &to)).unwrap(), 50);
    expect(&receiver, messages.into_iter());
    // A message that is too long for the interface by itself is refused, as by any other call.
    let long = [vec![0; 1_200], vec![0; 64]];
    let error = sender.send_batch(&batch(&long, &to)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MSGSIZE.raw_os_error()), "{error}");
}

#[test]
fn a_batch_ends_before_what_cannot_be_sent_and_the_next_call_says_why() {
    each_backend(|world, backend| {
        let options = Options { backend: Some(backend), ..Options::on(INTERFACE) };
        let [one, _other, sender] = sockets_of(world, &options);
        let (long, to) = (vec![0; 300_000], address(1, 2001));
        let everybody = SocketAddrV4::new([10, 77, 255, 255].into(), 2001);
        let faulty: [(&[u8], SocketAddrV4, i32); 3] = [
            (&long, to, rustix::io::Errno::MSGSIZE.raw_os_error()),
            (b"to all", everybody, 0),
            (b"to myself", address(3, 1), rustix::io::Errno::HOSTUNREACH.raw_os_error()),
        ];
        for (number, (payload, wrong, errno)) in (0_u8..).zip(faulty) {
            let (before, behind) = ([number, 1], [number, 2]);
            let batch: [(&[u8], SocketAddrV4); 4] =
                [(&before, to), (&before, to), (payload, wrong), (&behind, to)];
            assert_eq!(sender.send_batch(&batch).unwrap(), 2);
            let error = sender.send_batch(&batch[2..]).unwrap_err();
            match errno {
                0 => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
                _ => assert_eq!(error.raw_os_error(), Some(errno), "{error}"),
            }
            assert_eq!(sender.send_batch(&batch[3..]).unwrap(), 1);
            expect(&one, [before, before, behind].map(Vec::from).into_iter());
        }
    });
}

#[test]
fn of_joined_messages_those_arrive_that_were_taken() {
    let Some(world) = World::new(3, 1500) else { return };
    let options = Options { backend: Some(Backend::Udp), ..Options::on(INTERFACE) };
    let [receiver, _other, sender] = sockets_of(&world, &options);
    let to = [address(1, 2001)];
    acquaint(&sender, &receiver, to[0]);
    if !world.slow_down(3) {
        println!("skipped: this kernel cannot slow down an interface (tbf)");
        return;
    }
    sender.set_nonblocking(true).unwrap();
    receiver.set_nonblocking(true).unwrap();
    let mut number = 0_u32..;
    let (mut waiting, mut taken, mut cut) = (Vec::new(), VecDeque::new(), 0);
    let began = Instant::now();
    while cut == 0 {
        assert!(began.elapsed() < world::PATIENCE, "there was always room for all");
        waiting.extend(number.by_ref().take(300 - waiting.len()).map(|number| {
            // Some have several fragments.
            number.to_be_bytes().repeat(if number % 50 == 49 { 700 } else { 8 })
        }));
        let count = match sender.send_batch(&batch(&waiting, &to)) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("{error}"),
        };
        cut += u32::from((1..waiting.len()).contains(&count));
        taken.extend(waiting.drain(..count));
        while let Ok(received) = receiver.receive() {
            assert!(Some(received.payload) == taken.pop_front(), "another message");
        }
    }
    receiver.set_nonblocking(false).unwrap();
    expect(&receiver, taken.into_iter());
    let (passed, drops, _) = receiver.counts();
    assert!(passed.frames_received < passed.messages_received / 2, "{passed:?}");
    assert_eq!((drops.of(Fault::Duplicate), drops.of(Fault::Queue)), (0, 0), "{drops:?}");
}

/// The most messages that wait for the address of their node.
const WAITING_MAX: usize = staunch_dostp::limits::PARKED_MESSAGES_MAX;

#[test]
fn a_batch_that_must_not_wait_says_how_much_found_room() {
    let Some(world) = World::new(2, 1500) else { return };
    let receiver = world.open(2, 2002, Backend::Ring);
    // From then on it says nothing by itself that would tell its address.
    world::until("the address was tried", || !receiver.is_in_trial());
    let messages: Vec<Vec<u8>> = (0..WAITING_MAX as u8 + 10).map(|number| vec![number]).collect();
    let batch = batch(&messages, &[address(2, 2002)]);
    loop {
        let sender = world.socket(1, 0, Options { is_quiet: true, ..Options::on(INTERFACE) }).unwrap();
        sender.set_nonblocking(true).unwrap();
        // A call of `send_batch` reads no answer: the address is not known before it returns.
        assert_eq!(sender.send_batch(&batch).unwrap(), WAITING_MAX);
        sender.set_nonblocking(false).unwrap();
        let taken = sender.send_batch(&batch[WAITING_MAX..]);
        let is_unreachable = matches!(&taken, Err(error) if error.kind() == ErrorKind::HostUnreachable);
        if !is_unreachable && sender.counts().1.of(Fault::Unresolved) == 0 {
            assert_eq!(taken.unwrap(), 10);
            break;
        }
        // A busy machine did not answer in time: what waited is dropped.
    }
    expect(&receiver, messages.into_iter());
}

#[test]
fn a_message_that_was_given_up_has_had_its_id() {
    let Some(world) = World::new(2, 1500) else { return };
    let [receiver, sender] = [(1, 2001), (2, 2002)].map(|(node, port)| world.open(node, port, Backend::Udp));
    sender.set_broadcast(true).unwrap();
    acquaint(&sender, &receiver, address(1, 2001));
    let next_id = |given_up: u16| {
        for _ in 0..given_up {
            // No peer is named for broadcasts: the message is handed to UDP, and leaves for none.
            let error = sender.send_to(b"to all", SocketAddrV4::new([255; 4].into(), 1)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::DESTADDRREQ.raw_os_error()), "{error}");
        }
        sender.send_to(b"to one", address(1, 2001)).unwrap();
        receiver.receive().unwrap().message_id
    };
    let first = next_id(0);
    assert_eq!(next_id(0), first.wrapping_add(1));
    assert_eq!(next_id(2), first.wrapping_add(4));
}

#[test]
fn what_finds_no_room_in_udp_takes_no_other_message_with_it() {
    let Some(world) = World::new(3, 1500) else { return };
    let receivers = [1, 2].map(|node| world.open(node, 2001, Backend::Udp));
    let named = receivers.iter().map(|receiver| *receiver.local_addr().unwrap().ip()).collect();
    let options = Options { backend: Some(Backend::Udp), udp_peers: Some(named), ..Options::on(INTERFACE) };
    let sender = world.socket(3, 2002, options).unwrap();
    sender.set_broadcast(true).unwrap();
    for (receiver, node) in receivers.iter().zip(1..) {
        acquaint(&sender, receiver, address(node, 2001));
    }
    if !world.slow_down(3) {
        println!("skipped: this kernel cannot slow down an interface (tbf)");
        return;
    }
    sender.set_nonblocking(true).unwrap();
    let to_all = SocketAddrV4::new([255; 4].into(), 2001);
    let (mut taken, mut heard, mut refused) = (BTreeSet::new(), BTreeSet::new(), 0);
    let mut hear = |receiver: &Socket| {
        let payload = receiver.receive()?.payload;
        heard.extend(payload.first_chunk().map(|number| u32::from_be_bytes(*number)));
        std::io::Result::Ok(payload.len())
    };
    receivers.iter().for_each(|receiver| receiver.set_nonblocking(true).unwrap());
    for number in 0_u32.. {
        match sender.send_to(&number.to_be_bytes().repeat(350), to_all) {
            Ok(_) => _ = taken.insert(number),
            Err(error) if error.kind() == ErrorKind::WouldBlock => refused += 1,
            Err(error) => panic!("{error}"),
        }
        for receiver in &receivers {
            while hear(receiver).is_ok() {}
        }
        if refused > 2_000 {
            break;
        }
    }
    sender.set_nonblocking(false).unwrap();
    for (receiver, node) in receivers.iter().zip(1..) {
        receiver.set_nonblocking(false).unwrap();
        sender.send_to(b"", address(node, 2001)).unwrap();
        while hear(receiver).unwrap() > 0 {}
        let drops = receiver.counts().1;
        assert_eq!((drops.of(Fault::Duplicate), drops.of(Fault::Queue)), (0, 0), "{drops:?}");
    }
    assert!(taken.len() > 1 && taken == heard, "taken {taken:?}, heard {heard:?}");
}
