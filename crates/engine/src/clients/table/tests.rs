//! Counting is exact, places are given on, and nothing is counted twice however many threads look.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::AtomicI64;
use std::thread;

use super::*;

fn rate(per_s: u64) -> ClientRate {
    ClientRate::new(per_s.try_into().unwrap(), 1.try_into().unwrap())
}

fn client(number: u32) -> Client {
    Client::new(Ipv4Addr::from_bits(number).into(), 64)
}

fn enter(table: &Table, client: Client, most: u64) -> Option<Ticket> {
    match table.enter(client, most, 0) {
        Entry::Counted(ticket, _) => Some(ticket),
        Entry::TooMany | Entry::NoPlace => None,
    }
}

#[test]
fn connections_are_counted_for_each_client() {
    let table = Table::new(16);
    let mut tickets: HashMap<u32, Vec<Ticket>> = HashMap::new();
    for count in 1..=3 {
        for number in 1..=5 {
            match table.enter(client(number), 3, 0) {
                Entry::Counted(ticket, counted) => {
                    assert_eq!(counted, count);
                    tickets.entry(number).or_default().push(ticket);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(matches!(table.enter(client(2), 3, 0), Entry::TooMany));
    table.leave(tickets.get_mut(&2).unwrap().pop().unwrap());
    assert!(matches!(table.enter(client(2), 3, 0), Entry::Counted(_, 3)));
    assert!(matches!(table.enter(client(3), 3, 0), Entry::TooMany));
    assert!(matches!(table.enter(client(3), u64::MAX, 0), Entry::Counted(_, 4)), "when only counting");
}

#[test]
fn a_prefix_of_ipv6_is_one_client_and_an_address_of_ipv4_is_one() {
    let same = |left: &str, right: &str, prefix: u8| {
        let of = |text: &str| Client::new(text.parse().unwrap(), prefix).0;
        of(left) == of(right)
    };
    assert!(same("2001:db8::1", "2001:db8::ffff:0:0:1", 64));
    assert!(!same("2001:db8::1", "2001:db8:0:1::1", 64));
    assert!(same("2001:db8::1", "2001:db8:0:1::1", 48));
    assert!(!same("2001:db8::1", "2001:db8::2", 128));
    assert!(same("2001:db8::1", "fe80::1", 0));
    assert!(!same("192.0.2.1", "192.0.2.2", 0));
    assert!(same("192.0.2.1", "::ffff:192.0.2.1", 64));
    assert!(!same("::", "0.0.0.0", 128));
    // Peers of socket files are a client of their own.
    assert!(same("::", "::", 64) && !same("::", "::1", 64) && !same("::", "2001:db8::1", 0));
}

#[test]
fn a_burst_of_one_second_and_then_one_at_a_time() {
    let table = Table::new(16);
    let ask = |at_ms: u64| table.ask(client(1), rate(10), at_ms * 1_000_000);
    let start_ms = 1_000_000;
    let granted = |at_ms: u64| (0..100).take_while(|_| ask(at_ms) == Turn::Granted).count();
    assert_eq!(granted(start_ms), 10);
    assert_eq!(ask(start_ms + 99), Turn::TooSoon);
    assert_eq!(granted(start_ms + 100), 1);
    assert_eq!(granted(start_ms + 450), 3);
    assert_eq!(table.ask(client(2), rate(1), start_ms * 1_000_000), Turn::Granted, "another's");
    assert_eq!(granted(start_ms + 60_000), 10, "no more than a burst is saved up");
    assert_eq!((0..100).filter(|_| table.ask(client(3), rate(3), 0) == Turn::Granted).count(), 3);

    let slow = ClientRate::new(30.try_into().unwrap(), 60.try_into().unwrap());
    let asked = [0, 1_999, 2_000, 3_000, 4_000].map(|ms| table.ask(client(4), slow, ms * 1_000_000));
    let expected = [Turn::Granted, Turn::TooSoon, Turn::Granted, Turn::TooSoon, Turn::Granted];
    assert_eq!(asked, expected, "one every two seconds");
    assert_eq!((slow.retry_after_s(), rate(10).retry_after_s()), (2, 1));
}

#[test]
fn a_full_table_says_so_and_gives_places_on() {
    let table = Table::new(2);
    let mut tickets: Vec<Ticket> = (1..=14).map(|number| enter(&table, client(number), 9).unwrap()).collect();
    assert!(matches!(table.enter(client(15), 9, 0), Entry::NoPlace));
    assert_eq!(table.ask(client(15), rate(1), 0), Turn::NoPlace);
    assert!(enter(&table, client(3), 9).is_some(), "those that have a place keep it");
    table.leave(tickets.pop().unwrap());
    assert_eq!(table.ask(client(15), rate(1), 0), Turn::Granted);
    // Its second is not over: the place still says something.
    assert!(matches!(table.enter(client(16), 9, 999_999_999), Entry::NoPlace));
    assert!(matches!(table.enter(client(16), 9, 1_000_000_000), Entry::Counted(_, 1)));
}

#[test]
fn of_as_many_clients_as_half_the_places_nearly_all_find_one() {
    let table = Table::new(1024);
    let all = 1024 * PLACES as u32;
    let lost = (1..all / 2).filter(|number| enter(&table, client(*number), 9).is_none()).count();
    // Some three of 3583.
    assert!(lost < 36, "{lost}");
    let table = Table::new(2);
    let address = |host: u64| Ipv6Addr::from_bits((0x2001_0db8 << 96) | u128::from(host));
    for host in 0..10_000 {
        assert!(table.ask(Client::new(address(host).into(), 64), rate(1_000_000), 0) != Turn::NoPlace);
    }
}

/// Threads come and go as few clients in a table so small that places change hands all the time.
#[test]
fn threads_never_count_too_many_and_leave_nothing_behind() {
    const MOST: u64 = 3;
    const CLIENTS: usize = 24;
    let table = Table::new(2);
    let inside: Vec<AtomicI64> = (0..CLIENTS).map(|_| AtomicI64::new(0)).collect();
    let counted: u64 = thread::scope(|scope| {
        let work = |thread: usize| {
            let (table, inside) = (&table, &inside);
            move || {
                let mut held: Vec<(usize, Ticket)> = Vec::new();
                let mut counted = 0;
                for round in 0..100_000 {
                    let number = (round * 7 + thread * 5 + round / 11) % CLIENTS;
                    if let Some(ticket) = enter(table, client(number as u32 + 1), MOST) {
                        let count = inside[number].fetch_add(1, AcqRel) + 1;
                        assert!(count <= MOST as i64, "{count} connections of one client");
                        held.push((number, ticket));
                        counted += 1;
                    }
                    while held.len() > round % 5 {
                        let (number, ticket) = held.swap_remove(round % held.len());
                        inside[number].fetch_sub(1, AcqRel);
                        table.leave(ticket);
                    }
                }
                for (number, ticket) in held {
                    inside[number].fetch_sub(1, AcqRel);
                    table.leave(ticket);
                }
                counted
            }
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(counted > 10_000, "{counted}");
    for bucket in &table.buckets {
        assert_eq!(bucket.version.load(Acquire) % 2, 0);
        assert!(bucket.places.iter().all(|place| place.word.load(Acquire) & COUNT_MASK == 0));
    }
}
