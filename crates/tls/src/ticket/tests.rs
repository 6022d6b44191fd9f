//! Tickets that open and those that do not; keys that rotate, are left to another process, or come from
//! files.
use super::*;

const START: u64 = 1_000_000;
const HOUR: u64 = 3_600;

fn tickets() -> (Tickets, Arc<WallTime>) {
    let time = Arc::new(WallTime::new(START));
    (Tickets::new(Arc::clone(&time)).expect("random numbers"), time)
}

fn file(name: u8, length: usize) -> Zeroizing<Vec<u8>> {
    let mut file = vec![name; NAME_BYTES];
    file.extend((NAME_BYTES..length).map(|byte| u8::try_from(byte).expect("short") ^ name));
    Zeroizing::new(file)
}

/// Tickets with the keys of these files.
fn from_files(files: &[Zeroizing<Vec<u8>>]) -> Tickets {
    let (tickets, _) = tickets();
    let keys = TicketKeys::from_files(files).expect("good files");
    assert_eq!(tickets.choose(Some(&keys)), Ok(true));
    tickets
}

#[test]
fn a_ticket_opens_and_no_changed_one_does() {
    let (tickets, _) = tickets();
    let ticket = tickets.seal(b"session").expect("sealed");
    assert_eq!(tickets.open(&ticket).as_deref(), Some(&b"session"[..]));
    for place in 0..ticket.len() {
        let mut forged = ticket.clone();
        forged[place] ^= 1;
        assert!(!tickets.knows(&forged), "byte {place}");
        assert!(!tickets.knows(&ticket[..place]), "cut at {place}");
    }
}

#[test]
fn the_current_and_two_keys_before_open() {
    let (tickets, time) = tickets();
    let first = tickets.seal(b"first").expect("sealed");
    assert_eq!(tickets.rotate(), Ok(false), "the first key is new");
    for turn in 1..=2 {
        time.set(START + turn * 8 * HOUR);
        assert_eq!(tickets.rotate(), Ok(true));
        assert_eq!(tickets.rotate(), Ok(false));
        assert!(tickets.knows(&first), "after {turn} rotations");
    }
    time.set(START + 24 * HOUR);
    assert_eq!(tickets.rotate(), Ok(true));
    assert_eq!(tickets.keys.load().keys.len(), TICKET_KEYS_COUNT);
    assert!(!tickets.knows(&first));
}

#[test]
fn a_key_that_is_to_come_is_changed() {
    let (tickets, time) = tickets();
    let ahead = tickets.seal(b"session").expect("sealed");
    time.set(START - 100 * HOUR);
    assert_eq!(tickets.rotate(), Ok(true), "the clock was ahead when it was made");
    assert_eq!(tickets.rotate(), Ok(false));
    assert!(tickets.knows(&ahead));
}

#[test]
fn rotation_undoes_no_choice() {
    let (tickets, time) = tickets();
    let keys = TicketKeys::from_files(&[file(1, 80)]).expect("good files");
    for turn in 1..=200 {
        time.set(START + turn * 8 * HOUR);
        let rotates = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                rotates.wait();
                tickets.rotate().expect("random numbers");
            });
            rotates.wait();
            tickets.choose(Some(&keys)).expect("random numbers");
        });
        assert!(tickets.keys.load().are_from_files, "turn {turn}");
        assert_eq!(tickets.choose(None), Ok(true));
    }
}

#[test]
fn a_ticket_ends_with_its_lifetime() {
    let (tickets, time) = tickets();
    let ticket = tickets.seal(b"session").expect("sealed");
    time.set(START + 16 * HOUR);
    assert!(tickets.knows(&ticket));
    time.set(START + 1 + 16 * HOUR);
    assert!(!tickets.knows(&ticket));
}

#[test]
fn keys_go_on_in_the_next_process_with_their_ages() {
    let (former, time) = tickets();
    let mut sealed = vec![former.seal(b"first").expect("sealed")];
    for turn in 1..=2 {
        time.set(START + turn * 8 * HOUR);
        assert_eq!(former.rotate(), Ok(true));
        sealed.push(former.seal(b"later").expect("sealed"));
    }
    let handed = former.hand_over().expect("keys made here");
    let time = Arc::new(WallTime::new(START + 23 * HOUR));
    let next = Tickets::new(Arc::clone(&time)).expect("random numbers");
    let own = next.seal(b"own").expect("sealed");
    next.take_over(&handed).expect("good keys");
    assert!(!next.knows(&own), "the keys were exchanged as a whole");
    let first = sealed.remove(0);
    assert!(!next.knows(&first), "the ticket is older than a ticket may be");
    assert!(sealed.iter().all(|ticket| next.knows(ticket)));
    assert!(former.knows(&next.seal(b"new").expect("sealed")), "the current key seals in both");
    assert_eq!(next.rotate(), Ok(false), "the current key has an hour left");
    time.set(START + 24 * HOUR);
    assert_eq!(next.rotate(), Ok(true));
    assert!(sealed.iter().all(|ticket| next.knows(ticket)));
}

#[test]
fn what_is_no_handed_key_changes_nothing() {
    let (tickets, _) = tickets();
    let ticket = tickets.seal(b"session").expect("sealed");
    let handed = tickets.hand_over().expect("keys made here");
    let four = [&handed[..], &[0; 3 * HANDED_BYTES]].concat();
    let other_form = [b"staunch tickets 2\n", &handed[HANDED_HEAD.len()..]].concat();
    let (cut, head) = (&handed[..handed.len() - 1], &handed[..HANDED_HEAD.len()]);
    for faulty in [&[][..], head, cut, &four, &other_form] {
        assert_eq!(tickets.take_over(faulty), Err(TicketFault::Handed));
    }
    assert!(tickets.knows(&ticket));
}

#[test]
fn machines_with_the_same_files_open_each_others_tickets() {
    let one = from_files(&[file(1, 80), file(2, 48)]);
    let other = from_files(&[file(2, 48), file(1, 80)]);
    let stranger = from_files(&[file(3, 80)]);
    let ticket = one.seal(b"session").expect("sealed");
    assert!(other.knows(&ticket) && !stranger.knows(&ticket));
    one.time.set(START + 100 * HOUR);
    assert_eq!(one.rotate(), Ok(false), "keys from files stay");
    assert!(one.hand_over().is_none(), "the next process reads them itself");
    let more = TicketKeys::from_files(&[file(4, 80), file(1, 80)]).expect("good files");
    assert_eq!(stranger.choose(Some(&more)), Ok(true));
    assert_eq!(stranger.choose(Some(&more)), Ok(false), "they are the same");
    assert!(stranger.knows(&ticket));
}

#[test]
fn keys_made_here_stay_until_files_are_named_and_are_new_after_them() {
    let (tickets, _) = tickets();
    let own = tickets.seal(b"session").expect("sealed");
    assert_eq!(tickets.choose(None), Ok(false));
    assert!(tickets.knows(&own));
    let keys = TicketKeys::from_files(&[file(1, 80)]).expect("good files");
    assert_eq!(tickets.choose(Some(&keys)), Ok(true));
    let of_file = tickets.seal(b"session").expect("sealed");
    assert_eq!(tickets.choose(None), Ok(true));
    assert!(!tickets.knows(&own) && !tickets.knows(&of_file));
}

#[test]
fn faulty_files_are_named() {
    let fault = |files: &[Zeroizing<Vec<u8>>]| TicketKeys::from_files(files).err();
    assert_eq!(fault(&[file(1, 80), file(2, 79)]), Some(TicketFault::Length(1)));
    assert_eq!(fault(&[file(1, 80), file(1, 48)]), Some(TicketFault::Twice(1)));
    assert_eq!(fault(&[]), Some(TicketFault::Count(0)));
    assert_eq!(fault(&vec![file(1, 80); 17]), Some(TicketFault::Count(17)));
    assert_eq!(fault(&[Zeroizing::new(Vec::new())]), Some(TicketFault::Length(0)));
    assert_eq!((TicketFault::Length(1).place(), TicketFault::Count(0).place()), (Some(1), None));
}

#[test]
fn nothing_of_a_key_is_shown() {
    let tickets = from_files(&[file(0xab, 80)]);
    assert_eq!(format!("{tickets:?}"), "Tickets { .. }");
}
