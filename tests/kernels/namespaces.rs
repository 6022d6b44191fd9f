//! khttpd in several network namespaces: each listens for itself, and what it has ends with it.

use std::path::PathBuf;

use crate::guest::{Guest, KHTTPD_MODES};
use crate::handover::process;
use crate::{is_possible, series_with_modules};
use staunch_tests::process::is_installed;

/// What `namespaces.sh` must print in each mode.
const SAID: [&str; 14] = [
    "untold: listen  connections 0 ",
    "one: listen 127.0.0.1:81 connections 0 ",
    "here: HTTP/1.1 200 OK|hello| one: HTTP/1.1 200 OK|hello| two: HTTP/1.1 200 OK|hello|",
    "elsewhere: nc: can't connect to remote host (127.0.0.1): Connection refused| \
     nc: can't connect to remote host (127.0.0.1): Connection refused|",
    "odd: Invalid argument / listen 127.0.0.1:81 connections 0 ",
    "not ours: Cannot assign requested address / listen 127.0.0.1:81 connections 0 ",
    "twice: Address already in use / listen 127.0.0.1:81 connections 0 ",
    "stranger: Operation not permitted",
    "more: listen 127.0.0.1:81,[::1]:83 connections 0 HTTP/1.1 200 OK|hello| HTTP/1.1 200 OK|hello|",
    "none: listen  connections 0 nc: can't connect to remote host (127.0.0.1): Connection refused|",
    "torn down: connections 0",
    "the others: HTTP/1.1 200 OK|hello| HTTP/1.1 200 OK|hello|",
    "unloaded",
    "nothing keeps it",
];

/// For `make soak`: four modes in three namespaces, which change with `kernel/khttpd` alone.
mod in_depth {
    use super::*;

    #[test]
    fn khttpd_listens_in_each_namespace_and_ends_with_it() {
        if !is_possible() || !is_installed("ip") {
            return;
        }
        for series in series_with_modules("6.12") {
            let programs = [process(), PathBuf::from("/bin/ip")];
            let guest = Guest { series, modules: &["khttpd", "pair"], programs: &programs, words: &[] };
            let said = guest.say(include_str!("namespaces.sh"));
            for mode in KHTTPD_MODES {
                said.has_all(&format!("{mode} "), &SAID);
            }
        }
    }
}
