//! Sockets on a real LAN of virtual interfaces: one conformance suite for every backend, and what goes wrong.

mod world;

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

use staunch_dostp::{Backend, Fault, Options, Socket, Wait};
use world::{INTERFACE, World, address};

/// Runs the same test for every backend.
fn each_backend(test: impl Fn(&World, Backend)) {
    for backend in Backend::ALL {
        println!("backend {backend}");
        let Some(world) = World::new(3, 1500) else { return };
        test(&world, backend);
    }
}

/// Answers on a thread until an empty message comes.
fn echo(socket: Socket) -> std::thread::JoinHandle<Socket> {
    std::thread::spawn(move || {
        loop {
            let received = socket.receive().expect("a message");
            if received.payload.is_empty() {
                return socket;
            }
            socket.send_to(&received.payload, received.from).expect("an answer");
        }
    })
}

#[test]
fn every_size_comes_back_as_it_was() {
    each_backend(|world, backend| {
        for wait in [Wait::Adaptive, Wait::Sleep] {
            let server = echo(world.open(1, 2000, backend));
            let options = Options { backend: Some(backend), wait, ..Options::on(INTERFACE) };
            let client = world.socket(2, 0, options).unwrap();
            client.set_read_timeout(Some(world::PATIENCE)).unwrap();
            client.connect(address(1, 2000)).unwrap();
            for size in
                [1, 2, 63, 64, 1_455, 1_456, 1_483, 1_484, 1_485, 2_968, 2_969, 16_384, 65_507, 200_000]
            {
                let message: Vec<u8> = (0..size).map(|place| (place * 7 + size) as u8).collect();
                assert_eq!(client.send(&message).unwrap(), size);
                let mut buffer = vec![0; 262_144];
                let received = client.recv_from(&mut buffer);
                let (length, from) =
                    received.unwrap_or_else(|error| panic!("{size} bytes by {backend}: {error}"));
                assert!(buffer[..length] == message, "{size} bytes");
                assert_eq!(from, address(1, 2000));
            }
            client.send(b"").unwrap();
            let server = server.join().unwrap();
            let (passed, drops, overrun) = server.counts();
            assert_eq!((passed.messages_received, drops.total(), overrun), (15, 0, 0), "{drops:?}");
        }
    });
}

#[test]
fn the_interface_is_that_of_a_udp_socket() {
    each_backend(|world, backend| {
        let (a, b) = (world.open(1, 2000, backend), world.open(2, 2001, backend));
        assert_eq!(a.local_addr().unwrap(), address(1, 2000));
        assert_eq!(a.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
        assert_eq!(a.send(b"x").unwrap_err().kind(), ErrorKind::NotConnected);
        b.send_to(b"hello", address(1, 2000)).unwrap();
        let mut short = [0; 3];
        assert_eq!(a.peek_from(&mut short).unwrap(), (3, address(2, 2001)));
        assert_eq!(a.recv_from(&mut short).unwrap(), (3, address(2, 2001)));
        assert_eq!(&short, b"hel");
        // One that is connected hears its peer alone.
        a.connect(address(3, 2001)).unwrap();
        assert_eq!(a.peer_addr().unwrap(), address(3, 2001));
        b.send_to(b"not wanted", address(1, 2000)).unwrap();
        let c = world.open(3, 2001, backend);
        c.send_to(b"wanted", address(1, 2000)).unwrap();
        let clone = a.try_clone().unwrap();
        assert_eq!(clone.receive().unwrap().payload, b"wanted");
        a.set_nonblocking(true).unwrap();
        assert_eq!(clone.receive().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(
            a.set_read_timeout(Some(std::time::Duration::ZERO)).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        let too_long = vec![0; 300_000];
        assert_eq!(
            a.send(&too_long).unwrap_err().raw_os_error(),
            Some(rustix::io::Errno::MSGSIZE.raw_os_error())
        );
        assert_eq!(b.send_to(b"x", address(2, 1)).unwrap_err().kind(), ErrorKind::HostUnreachable);
    });
}

#[test]
fn the_address_that_is_handed_back_is_the_full_one() {
    let Some(world) = World::new(2, 1500) else { return };
    let (a, b) = (world.open(1, 2000, Backend::Ring), world.open(2, 2001, Backend::Ring));
    // Another prefix names the same node, but only one of both names on one socket.
    let other = SocketAddrV4::new(Ipv4Addr::new(10, 78, 0, 1), 2000);
    b.send_to(b"x", other).unwrap();
    let from = a.receive().unwrap().from;
    assert_eq!(from, address(2, 2001));
    a.send_to(b"y", from).unwrap();
    assert_eq!(b.receive().unwrap().from, other);
    let third = SocketAddrV4::new(Ipv4Addr::new(10, 79, 0, 1), 2000);
    let error = b.send_to(b"z", third).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
    assert!(error.to_string().contains("10.79.0.1 and 10.78.0.1"), "{error}");
    assert_eq!(
        b.send_to(b"z", SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 0), 1)).unwrap_err().kind(),
        ErrorKind::AddrNotAvailable
    );
}

#[test]
fn a_message_to_all_reaches_all_and_needs_leave() {
    let Some(world) = World::new(3, 1500) else { return };
    let sockets: Vec<Socket> = (1..=3).map(|node| world.open(node, 2000, Backend::Ring)).collect();
    let all = SocketAddrV4::new(Ipv4Addr::new(10, 77, 255, 255), 2000);
    assert_eq!(sockets[0].send_to(b"news", all).unwrap_err().kind(), ErrorKind::PermissionDenied);
    sockets[0].set_broadcast(true).unwrap();
    sockets[0].send_to(b"news", all).unwrap();
    for socket in &sockets[1..] {
        let received = socket.receive().unwrap();
        assert_eq!(
            (&received.payload[..], received.to_all, received.from),
            (&b"news"[..], true, address(1, 2000))
        );
    }
}

#[test]
fn processes_of_one_host_share_a_node_by_port() {
    let Some(world) = World::new(2, 1500) else { return };
    let (first, second) = (world.open(1, 2000, Backend::Ring), world.open(1, 2001, Backend::Ring));
    let options = || Options { backend: Some(Backend::Ring), ..Options::on(INTERFACE) };
    assert_eq!(world.socket(1, 2000, options()).unwrap_err().kind(), ErrorKind::AddrInUse);
    let client = world.open(2, 0, Backend::Ring);
    client.send_to(b"one", address(1, 2000)).unwrap();
    client.send_to(b"two", address(1, 2001)).unwrap();
    assert_eq!(second.receive().unwrap().payload, b"two");
    assert_eq!(first.receive().unwrap().payload, b"one");
    // Nobody saw the frames of another: a filter stands before each ring.
    for socket in [&first, &second] {
        assert_eq!(socket.counts().1.of(Fault::Closed), 0);
    }
    drop(first);
    world.socket(1, 2000, options()).unwrap();
}

#[test]
fn who_sleeps_and_who_answers_find_each_other_by_question_alone() {
    let Some(world) = World::new(2, 1500) else { return };
    let server = echo(world.open(1, 2000, Backend::Ring));
    let options = Options { is_quiet: true, ..Options::on(INTERFACE) };
    let client = world.socket(2, 0, options).unwrap();
    client.set_read_timeout(Some(world::PATIENCE)).unwrap();
    client.send_to(b"who", address(1, 2000)).unwrap();
    assert_eq!(client.receive().unwrap().payload, b"who");
    assert_eq!(client.peers().len(), 1);
    // Nobody is there: the first messages wait for the answer to a question, the later ones fail at once.
    client.set_read_timeout(Some(std::time::Duration::from_millis(1))).unwrap();
    client.send_to(b"x", address(9, 2000)).unwrap();
    let error = loop {
        assert_eq!(client.receive().unwrap_err().kind(), ErrorKind::WouldBlock);
        if let Err(error) = client.send_to(b"x", address(9, 2000))
            && error.kind() == ErrorKind::HostUnreachable
        {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::HostUnreachable);
    client.send_to(b"", address(1, 2000)).unwrap();
    server.join().unwrap();
}

#[test]
fn the_newcomer_with_a_taken_address_is_told_by_whom() {
    let Some(world) = World::new(2, 1500) else { return };
    let holder = world.open(1, 2000, Backend::Ring);
    let echoing = echo(holder.try_clone().unwrap());
    let options = Options { address: Some(Ipv4Addr::new(10, 77, 0, 1)), ..Options::on(INTERFACE) };
    // The holder is beyond its own trial.
    while holder.is_in_trial() {
        std::thread::yield_now();
    }
    let newcomer = world.socket(2, 2000, options).unwrap();
    newcomer.set_read_timeout(Some(world::PATIENCE)).unwrap();
    let error = newcomer.receive().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    for link in [holder.own().link, newcomer.own().link] {
        assert!(error.to_string().contains(&link.to_string()), "{error}");
    }
    assert_eq!(newcomer.send_to(b"x", address(2, 1)).unwrap_err().kind(), ErrorKind::AddrInUse);
    let client = world.open(2, 0, Backend::Ring);
    client.send_to(b"", address(1, 2000)).unwrap();
    echoing.join().unwrap();
}

#[test]
fn large_frames_pass_where_both_ends_take_them() {
    let Some(world) = World::new(2, 9000) else { return };
    let server = echo(world.open(1, 2000, Backend::Ring));
    let client = world.open(2, 0, Backend::Ring);
    client.connect(address(1, 2000)).unwrap();
    // Frames are small until a probe of that size was answered, and a busy machine sends some again.
    let began = Instant::now();
    loop {
        let before = client.counts().0.frames_received;
        client.send(&[7; 30_000]).unwrap();
        assert_eq!(client.receive().unwrap().payload, [7; 30_000]);
        let frames = client.counts().0.frames_received - before;
        if frames < 30_000 / 1_500 {
            break;
        }
        assert!(began.elapsed() < world::PATIENCE, "{frames} frames");
    }
    assert_eq!(client.peers()[0].1.mtu, 9000);
    client.send(b"").unwrap();
    server.join().unwrap();
}

#[test]
fn an_interface_that_cannot_be_used_is_named() {
    let Some(world) = World::new(1, 1500) else { return };
    let open = |interface: &str| {
        let options = Options { backend: Some(Backend::Ring), ..Options::on(interface) };
        world.socket(1, 0, options).unwrap_err()
    };
    assert!(open("nothing").to_string().contains("interface nothing"));
    world.ip(1, "link set lo up");
    assert_eq!(open("lo").kind(), ErrorKind::Unsupported);
    world.ip(1, &format!("link set {INTERFACE} down"));
    assert_eq!(open(INTERFACE).kind(), ErrorKind::NetworkDown);
}

#[test]
fn a_socket_hears_that_its_interface_went_down_and_works_when_it_is_back() {
    let Some(world) = World::new(2, 1500) else { return };
    let (a, b) = (world.open(1, 2000, Backend::Ring), world.open(2, 2001, Backend::Ring));
    world.ip(1, &format!("link set {INTERFACE} down"));
    assert_eq!(a.receive().unwrap_err().kind(), ErrorKind::NetworkDown);
    assert_eq!(a.send_to(b"x", address(2, 2001)).unwrap_err().kind(), ErrorKind::NetworkDown);
    world.ip(1, &format!("link set {INTERFACE} up"));
    b.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
    // The port of the bridge takes a moment to forward again.
    loop {
        a.send_to(b"again", address(2, 2001)).ok();
        if b.receive().is_ok_and(|received| received.payload == b"again") {
            break;
        }
    }
}

#[test]
fn a_slow_reader_loses_and_counts() {
    let Some(world) = World::new(2, 1500) else { return };
    let (a, b) = (world.open(1, 2000, Backend::Ring), world.open(2, 2001, Backend::Ring));
    let sent = 20_000_u32;
    for number in 0..sent {
        b.send_to(&number.to_be_bytes(), address(1, 2000)).unwrap();
    }
    a.set_nonblocking(true).unwrap();
    let mut received = 0;
    let mut last = None;
    while let Ok(message) = a.receive() {
        let number = u32::from_be_bytes(message.payload[..4].try_into().unwrap());
        assert!(last < Some(number), "in order");
        last = Some(number);
        received += 1;
    }
    let (_, drops, overrun) = a.counts();
    let dropped = drops.of(Fault::Queue) + overrun;
    assert!(received < sent && dropped > 0);
    assert_eq!(u64::from(received) + dropped, u64::from(sent), "{drops:?} {overrun}");
}
