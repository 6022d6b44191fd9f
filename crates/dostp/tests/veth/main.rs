//! Sockets on a real LAN of virtual interfaces: one conformance suite for every backend, and what goes wrong.

mod batch;
mod claims;
mod foreign;
mod giver;
mod world;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use giver::Giver;
use staunch_dostp::kinds::transact::Concluded;
use staunch_dostp::{Asked, Backend, Fault, Options, Socket, TransactionCaller, TransactionService, Wait};
use world::{INTERFACE, World, address, until};

/// Runs the same test for every backend.
fn each_backend(test: impl Fn(&World, Backend)) {
    for backend in Backend::ALL {
        println!("backend {backend}");
        let Some(world) = World::new(3, 1500) else { return };
        // Rings are given by a node of the same host.
        let givers = if backend == Backend::Given { 3 } else { 0 };
        let _givers: Vec<Giver> = (1..=givers).map(|node| Giver::start(&world, node)).collect();
        test(&world, backend);
    }
}

/// Sockets of the three nodes: two on ports 2001 and 2002, and one to send by.
fn sockets_of(world: &World, options: &Options) -> [Socket; 3] {
    [(1, 2001), (2, 2002), (3, 0)].map(|(node, port)| {
        let socket =
            world.reopen(node, port, Options { node: Some(world.node_path(node)), ..options.clone() });
        socket.set_read_timeout(Some(world::PATIENCE)).unwrap();
        socket
    })
}

/// The backends whose frames travel without IP.
const ETHERNET: [Backend; 3] = [Backend::Ring, Backend::XdpGeneric, Backend::XdpNative];

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
fn rings_are_given_to_who_has_the_port() {
    let Some(world) = World::new(1, 1500) else { return };
    let node = world.open(1, 2000, Backend::Ring);
    let (client, asked_at) = UnixStream::pair().unwrap();
    let mut answer = [0; 200];
    let mut ask = |question: &str| {
        (&client).write_all(question.as_bytes()).unwrap();
        let asked = Asked::hear(&asked_at).unwrap();
        node.give_rings(&asked_at, &asked, asked.port_of_rings().unwrap()).unwrap();
        let length = (&client).read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    let said = ask("rings 2001\n");
    assert!(said.contains("no rings for port 2001") && said.contains("claim was not sent"), "{said}");
    let _giver = Giver::start(&world, 1);
    let node = Some(world.node_path(1));
    let options = Options { backend: Some(Backend::Given), node, ..Options::on(INTERFACE) };
    // The port belongs to the socket above.
    assert_eq!(world.socket(1, 2000, options.clone()).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert_eq!(world.socket(1, 2001, options).unwrap().opened().backend, Backend::Given);
}

#[test]
fn every_size_comes_back_as_it_was() {
    each_backend(|world, backend| {
        for wait in [Wait::Adaptive, Wait::Sleep] {
            let server = echo(world.open(1, 2000, backend));
            let node = Some(world.node_path(2));
            let options = Options { backend: Some(backend), node, wait, ..Options::on(INTERFACE) };
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
        // A connected socket hears its peer alone.
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
fn who_waits_by_looking_keeps_no_clone_from_sending() {
    for backend in ETHERNET {
        let Some(world) = World::new(2, 1500) else { return };
        let server = echo(world.open(2, 2000, backend));
        let options = Options { backend: Some(backend), wait: Wait::Spin, ..Options::on(INTERFACE) };
        let looking = world.socket(1, 2001, options).unwrap();
        let sending = looking.try_clone().unwrap();
        let answers = std::thread::spawn(move || {
            (0..500_u16).for_each(|number| {
                assert_eq!(looking.receive().unwrap().payload, number.to_be_bytes());
            });
        });
        for number in 0..500_u16 {
            sending.send_to(&number.to_be_bytes(), address(2, 2000)).unwrap();
        }
        answers.join().unwrap();
        sending.send_to(b"", address(2, 2000)).unwrap();
        server.join().unwrap();
    }
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
    let Some(world) = World::new(4, 1500) else { return };
    let sender = std::iter::once(world.open(4, 2000, Backend::Ring));
    let others = (1..).zip(ETHERNET).map(|(node, backend)| world.open(node, 2000, backend));
    let sockets: Vec<Socket> = sender.chain(others).collect();
    let all = SocketAddrV4::new(Ipv4Addr::new(10, 77, 255, 255), 2000);
    assert_eq!(sockets[0].send_to(b"news", all).unwrap_err().kind(), ErrorKind::PermissionDenied);
    sockets[0].set_broadcast(true).unwrap();
    sockets[0].send_to(b"news", all).unwrap();
    for socket in &sockets[1..] {
        let received = socket.receive().unwrap();
        assert_eq!(
            (&received.payload[..], received.to_all, received.from),
            (&b"news"[..], true, address(4, 2000))
        );
    }
}

#[test]
fn processes_of_one_host_share_a_node_by_port() {
    for backend in ETHERNET {
        let Some(world) = World::new(2, 1500) else { return };
        let (first, second) = (world.open(1, 2000, backend), world.open(1, 2001, Backend::Ring));
        let options = || Options { backend: Some(Backend::Ring), ..Options::on(INTERFACE) };
        assert_eq!(world.socket(1, 2000, options()).unwrap_err().kind(), ErrorKind::AddrInUse);
        let client = world.open(2, 0, Backend::Ring);
        client.send_to(b"one", address(1, 2000)).unwrap();
        client.send_to(b"two", address(1, 2001)).unwrap();
        assert_eq!(second.receive().unwrap().payload, b"two");
        assert_eq!(first.receive().unwrap().payload, b"one");
        // No socket saw frames of the other: a filter stands before each ring, and a program before AF_XDP.
        for socket in [&first, &second] {
            assert_eq!(socket.counts().1.of(Fault::Closed), 0);
        }
        drop(first);
        world.reopen(1, 2000, options());
    }
}

#[test]
fn an_interface_has_one_place_for_af_xdp() {
    let Some(world) = World::new(2, 1500) else { return };
    let owner = world.open(1, 2000, Backend::XdpGeneric);
    let preferring = Options { preferred: Some(Backend::XdpGeneric), ..Options::on(INTERFACE) };
    let second = world.socket(1, 2001, preferring).unwrap();
    assert_eq!(second.opened().backend, Backend::Ring);
    let [(Backend::XdpGeneric, reason)] = &second.opened().refused[..] else {
        panic!("{:?}", second.opened());
    };
    assert!(reason.to_string().contains("another program has it"), "{reason}");
    // A port each: a child that another test is making may hold the claim of a closed socket for a moment.
    for (port, demanded) in [(2002, Backend::XdpGeneric), (2003, Backend::XdpNative)] {
        let options = Options { backend: Some(demanded), ..Options::on(INTERFACE) };
        let error = world.socket(1, port, options).unwrap_err();
        let is_owned = matches!(error.kind(), ErrorKind::ResourceBusy | ErrorKind::AlreadyExists);
        assert!(is_owned, "{error}");
    }
    // Once the owner is gone, the place is free again.
    drop(owner);
    let options = Options { backend: Some(Backend::XdpNative), ..Options::on(INTERFACE) };
    assert_eq!(world.reopen(1, 2000, options).opened().backend, Backend::XdpNative);
}

#[test]
fn af_xdp_says_why_an_interface_is_not_for_it() {
    let Some(world) = World::new(1, 9000) else { return };
    let refusal = |interface: &str| {
        let options = Options { backend: Some(Backend::XdpGeneric), ..Options::on(interface) };
        world.socket(1, 0, options).unwrap_err().to_string()
    };
    assert!(refusal(INTERFACE).contains("an MTU of at most 3826, and this one is 9000"));
    world.ip(1, "link add two numrxqueues 2 numtxqueues 2 type veth peer name other");
    world.ip(1, "address add 10.77.9.9/16 dev two");
    world.ip(1, "link set two up");
    let said = refusal("two");
    assert!(said.contains("two has 2 receive queues") && said.contains("combined 1"), "{said}");
    world.ip(1, "link set lo up");
    assert!(refusal("lo").contains("loopback"));
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
    // There is no node 9: the first messages wait for the answer to a question, later ones fail at once.
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

/// The program may do something else meanwhile: the thread beside the socket repeats the question.
#[test]
fn the_first_message_arrives_though_the_question_before_it_was_lost() {
    let Some(world) = World::new(2, 1500) else { return };
    let receiver = world.open(2, 2001, Backend::Ring);
    // From then on it says nothing by itself that would answer the question.
    until("the address was tried", || !receiver.is_in_trial());
    let sender = world.socket(1, 0, Options { is_quiet: true, ..Options::on(INTERFACE) }).unwrap();
    world.forward(1, false);
    let before = world.frames_from(1);
    sender.send_to(b"first", address(2, 2001)).unwrap();
    until("a question was asked", || world.frames_from(1) > before);
    world.forward(1, true);
    assert_eq!(receiver.receive().unwrap().payload, b"first");
    drop(sender);
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
    // Frames are small until a probe of that size was answered, each way by its own probe, and a busy machine
    // sends some again.
    let began = Instant::now();
    loop {
        let before = client.counts().0.frames_received;
        client.send(&[7; 30_000]).unwrap();
        assert_eq!(client.receive().unwrap().payload, [7; 30_000]);
        let frames = client.counts().0.frames_received - before;
        let mtu = client.peers()[0].1.mtu;
        if frames < 30_000 / 1_500 && mtu == 9000 {
            break;
        }
        assert!(began.elapsed() < world::PATIENCE, "{frames} frames, MTU {mtu}");
    }
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
    for backend in ETHERNET {
        let Some(world) = World::new(2, 1500) else { return };
        let (a, b) = (world.open(1, 2000, backend), world.open(2, 2001, Backend::Ring));
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

#[test]
fn a_service_does_its_work_once_though_requests_are_lost() {
    let Some(world) = World::new(2, 1500) else { return };
    let any = |port| SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
    let options = || Options { backend: Some(Backend::Ring), ..Options::on(INTERFACE) };
    let (its, own) = (options(), options());
    let service = world.at(1, move || TransactionService::bind(any(2000), &its)).join().unwrap();
    let caller = world.at(2, move || TransactionCaller::bind(any(0), &own)).join().unwrap();
    let (mut service, mut caller) = (service.unwrap(), caller.unwrap());
    let serving = std::thread::spawn(move || {
        let mut done = Vec::new();
        while done.last() != Some(&b'c') {
            let mut work = |from: SocketAddrV4, request: &[u8]| {
                assert_eq!(from.ip(), address(2, 0).ip());
                done.extend_from_slice(request);
                [request, b" is done"].concat()
            };
            service.serve_next(&mut work).unwrap();
        }
        done
    });
    let mut call = |request: &[u8]| {
        let outcome = caller.call(address(1, 2000), request, world::PATIENCE).unwrap();
        assert_eq!(outcome, Concluded::Reply([request, b" is done"].concat()));
        caller.repeated()
    };
    let before = call(b"a");
    // The way is closed until the bridge has seen three more frames: the request, and perhaps others.
    world.forward(2, false);
    let count = world.frames_from(2) + 3;
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(b"b"));
        while world.frames_from(2) < count {
            std::thread::yield_now();
        }
        world.forward(2, true);
        assert!(calling.join().unwrap() > before);
    });
    call(b"c");
    assert_eq!(serving.join().unwrap(), b"abc");
}

#[test]
fn a_call_that_nobody_answers_ends_with_its_patience() {
    let Some(world) = World::new(2, 1500) else { return };
    let silent = world.open(1, 2000, Backend::Ring);
    let options = Options { backend: Some(Backend::Ring), ..Options::on(INTERFACE) };
    let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
    let caller = world.at(2, move || TransactionCaller::bind(any, &options)).join().unwrap();
    let patience = std::time::Duration::from_millis(100);
    assert_eq!(caller.unwrap().call(address(1, 2000), b"x", patience).unwrap(), Concluded::Unknown);
    // A socket without transactions drops them.
    silent.set_nonblocking(true).unwrap();
    until("the request is dropped", || {
        assert_eq!(silent.receive().unwrap_err().kind(), ErrorKind::WouldBlock);
        silent.counts().1.of(Fault::Kind) > 0
    });
}
