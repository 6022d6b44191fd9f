//! The host's addresses, followed while they change.
//!
//! The kernel is asked, and the program told, aside of the loop: a router has many routes. It must never
//! forget addresses because the kernel does not answer.

use std::io;

use staunch_netio::clock;

use super::aside::Aside;
use super::telling::Teller;
use crate::program::own::{FollowedAddresses, left_out_words, prefixes};

/// Between two looks.
const LOOK_NS: u64 = 250_000_000;
/// After addresses were read nobody reads for so many times as long: whoever changes routes all the time has
/// a tenth of a processor at most.
const REST: u64 = 9;

/// The follower of the host's addresses, and where it works.
pub(super) struct Addresses {
    /// Until it begins, then it is aside.
    follower: Option<Follower>,
    aside: Option<Aside<(), io::Result<usize>>>,
    looked_ns: u64,
    /// How many found no room, as was said last.
    left_out: usize,
}

/// Follows on its thread.
struct Follower {
    followed: FollowedAddresses,
    is_due: bool,
    rests_until_ns: u64,
}

impl Addresses {
    /// Follows these; none if they were named.
    pub(super) fn new(followed: Option<FollowedAddresses>) -> Self {
        let left_out = followed.as_ref().map_or(0, |followed| followed.left_out);
        let follower = followed.map(|followed| Follower { followed, is_due: false, rests_until_ns: 0 });
        Self { follower, aside: None, looked_ns: 0, left_out }
    }

    /// From now on they are followed, with the rights of the calling thread.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let Some(mut follower) = self.follower.take() else { return Ok(()) };
        self.aside = Some(Aside::begin(move |()| follower.look())?);
        Ok(())
    }

    /// Looks from time to time, and says what cannot be.
    pub(super) fn look(&mut self, now_ns: u64, teller: &Teller) {
        let Some(aside) = &mut self.aside else { return };
        match aside.answer() {
            Some(Ok(left_out)) if left_out != self.left_out => {
                self.left_out = left_out;
                teller.addresses(&left_out_words(left_out));
            }
            Some(Err(error)) => teller.trouble("list of the host's addresses", &error),
            Some(Ok(_)) | None => {}
        }
        if now_ns >= self.looked_ns + LOOK_NS {
            self.looked_ns = now_ns;
            aside.ask(|| ());
        }
    }
}

impl Follower {
    /// How many find no room.
    fn look(&mut self) -> io::Result<usize> {
        let FollowedAddresses { kernel, own, left_out } = &mut self.followed;
        self.is_due |= kernel.may_differ()?;
        let began_ns = clock::now_ns();
        if self.is_due && began_ns >= self.rests_until_ns {
            let all = kernel.read();
            let ended_ns = clock::now_ns();
            self.rests_until_ns = ended_ns + (ended_ns - began_ns) * REST;
            // A reading that failed is due again.
            *left_out = own.set(&prefixes(&all?))?;
            self.is_due = false;
        }
        Ok(*left_out)
    }
}
