//! What every backend has to do alike, as tests generic over the way it is made.
//!
//! It owns no test of its own: `conformance_tests!` makes one of each function here for a given backend. It
//! must never know which backend it drives.

use std::os::fd::OwnedFd;

use staunch_netio::{Capacity, Waker};

pub(crate) mod accepting;
pub(crate) mod addresses;
pub(crate) mod beside;
pub(crate) mod chaos;
pub(crate) mod closing;
pub(crate) mod connecting;
pub(crate) mod datagrams;
pub(crate) mod echo;
pub(crate) mod files;
pub(crate) mod harness;
pub(crate) mod sending;
pub(crate) mod taking;
pub(crate) mod tuning;

/// How a test makes its backend: listeners, waker, capacity.
pub(crate) type Make<I> = fn(Vec<OwnedFd>, Waker, Capacity) -> I;

/// Makes a `#[test]` of every function of the conformance modules. The arguments are a [`Make`] and a
/// function that tells whether the backend can be made here; where not, the tests pass.
#[macro_export]
macro_rules! conformance_tests {
    ($make:expr, $available:expr) => {
        $crate::conformance_tests! { $make, $available;
            accepting:
                full_table_loses_no_connection, refuse_and_accept, two_listeners, listeners_come_and_go,
                waking_from_a_thread, timeouts_end, descriptors_run_out;
            addresses:
                peers_are_told_when_asked_for, from_then_on, crowd, a_full_table_and_refusing,
                listeners_come_and_go_while_learning, descriptors_run_out_while_learning;
            beside:
                both_directions_full, in_any_order, to_itself, refused_and_abandoned, the_peer_is_cut,
                full_of_either, descriptors_run_out_for_both, chaos_of_both;
            chaos:
                random_peers_and_random_operations;
            closing:
                peer_ends_before_receive, peer_ends_while_receiving, peer_resets_while_receiving,
                peer_resets_while_sending, close_before_receive, close_while_receiving, close_while_sending,
                close_twice, shutdown_and_linger, shutdown_waits_for_the_send, slots_are_used_again;
            connecting:
                bytes_go_both_ways, the_peer_speaks_first, refused, abandoned_and_inspected,
                abandoned_at_once, unix_sockets, ipv6, sources, reset_on_close, full_table, many_at_once,
                out_of_descriptors, connecting_chaos;
            datagrams:
                datagrams_wake_the_worker, a_ring_of_datagrams_wakes_the_worker, room_is_told_once,
                what_is_watched_comes_and_goes;
            echo:
                one_connection, fifty_connections, five_hundred_connections, pipelined_at_once,
                pause_holds_back;
            files:
                every_small_length, sixty_four_mebibytes, ranges, truncated_while_sent, rewritten_while_sent,
                replaced_while_sent, sparse_tebibyte, cold_file, unreadable, changed_before,
                slow_reader_of_a_file;
            sending:
                slow_reader_of_many_parts, empty_pieces, last_closes_after_all, last_to_a_slow_reader,
                close_cuts_last_short, many_small_parts;
            taking:
                what_the_peer_took_is_told, a_last_send_is_looked_at;
            tuning:
                the_kernel_takes_less, every_setting_in_every_state;
        }
    };
    ($make:expr, $available:expr; $($module:ident: $($test:ident),+;)+) => {
        $(mod $module {
            $(#[test]
            fn $test() {
                if $available() {
                    $crate::conformance::$module::$test($make);
                }
            })+
        })+
    };
}
