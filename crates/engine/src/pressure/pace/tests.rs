//! Turns played by hand, and what the pace says of them.

use super::*;

fn is_late(pace: &Pace) -> bool {
    pace.waited() == Waited::TOO_LONG
}

const MS: u64 = 1_000_000;

/// Plays turns of (handing over and sleeping, completions, work for each), in milliseconds, and gives how
/// many completions of the last one were late.
fn late_in_last(turns: &[(u64, u32, u64)]) -> u32 {
    let mut pace = Pace::new(0);
    pace.set_patience(Some(100));
    let (mut now_ns, mut requests, mut late) = (0, 0, 0);
    for &(wait_ms, completions, work_ms) in turns {
        now_ns += wait_ms * MS;
        // Nothing else was left behind: the probe is heard first.
        pace.hear_probe();
        pace.begin_turn(now_ns, requests);
        late = 0;
        for _ in 0..completions {
            if pace.step() {
                pace.look(now_ns);
            }
            late += u32::from(is_late(&pace));
            now_ns += if is_late(&pace) { 0 } else { work_ms * MS };
            requests += u64::from(!is_late(&pace));
        }
        if pace.wants_end() {
            pace.end_turn(now_ns, requests);
        }
    }
    late
}

#[test]
fn an_idle_worker_is_never_late() {
    assert_eq!(late_in_last(&[(10_000, 1, 1), (10_000, 1, 1), (10_000, 64, 1)]), 0);
    assert_eq!(late_in_last(&[(5, 1, 90), (5_000, 1, 90), (5_000, 1, 90)]), 0);
}

#[test]
fn what_waited_for_others_in_a_long_turn_is_late() {
    // 100 ms are over after 100 of them, seen within 32 more.
    let late = late_in_last(&[(0, 300, 1)]);
    assert!((168..=200).contains(&late), "{late}");
    // Once the work is known, it is seen at once.
    let late = late_in_last(&[(10_000, 40, 20), (10_000, 40, 20)]);
    assert!((33..=34).contains(&late), "{late}");
}

#[test]
fn what_came_during_a_long_turn_is_as_old_as_that() {
    assert_eq!(late_in_last(&[(0, 40, 2), (1, 10, 1)]), 0);
    assert_eq!(late_in_last(&[(0, 60, 2), (1, 10, 1)]), 10);
    assert_eq!(late_in_last(&[(0, 60, 2), (500, 10, 1)]), 0);
}

#[test]
fn what_is_reported_before_the_knock_is_older_than_it() {
    let mut pace = Pace::new(0);
    pace.set_patience(Some(100));
    let mut probes = 0;
    for turn in 0..60 {
        // Twenty at a time, in turns that are short for themselves.
        pace.begin_turn(turn * 2 * MS, turn * 20);
        assert_eq!(is_late(&pace), turn > 50, "turn {turn}");
        (0..20).for_each(|_| assert!(!pace.step()));
        assert!(pace.wants_end());
        probes += u32::from(pace.end_turn(turn * 2 * MS + MS, turn * 20 + 20));
    }
    assert_eq!(probes, 1);
    pace.hear_probe();
    pace.begin_turn(120 * MS, 1_200);
    assert!(!is_late(&pace));
}

#[test]
fn who_stands_in_line_is_old_for_the_valve() {
    let mut pace = Pace::new(0);
    pace.set_patience(Some(100));
    pace.begin_turn(150 * MS, 0);
    assert!(!pace.is_old(None) && !pace.is_old(Some(125 * MS)) && pace.is_old(Some(124 * MS)));
    assert!(
        !is_late(&pace)
            && [25, 26, 100, 101].map(|ms| pace.judge(ms * MS))
                == [Waited::SHORT, Waited::LONG, Waited::LONG, Waited::TOO_LONG]
    );
    pace.set_patience(None);
    assert!(!pace.is_old(Some(0)) && pace.judge(u64::MAX) == Waited::SHORT);
}

#[test]
fn without_patience_no_work_is_known_and_no_turn_is_looked_at() {
    let mut pace = Pace::new(0);
    pace.set_patience(Some(100));
    pace.begin_turn(10 * MS, 0);
    pace.end_turn(20 * MS, 20);
    pace.begin_turn(20 * MS, 20);
    assert!(pace.wants_end() && pace.work_ns() > 0);
    pace.set_patience(None);
    assert!(!pace.wants_end() && pace.work_ns() == 0);
}

#[test]
fn an_idle_worker_does_not_knock() {
    let mut pace = Pace::new(0);
    pace.set_patience(Some(100));
    for turn in 1..100 {
        pace.begin_turn(turn * 50 * MS, turn);
        assert!(!pace.step());
        assert!(pace.wants_end() && !pace.end_turn(turn * 50 * MS + MS, turn + 1));
    }
}

#[test]
fn work_is_known_in_requests() {
    let mut pace = Pace::new(0);
    pace.set_patience(Some(1_000));
    assert_eq!(pace.queue_worth(), None);
    pace.begin_turn(10 * MS, 0);
    pace.end_turn(20 * MS, 20);
    assert_eq!(pace.queue_worth(), Some(500));
    let accept = |pace: &mut Pace| {
        pace.count_accepted();
        pace.accepted_too_many(0)
    };
    assert!((0..1_000).all(|_| !accept(&mut pace)) && accept(&mut pace));
    pace.begin_turn(21 * MS, 20);
    assert!(!pace.accepted_too_many(1_000) && pace.accepted_too_many(1_001));
    assert!(pace.may_accept(250) && !pace.may_accept(251));
    pace.set_patience(None);
    assert!(!accept(&mut pace));
    assert_eq!(pace.queue_worth(), None);
    pace.begin_turn(30 * MS, 20);
    assert_eq!(pace.accepted(), 0, "those of the turn before, without patience too");
}

#[test]
fn those_who_stay_silent_do_not_wait_for_us() {
    let mut pace = Pace::new(0);
    pace.set_patience(Some(100));
    pace.begin_turn(MS, 0);
    let silent = pace.count_listened();
    let heard = pace.count_listened();
    pace.count_heard(heard);
    assert_eq!(pace.unheard(), 1);
    pace.begin_turn(102 * MS, 0);
    let late = pace.count_listened();
    assert_eq!(pace.unheard(), 1, "the silent one is not counted any more");
    pace.count_heard(silent);
    assert_eq!(pace.unheard(), 1);
    pace.count_heard(late);
    assert_eq!(pace.unheard(), 0);
    pace.count_listened();
    assert_eq!(pace.unheard(), 1);
    pace.begin_turn(203 * MS, 0);
    assert_eq!(pace.unheard(), 0, "nor is it when nobody is listened to after it");
}
