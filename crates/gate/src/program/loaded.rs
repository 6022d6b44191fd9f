//! The object in the kernel: programs and maps, before they are put anywhere.
//!
//! It owns both objects, the one that watches connections and the plain one, and what each map holds. It must
//! never put a program on an interface.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::os::linux::fs::MetadataExt;
use std::time::Duration;

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, Map, MapData, PerCpuArray, RingBuf};
use aya::programs::Xdp;
use aya::{Btf, Ebpf, EbpfLoader, Pod, include_bytes_aligned};

use super::alarm::Alarm;
use super::maps::{PREFIXES_MAX, plain_error, take, typed};
use super::own::Own;
use super::part::program;
use super::plan::{Attach, Reject};
use super::prefix::Prefix;
use super::sizes::Sizes;
use super::watch;
use crate::fault::GateError;
use crate::layout::{
    self, AGAIN_PARTS, CLASS_COUNT, COUNTERS, Counters, FLOWS, Flows, LINES_MAX, ORDERS, SPENT,
};
use crate::observation::Orders;

const WITH_TRACKER: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/gate.bpf.o"));
const PLAIN: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/gate-plain.bpf.o"));

const SYNCOOKIES: &str = "/proc/sys/net/ipv4/tcp_syncookies";

/// Programs and maps.
pub(super) struct Loaded {
    ebpf: Ebpf,
    counters: PerCpuArray<MapData, [u64; COUNTERS]>,
    orders: Array<MapData, [u64; ORDERS]>,
    spent: Array<MapData, [u64; SPENT]>,
    flows: Option<PerCpuArray<MapData, [u64; FLOWS]>>,
    alarm: Alarm,
    /// Until somebody takes them.
    own: Option<Own>,
    /// Of each line.
    granted: Vec<[u64; CLASS_COUNT]>,
    secret: [u64; 2],
}

impl Loaded {
    /// With the tracker, if it is wanted and this kernel takes it; else without, and a note says what is
    /// lost.
    pub(super) fn with_fallback(
        attach: &Attach<'_>,
        sizes: &Sizes,
    ) -> Result<(Self, Vec<String>), GateError> {
        let mut notes = Vec::new();
        if attach.tracker {
            match Self::load_tracking(attach, sizes) {
                Ok((loaded, note)) => return Ok((loaded, note.into_iter().collect())),
                Err(GateError::Kernel(why)) => notes.push(format!(
                    "connections cannot be watched ({why}): no client becomes known, and it is not seen how \
                     long connections wait"
                )),
                Err(error) => return Err(error),
            }
        }
        Ok((Self::load(PLAIN, attach, None, sizes)?, notes))
    }

    fn load_tracking(attach: &Attach<'_>, sizes: &Sizes) -> Result<(Self, Option<String>), GateError> {
        let btf = Btf::from_sys_fs()
            .map_err(|error| GateError::of_kernel("the kernel's type information (BTF)", &error))?;
        let mut loaded = Self::load(WITH_TRACKER, attach, Some(&btf), sizes)?;
        let note = watch::attach(&mut loaded.ebpf, &btf)?;
        Ok((loaded, note))
    }

    /// Without the tracker.
    pub(super) fn plain(attach: &Attach<'_>, sizes: &Sizes) -> Result<Self, GateError> {
        Self::load(PLAIN, attach, None, sizes)
    }

    fn load(object: &[u8], attach: &Attach<'_>, btf: Option<&Btf>, sizes: &Sizes) -> Result<Self, GateError> {
        expect_sense(attach)?;
        let namespace = [("namespace", network_namespace()?)];
        let own = if btf.is_some() { &namespace[..] } else { &[] };
        let secret = secret();
        let mut ebpf = load_object(object, attach, btf, sizes, secret, own)?;
        let program: &mut Xdp = program(&mut ebpf, "staunch_gate")?;
        program.load().map_err(|error| GateError::of_kernel("loading the program", &error))?;
        fill_lists(&mut ebpf, attach)?;
        let flows = match ebpf.take_map("flows") {
            Some(map) => Some(typed(PerCpuArray::try_from(map))?),
            None => None,
        };
        let ring = match ebpf.take_map("alarms") {
            Some(map) => Some(typed(RingBuf::try_from(map))?),
            None => None,
        };
        Ok(Self {
            counters: typed(PerCpuArray::try_from(take(&mut ebpf, "counters")?))?,
            orders: typed(Array::try_from(take(&mut ebpf, "orders")?))?,
            spent: typed(Array::try_from(take(&mut ebpf, "spent")?))?,
            flows,
            alarm: Alarm::new(ring),
            own: Some(Own::take(&mut ebpf)?),
            granted: vec![[0; CLASS_COUNT]; attach.ports.len()],
            secret,
            ebpf,
        })
    }

    /// The XDP program.
    pub(super) fn gate(&mut self) -> Result<&mut Xdp, GateError> {
        program(&mut self.ebpf, "staunch_gate")
    }

    /// The maps of the host's addresses, once.
    pub(super) fn take_own(&mut self) -> Result<Own, GateError> {
        self.own.take().ok_or_else(|| GateError::Kernel("the maps of addresses are taken".to_owned()))
    }

    /// A map that has no place of its own here.
    pub(super) fn map(&mut self, name: &str) -> Option<&mut Map> {
        self.ebpf.map_mut(name)
    }

    /// The bit of a client's key among the marks of the first place, as `keyed` and `mark_of` of the
    /// program make it.
    pub(super) fn mark(&self, key: u64) -> u64 {
        let first = (key ^ self.secret[0]).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let second = (first ^ (first >> 32) ^ self.secret[1]).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let hash = second ^ (second >> 32);
        1 << (hash >> 60)
    }

    /// The number of the XDP program.
    pub(super) fn id(&mut self) -> io::Result<u32> {
        let program = self.gate().map_err(io::Error::other)?;
        program.info().map(|info| info.id()).map_err(io::Error::other)
    }

    pub(super) fn is_tracking(&self) -> bool {
        self.flows.is_some()
    }

    /// How many lines there are: one for each port, in the order in which they were given.
    pub(super) fn lines(&self) -> usize {
        self.granted.len()
    }

    /// To one of the lines.
    pub(super) fn give(&mut self, line: usize, orders: &Orders, now_ns: u64) -> io::Result<()> {
        let granted = self.granted.get_mut(line).ok_or(io::ErrorKind::NotFound)?;
        let key = line as u32;
        let spent = layout::spent(&self.spent.get(&key, 0).map_err(plain_error)?);
        *granted = std::array::from_fn(|class| {
            layout::grant(granted[class], spent[class], orders.credits[class], orders.burst[class])
        });
        let words = layout::order_words(orders, granted, now_ns);
        self.orders.set(key, words, 0).map_err(plain_error)
    }

    /// To all lines.
    pub(super) fn give_all(&mut self, orders: &Orders, now_ns: u64) -> io::Result<()> {
        (0..self.lines()).try_for_each(|line| self.give(line, orders, now_ns))
    }

    pub(super) fn wait(&mut self, length: Duration) -> io::Result<bool> {
        self.alarm.wait(length)
    }

    /// What each line has counted. Frames that are no SYN are counted in the first.
    pub(super) fn counters(&self) -> io::Result<Vec<Counters>> {
        let line = |line: usize| {
            let key = line as u32;
            let mut counters = Counters::read(&self.counters.get(&key, 0).map_err(plain_error)?);
            if let Some(flows) = &self.flows {
                counters.flows = Some(Flows::read(&flows.get(&key, 0).map_err(plain_error)?));
            }
            Ok(counters)
        };
        (0..self.lines()).map(line).collect()
    }
}

/// Loads an object with the gate in it: what it is asked for, and constants of its own.
pub(super) fn load_object(
    object: &[u8],
    attach: &Attach<'_>,
    btf: Option<&Btf>,
    sizes: &Sizes,
    secret: [u64; 2],
    own: &[(&'static str, u64)],
) -> Result<Ebpf, GateError> {
    let ports = port_marks(attach.ports);
    let flag = u32::from;
    let (has_allow, has_deny) = (flag(!attach.allow.is_empty()), flag(!attach.deny.is_empty()));
    let (reject, dry_run) = (attach.reject as u32, flag(attach.dry_run));
    let (again_mask, known_mask) = (sizes.again - 1, sizes.known - 1);
    let (lines, has_lines) = (attach.ports.len() as u32, flag(attach.ports.len() > 1));
    let mut loader = EbpfLoader::new();
    for map in ["counters", "orders", "spent", "flows", "bursts"] {
        loader.map_max_entries(map, lines);
    }
    loader
        .btf(btf)
        .map_max_entries("again", sizes.again * AGAIN_PARTS as u32)
        .map_max_entries("known", sizes.known)
        .map_max_entries("marks", sizes.known.div_ceil(4))
        .map_max_entries("waiting", sizes.waiting)
        .override_global("ports", &ports[..], true)
        .override_global("has_lines", &has_lines, true)
        .override_global("secret", &secret, true)
        .override_global("has_allow", &has_allow, true)
        .override_global("has_deny", &has_deny, true)
        .override_global("again_mask", &again_mask, true)
        .override_global("known_mask", &known_mask, true)
        .override_global("reject", &reject, true)
        .override_global("dry_run", &dry_run, true);
    for (name, value) in own {
        loader.override_global(name, value, true);
    }
    loader.load(object).map_err(|error| GateError::of_kernel("the gate's programs", &error))
}

/// # Errors
/// What was asked for contradicts itself or the host.
fn expect_sense(attach: &Attach<'_>) -> Result<(), GateError> {
    if attach.ports.is_empty() || attach.ports.contains(&0) {
        return Err(GateError::Refused("a port from 1 to 65535 must be protected".to_owned()));
    }
    if attach.ports.len() > LINES_MAX {
        let why = format!("{} ports are to be protected; it may be {LINES_MAX}", attach.ports.len());
        return Err(GateError::Refused(why));
    }
    if let Some(port) = twice(attach.ports) {
        return Err(GateError::Refused(format!("port {port} is named twice")));
    }
    for list in [attach.allow, attach.deny, attach.addresses] {
        if list.len() > PREFIXES_MAX {
            let why = format!("a list has {} prefixes; it may have {PREFIXES_MAX}", list.len());
            return Err(GateError::Refused(why));
        }
    }
    if attach.reject == Reject::Cookie {
        expect_cookies()?;
    }
    Ok(())
}

/// A port that stands there more than once.
fn twice(ports: &[u16]) -> Option<u16> {
    let again = |(place, port): &(usize, &u16)| ports[..*place].contains(port);
    ports.iter().enumerate().find(again).map(|(_, port)| *port)
}

/// A cookie given here is taken by the kernel only if it expects cookies always.
fn expect_cookies() -> Result<(), GateError> {
    let setting = syncookies().map_err(|error| GateError::Kernel(format!("{SYNCOOKIES}: {error}")))?;
    if setting == "2" {
        return Ok(());
    }
    Err(GateError::Refused(format!(
        "cookies answered by the gate are only accepted if net.ipv4.tcp_syncookies is 2, and it is \
         {setting}; set it by 'sysctl net.ipv4.tcp_syncookies=2'"
    )))
}

/// Forged sources are probed with SYN, which fill the server's queue of half-open connections for a minute
/// each; the kernel takes others meanwhile only by its cookies, as is its default.
pub(super) fn lost_without_cookies() -> Option<String> {
    let is_off = syncookies().is_ok_and(|setting| setting == "0");
    is_off.then(|| {
        "net.ipv4.tcp_syncookies is 0: under a flood of forged SYN the kernel refuses clients the gate \
         lets in; set it by 'sysctl net.ipv4.tcp_syncookies=1'"
            .to_owned()
    })
}

fn syncookies() -> io::Result<String> {
    Ok(std::fs::read_to_string(SYNCOOKIES)?.trim().to_owned())
}

/// The network namespace of the calling thread, by its number.
pub(super) fn network_namespace() -> Result<u64, GateError> {
    let path = "/proc/thread-self/ns/net";
    let metadata = std::fs::metadata(path);
    metadata.map(|metadata| metadata.st_ino()).map_err(|error| GateError::Kernel(format!("{path}: {error}")))
}

/// By the number as it stands in a frame: the line of those that are protected, and one more.
fn port_marks(ports: &[u16]) -> Vec<u8> {
    let mut marks = vec![0; 1 << 16];
    ports.iter().zip(1..).for_each(|(port, line)| marks[usize::from(port.to_be())] = line);
    marks
}

/// The key by which remembered SYN are hashed: no outsider may foresee where one is remembered. The hasher
/// takes its keys from the system.
pub(super) fn secret() -> [u64; 2] {
    [RandomState::new().hash_one(0), RandomState::new().hash_one(1)]
}

fn fill_lists(ebpf: &mut Ebpf, attach: &Attach<'_>) -> Result<(), GateError> {
    for (list, ipv4, ipv6) in [(attach.allow, "allow4", "allow6"), (attach.deny, "deny4", "deny6")] {
        for prefix in list {
            match prefix.address() {
                IpAddr::V4(address) => insert(ebpf, ipv4, prefix, address.octets())?,
                IpAddr::V6(address) => insert(ebpf, ipv6, prefix, address.octets())?,
            }
        }
    }
    Ok(())
}

fn insert<K: Pod>(ebpf: &mut Ebpf, map: &str, prefix: &Prefix, octets: K) -> Result<(), GateError> {
    let map = ebpf.map_mut(map).ok_or_else(|| GateError::Kernel(format!("there is no map '{map}'")))?;
    let mut trie: LpmTrie<_, K, u64> = typed(LpmTrie::try_from(map))?;
    trie.insert(&Key::new(u32::from(prefix.bits()), octets), 1, 0)
        .map_err(|error| GateError::of_kernel(&format!("prefix {prefix}"), &error))
}
