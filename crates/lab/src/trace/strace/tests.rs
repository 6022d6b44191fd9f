//! Lines as strace 6.1 wrote them.

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

/// Names of calls with whether they wait and fail, and nanoseconds that they took.
fn read(text: &str) -> Vec<(String, bool, bool, u64)> {
    calls(text).into_iter().map(|call| (call.name, call.waits, call.failed, call.took_ns)).collect()
}

#[test]
fn a_call_in_one_line() {
    let text = "13361 1795282933.066483 accept4(3, NULL, NULL, SOCK_NONBLOCK) = 6 <0.000037216>\n\
                7  1795282933.066677 close(6)        = 0 <0.000000016>\n";
    let seen = calls(text);
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].ended_ns, 1_795_282_933 * SECOND_NS + 66_483_000 + 37_216);
    assert_eq!((seen[1].name.as_str(), seen[1].took_ns), ("close", 16));
    assert_eq!(first_process(text), Some(13_361));
}

/// A call that was interrupted by another's line ends when its second half was written.
#[test]
fn a_call_in_two_halves() {
    let text = "3106  1795282572.436047 accept(3, NULL, NULL <unfinished ...>\n\
                3105  1795282572.436100 close(4 <unfinished ...>\n\
                3106  1795282574.435769 <... accept resumed>) = 4 <2.007311861>\n\
                3105  1795282574.435800 <... close resumed>) = 0 <1.999700000>\n\
                3105  1795282574.444112 <... read resumed>\"\"..., 4096) = 82 <0.000017907>\n";
    let seen = calls(text);
    assert_eq!(seen.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["accept", "close"]);
    assert_eq!(seen[0].ended_ns, 1_795_282_574 * SECOND_NS + 435_769_000);
    assert_eq!(seen[0].took_ns, 2_007_311_861);
}

#[test]
fn a_call_waits_or_works_by_what_it_was_told() {
    let table = [
        ("futex(0x55, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, FUTEX_BITSET_MATCH_ANY) = 0", true),
        ("futex(0x55, FUTEX_WAKE_PRIVATE, 1) = 1", false),
        ("fcntl(4, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0", true),
        ("fcntl(4, F_SETLKW, {l_type=F_UNLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0", false),
        ("wait4(-1, NULL, WNOHANG, NULL) = 0", false),
        ("wait4(-1, NULL, 0, NULL) = 3106", true),
        ("poll([...], 2, -1) = 1 ([...])", true),
        ("poll(NULL, 0, 0) = 0 (Timeout)", false),
        ("epoll_wait(5, [...], 64, -1) = 1", true),
        ("epoll_wait(5, [], 64, 0) = 0", false),
        ("pselect6(6, [3 5], [], NULL, NULL, NULL) = 1 (in [5])", true),
        ("rt_sigtimedwait([INT TERM IO RT_3], {si_signo=SIGRT_3}, NULL, 8) = 35 (SIGRT_3)", true),
        ("io_uring_enter(4, 2, 1, IORING_ENTER_GETEVENTS, NULL, 128) = 2", true),
        ("io_uring_enter(4, 2, 0, 0, NULL, 128) = 2", false),
        ("sendto(4, \"\"..., 220, MSG_NOSIGNAL, NULL, 0) = 220", false),
        ("accept(3, NULL, NULL) = 4", true),
        ("read(4, \"\"..., 4096) = 82", true),
        ("recvfrom(4, \"\"..., 4096, MSG_DONTWAIT, NULL, NULL) = 82", false),
    ];
    for (call, waits) in table {
        let seen = read(&format!("1 1795282933.066483 {call} <0.000010000>\n"));
        assert_eq!(seen.len(), 1, "{call}");
        assert_eq!((seen[0].1, seen[0].2, seen[0].3), (waits, false, 10_000), "{call}");
    }
}

/// At a descriptor that was told not to wait, nothing does, until the number belongs to another.
#[test]
fn descriptors_that_do_not_wait_are_known() {
    let text = "\
1 1795282933.000001 fcntl(3, F_SETFL, O_RDONLY|O_NONBLOCK) = 0 <0.000010516>
1 1795282933.000002 accept4(3, NULL, NULL, SOCK_NONBLOCK) = 6 <0.000037216>
1 1795282933.000003 read(6, \"\"..., 4096) = 82 <0.000019279>
1 1795282933.000004 read(6, 0x7ffd80e60308, 4096) = -1 EAGAIN (Resource temporarily unavailable) <0.000010466>
1 1795282933.000005 close(6)        = 0 <0.000061933>
1 1795282933.000006 accept(5, NULL, NULL) = 6 <0.000037216>
1 1795282933.000007 read(6, \"\"..., 4096) = 82 <0.000019279>
";
    let seen: Vec<(bool, bool)> = calls(text).iter().map(|call| (call.waits, call.failed)).collect();
    let plain = (false, false);
    assert_eq!(seen, [plain, plain, plain, (false, true), plain, (true, false), (true, false)]);
}

/// What ends a process has no time, an interruption is no failure, and what is no call is left out.
#[test]
fn odd_lines() {
    let text = "\
13498 1795282938.912562 accept(3, NULL, NULL) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.005>
13498 1795282938.912600 exit_group(0)   = ?
13498 1795282938.912700 +++ exited with 0 +++
13498 1795282938.912800 --- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=1, si_uid=0} ---
13498 1795282938.912900 epoll_wait(5,  <detached ...>
strace: Process 13362 detached
13498 1795282938.x close(3) = 0 <0.000000001>
13498 1795282938.1 close(3) = 0 <never>

13498
";
    let names: Vec<_> = read(text);
    assert_eq!(names, [("accept".into(), true, false, 5_000_000), ("exit_group".into(), false, false, 0)]);
    assert_eq!(first_process("strace: no such file"), None);
}
