//! Peers that do anything at any time, and an owner that asks for anything at any time: the contract holds.
//!
//! The harness holds every completion against the contract; here is only the noise. Seeds are printed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use staunch_netio::{Io, Outgoing, Slice, Slot};

use super::Make;
use super::harness::{Event, Harness, Random, reset};

const STEPS: usize = 6_000;
const CAPACITY: u32 = 24;

pub(crate) fn random_peers_and_random_operations<I: Io>(make: Make<I>) {
    for seed in 1..=4 {
        println!("seed {seed}");
        run(make, seed);
    }
}

/// What the owner knows of a connection it may still use.
#[derive(Clone, Copy, Default)]
struct Owned {
    in_flight: bool,
    last: bool,
}

fn run<I: Io>(make: Make<I>, seed: u64) {
    let mut random = Random(seed);
    let mut harness = Harness::new(make, CAPACITY);
    let shared: Arc<[u8]> = vec![b's'; 700_000].into();
    let mut clients: Vec<TcpStream> = Vec::new();
    let mut owned: Vec<Option<Owned>> = vec![None; CAPACITY as usize];
    for _ in 0..STEPS {
        disturb(&mut random, &mut clients, &harness);
        let slot = random.below(CAPACITY as usize) as Slot;
        if owned[slot as usize].is_some() {
            operate(&mut random, &mut harness, &mut owned[slot as usize], slot, &shared);
        }
        harness.io.submit_and_wait(Some(std::time::Duration::ZERO)).unwrap();
        while let Some(event) = harness.poll() {
            note(&mut harness, &mut owned, &event);
        }
    }
    drop(clients);
    for slot in 0..CAPACITY {
        if owned[slot as usize].is_some_and(|owned| !owned.last) {
            harness.close(slot);
        }
    }
    while owned.iter().any(Option::is_some) {
        let event = harness.next();
        note(&mut harness, &mut owned, &event);
        if let Event::Accepted(slot) = event {
            harness.close(slot);
        }
    }
}

fn note<I: Io>(harness: &mut Harness<I>, owned: &mut [Option<Owned>], event: &Event) {
    match event {
        Event::Accepted(slot) => owned[*slot as usize] = Some(Owned::default()),
        Event::Sent(slot, _) => {
            if let Some(owned) = &mut owned[*slot as usize] {
                owned.in_flight = false;
            }
        }
        Event::Closed(slot) => {
            owned[*slot as usize] = None;
            harness.io.accept(0);
        }
        _ => {}
    }
}

fn disturb<I: Io>(random: &mut Random, clients: &mut Vec<TcpStream>, harness: &Harness<I>) {
    if clients.len() < 40 && random.below(3) == 0 {
        let client = TcpStream::connect(harness.address).unwrap();
        client.set_nonblocking(true).unwrap();
        clients.push(client);
    }
    if clients.is_empty() {
        return;
    }
    let index = random.below(clients.len());
    // Every result is welcome: the server may have closed, the buffers may be full.
    match random.below(12) {
        0 => drop(clients.swap_remove(index)),
        1 => reset(clients.swap_remove(index)),
        2 => drop(clients[index].shutdown(Shutdown::Write)),
        3..=6 => drop(clients[index].read(&mut vec![0; 300_000])),
        7 => harness.waker.wake(),
        length => drop(clients[index].write(&vec![b'c'; length * 3_000])),
    }
}

fn operate<I: Io>(
    random: &mut Random,
    harness: &mut Harness<I>,
    owned: &mut Option<Owned>,
    slot: Slot,
    shared: &Arc<[u8]>,
) {
    let Some(state) = owned else { return };
    match random.below(10) {
        0..=2 => harness.io.receive(slot),
        3 => harness.io.pause(slot),
        4 => harness.io.shutdown(slot),
        5 => {
            state.last = true;
            harness.close(slot);
        }
        _ if state.in_flight || state.last => {}
        choice => {
            let mut outgoing = Outgoing::default();
            outgoing.bytes().extend_from_slice(b"own bytes");
            for _ in 0..random.below(4) {
                let end = random.below(shared.len());
                outgoing.push_shared(Slice { bytes: Arc::clone(shared), start: end / 2, end });
            }
            (state.in_flight, state.last) = (true, choice == 9);
            harness.send(slot, outgoing, choice == 9);
        }
    }
}
