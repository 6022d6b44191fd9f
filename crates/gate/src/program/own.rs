//! Addresses to which a SYN is judged: those of this host. What the host forwards to others passes.
//!
//! It owns the program's maps of addresses. It must never stand in for an address that finds no room: a SYN
//! to it passes.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{HashMap, MapData, MapError};
use aya::{Ebpf, Pod};
use staunch_netio::host::route::{OwnAddresses, OwnPrefix};

use super::maps::{PREFIXES_MAX, plain_error, take, typed};
use super::prefix::Prefix;
use crate::fault::GateError;
use crate::layout::ADDRESSES_MAX;

/// The value of an address that is in a map.
const THERE: u64 = 1;

/// Maps of the addresses to which a SYN is judged.
pub struct Own {
    single_ipv4: HashMap<MapData, [u8; 4], u64>,
    single_ipv6: HashMap<MapData, [u8; 16], u64>,
    ipv4: LpmTrie<MapData, [u8; 4], u64>,
    ipv6: LpmTrie<MapData, [u8; 16], u64>,
    there: HashSet<Prefix>,
}

/// A kind of prefixes, by the map it stands in: whether of IPv6, whether single addresses.
type Kind = (bool, bool);

impl Own {
    /// Takes the maps of an object.
    pub(super) fn take(ebpf: &mut Ebpf) -> Result<Self, GateError> {
        Ok(Self {
            single_ipv4: typed(HashMap::try_from(take(ebpf, "own4")?))?,
            single_ipv6: typed(HashMap::try_from(take(ebpf, "own6")?))?,
            ipv4: typed(LpmTrie::try_from(take(ebpf, "own_prefixes4")?))?,
            ipv6: typed(LpmTrie::try_from(take(ebpf, "own_prefixes6")?))?,
            there: HashSet::new(),
        })
    }

    /// Makes them these from now on. Those that were there before, and stay, are there meanwhile. Says how
    /// many find no room.
    ///
    /// # Errors
    /// The kernel's error; what was done until then is done.
    pub fn set(&mut self, prefixes: &[Prefix]) -> io::Result<usize> {
        let (wanted, left_out) = with_room(prefixes);
        let gone: Vec<Prefix> = self.there.difference(&wanted).copied().collect();
        for prefix in gone {
            self.remove(&prefix).map_err(plain_error)?;
            self.there.remove(&prefix);
        }
        let new: Vec<Prefix> = wanted.difference(&self.there).copied().collect();
        for prefix in new {
            self.insert(&prefix).map_err(plain_error)?;
            self.there.insert(prefix);
        }
        Ok(left_out)
    }

    /// Makes them these for ever.
    pub(super) fn fixed(mut self, prefixes: &[Prefix]) -> Result<(), GateError> {
        self.set(prefixes).map(drop).map_err(|error| GateError::of_kernel("the addresses", &error))
    }

    fn insert(&mut self, prefix: &Prefix) -> Result<(), MapError> {
        let is_single = prefix.is_single();
        match prefix.address() {
            IpAddr::V4(address) if is_single => self.single_ipv4.insert(address.octets(), THERE, 0),
            IpAddr::V6(address) if is_single => self.single_ipv6.insert(address.octets(), THERE, 0),
            IpAddr::V4(address) => self.ipv4.insert(&key(prefix, address.octets()), THERE, 0),
            IpAddr::V6(address) => self.ipv6.insert(&key(prefix, address.octets()), THERE, 0),
        }
    }

    fn remove(&mut self, prefix: &Prefix) -> Result<(), MapError> {
        let is_single = prefix.is_single();
        match prefix.address() {
            IpAddr::V4(address) if is_single => self.single_ipv4.remove(&address.octets()),
            IpAddr::V6(address) if is_single => self.single_ipv6.remove(&address.octets()),
            IpAddr::V4(address) => self.ipv4.remove(&key(prefix, address.octets())),
            IpAddr::V6(address) => self.ipv6.remove(&key(prefix, address.octets())),
        }
    }
}

/// The host's addresses, of which the kernel tells when they change.
pub(crate) struct FollowedAddresses {
    pub(crate) kernel: OwnAddresses,
    pub(crate) own: Own,
    /// How many found no room.
    pub(crate) left_out: usize,
}

impl FollowedAddresses {
    /// Takes those there are, in the network namespace of the calling thread. What is not protected is a
    /// note.
    pub(super) fn begin(mut own: Own, notes: &mut Vec<String>) -> Result<Self, GateError> {
        let fault = |error: &io::Error| GateError::of_kernel("the addresses of this host", error);
        let mut kernel = OwnAddresses::open().map_err(|error| fault(&error))?;
        let all = kernel.read().map_err(|error| fault(&error))?;
        if all.iter().any(|(_, bits)| *bits == 0) {
            notes.push(TO_EVERYTHING.to_owned());
        }
        let left_out = own.set(&prefixes(&all)).map_err(|error| fault(&error))?;
        notes.extend((left_out > 0).then(|| left_out_words(left_out)));
        Ok(Self { kernel, own, left_out })
    }
}

/// The note where a transparent proxy, or a host that answers for everybody, has a local route to all.
const TO_EVERYTHING: &str = "a local route leads all addresses to this host; those of its interfaces are \
    protected, and others if they are named (--address)";

/// The line about addresses that find no room.
pub(crate) fn left_out_words(count: usize) -> String {
    match count {
        0 => "all addresses of this host are protected again".to_owned(),
        count => format!(
            "this host has more addresses than find room: {count} are not protected; name prefixes around \
             those that are to be (--address)"
        ),
    }
}

/// The addresses that the kernel says are this host's, as prefixes. A local route to everything names no
/// address: transparent proxies have one for packets they have marked.
pub(crate) fn prefixes(own: &[OwnPrefix]) -> Vec<Prefix> {
    let named = own.iter().filter(|(_, bits)| *bits > 0);
    named.map(|(address, bits)| Prefix::around(*address, *bits)).collect()
}

fn key<K: Pod>(prefix: &Prefix, octets: K) -> Key<K> {
    Key::new(u32::from(prefix.bits()), octets)
}

/// Those that find room, the first ones, and how many do not.
fn with_room(prefixes: &[Prefix]) -> (HashSet<Prefix>, usize) {
    let mut counts = std::collections::HashMap::<Kind, usize>::new();
    let (mut kept, mut left_out) = (HashSet::new(), 0);
    for prefix in prefixes {
        if kept.contains(prefix) {
            continue;
        }
        let most = if prefix.is_single() { ADDRESSES_MAX } else { PREFIXES_MAX };
        let count = counts.entry((prefix.address().is_ipv6(), prefix.is_single())).or_default();
        if *count == most {
            left_out += 1;
            continue;
        }
        *count += 1;
        kept.insert(*prefix);
    }
    (kept, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: usize) -> Prefix {
        Prefix::around(IpAddr::from((number as u32).to_be_bytes()), 32)
    }

    #[test]
    fn those_that_find_no_room_are_counted() {
        let all: Vec<Prefix> = (0..ADDRESSES_MAX + 7).map(address).collect();
        let (kept, left_out) = with_room(&all);
        assert_eq!((kept.len(), left_out), (ADDRESSES_MAX, 7));
        assert!(kept.contains(&all[0]) && !kept.contains(&all[ADDRESSES_MAX]));
        let wide = (0..PREFIXES_MAX + 3).map(|number| Prefix::around(address(number << 8).address(), 24));
        let twice: Vec<Prefix> = all[..9].iter().chain(&all[..9]).copied().chain(wide).collect();
        let (kept, left_out) = with_room(&twice);
        assert_eq!((kept.len(), left_out), (9 + PREFIXES_MAX, 3));
    }

    #[test]
    fn a_local_route_to_everything_names_no_address() {
        let zero = IpAddr::from([0; 4]);
        let own = [(zero, 0), (IpAddr::from([127, 0, 0, 0]), 8), (IpAddr::from([0_u8; 16]), 0)];
        assert_eq!(prefixes(&own), ["127.0.0.0/8".parse().unwrap()]);
    }
}
