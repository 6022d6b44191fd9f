//! Listings that khttpd keeps: each change of a folder is shown by the next answer, what is kept is what is
//! sent without a cache, and it goes when its time, its room or the module ends.

use crate::guest::{Guest, compiled};
use crate::{is_possible, series_with_modules};

/// Lines that `listings.sh` must say once.
const SAID: [&str; 20] = [
    "ready root: 0 parents",
    "ready unloaded",
    "softirq root: 0 parents",
    "softirq unloaded",
    "without a cache: 0 0",
    "odd: the same, 1 from the cache",
    "many: the same, 1 from the cache",
    "empty: the same, 1 from the cache",
    "lines of many: 10001",
    "held for many: charged",
    "in gzip: the same",
    "conditional: 304 200 206 <!doctype ",
    "old: 11",
    "changed: 0 1",
    "cut: 1",
    "left: 200",
    "kept of heads: 0",
    "kept of too many: 0 0",
    "kept of few",
    "expired: 0 from the cache",
];

/// For `make soak`: the cache of listings changes with `kernel/khttpd` alone; a landing sees a listing of 500
/// names in each mode.
mod in_depth {
    use super::*;

    #[test]
    fn khttpd_keeps_listings_that_are_still_true() {
        if !is_possible() {
            return;
        }
        let programs = [compiled("listings")];
        for series in series_with_modules("6.12") {
            let guest = Guest { series, modules: &["khttpd"], programs: &programs, words: &[] };
            let said = guest.say(include_str!("listings.sh"));
            said.has_all("", &SAID);
            said.has("again: 2 from the cache");
            assert_eq!((said.count("29 changes shown"), said.count("unmounted")), (2, 2), "{said}");
        }
    }

    /// A change between two steps of reading a folder, on another processor, is shown by the next answer.
    #[test]
    fn a_folder_may_change_while_its_listing_is_kept() {
        if !is_possible() {
            return;
        }
        let guest = Guest {
            series: "6.12",
            modules: &["khttpd+KHTTPD_WIDENED"],
            programs: &[compiled("listings")],
            words: &["--processors", "2", "--words", "softlockup_panic=1"],
        };
        let said = guest.say(&format!("part=lists\n{}", include_str!("races.sh")));
        assert_eq!(said.count("29 changes shown"), 2, "{said}");
        said.has_all("", &["ready lists unloaded", "softirq lists unloaded"]);
    }
}
