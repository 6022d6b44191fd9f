//! Deadlines of connections in khttpd and kecho, kept by timers of the kernel, in a heap, or in a wheel. The
//! machine's clock counts instructions, so that however slow the host is, nobody is late.

use crate::guest::Guest;
use crate::is_possible;

/// For `make soak`: ways to keep deadlines that are there to be compared; the usual one is under strain in
/// each landing.
mod in_depth {
    use super::*;

    #[test]
    fn deadlines_end_connections_however_they_are_kept() {
        if !is_possible() {
            return;
        }
        let guest =
            Guest { series: "6.12", modules: &["khttpd", "kecho"], programs: &[], words: &["--counted"] };
        let said = guest.say(include_str!("timers.sh"));
        said.has_all("", &["khttpd refuses: odd", "kecho refuses: odd"]);
        said.has("told: khttpd timers=odd: not one of kernel, heap, wheel");
        said.has("told: kecho timers=odd: kernel, heap or wheel");
        for timers in ["kernel", "heap", "wheel"] {
            let khttpd = ["silent: 0 bytes", "half: HTTP/1.1 408 Request Timeout", "idle: 1 answered"];
            said.has_all(&format!("{timers} "), &khttpd);
            said.has_all(&format!("{timers} "), &["busy: 8 answered", "khttpd unloaded"]);
            // A thread waits for its bytes with a deadline of its own, which may come first.
            said.has(&format!("{timers} kthread unloaded"));
            for mode in ["ready", "softirq"] {
                said.has_all(&format!("{timers} {mode}"), &[": 3 expired", " unloaded"]);
            }
        }
    }
}
