//! Which datagrams go by DOSTP, and how: from the environment, or from an interface that a program names.
//!
//! It must never guess: what cannot be read is told, once, and everything stays UDP.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use staunch_dostp::{Backend, Mode, Options, Secrets, read_secret};
use staunch_netio::host::interface::Interface;

/// Bits of an address that DOSTP knows: a network of its own has no more.
const LOW_BITS: u32 = 16;

/// A network whose datagrams go by DOSTP.
#[derive(Debug)]
pub(crate) struct Settings {
    network: u32,
    mask: u32,
    pub(crate) options: Options,
}

impl Settings {
    /// Whether this address is of the network.
    pub(crate) fn contains(&self, address: Ipv4Addr) -> bool {
        address.to_bits() & self.mask == self.network
    }

    /// The network of an interface's first address, at most 2^16 addresses of it.
    pub(crate) fn of_interface(name: &str) -> io::Result<Self> {
        let interface = Interface::find(name)?;
        let (Some(address), Some(netmask)) = (interface.address, interface.netmask) else {
            return Err(io::Error::new(
                io::ErrorKind::AddrNotAvailable,
                format!("{name} has no IPv4 address"),
            ));
        };
        let mask = netmask.to_bits() | u32::MAX << LOW_BITS;
        Ok(Self { network: address.to_bits() & mask, mask, options: options(name)? })
    }

    fn of_environment() -> io::Result<Option<Self>> {
        let Some(text) = variable("DOSTP_NET")? else { return Ok(None) };
        let (network, mask) = network(&text).ok_or_else(|| {
            wrong(&format!(
                "DOSTP_NET={text}: write a network of 2^16 addresses at most, such as 10.0.0.0/16"
            ))
        })?;
        let interface = match variable("DOSTP_INTERFACE")? {
            Some(name) => name,
            None => interface_in(network, mask)
                .ok_or_else(|| wrong(&format!("DOSTP_NET={text}: no interface has an address there")))?,
        };
        Ok(Some(Self { network, mask, options: options(&interface)? }))
    }
}

/// The settings of the environment, read once; a fault is told.
pub(crate) fn of_environment() -> Option<Arc<Settings>> {
    static READ: OnceLock<Option<Arc<Settings>>> = OnceLock::new();
    let read = READ.get_or_init(|| {
        let settings = Settings::of_environment();
        settings
            .unwrap_or_else(|error| {
                remark(&format!("{error}; everything goes by UDP"));
                None
            })
            .map(Arc::new)
    });
    read.clone()
}

/// A line for people on standard error.
pub(crate) fn remark(text: &str) {
    io::stderr().write_all(format!("dostp: {text}\n").as_bytes()).ok();
}

/// How DOSTP is used on an interface, by the other variables.
fn options(interface: &str) -> io::Result<Options> {
    let mut options = Options::on(interface);
    let demanded = variable("DOSTP_BACKEND")?.filter(|name| name != "auto");
    options.backend =
        demanded.map(|name| name.parse::<Backend>()).transpose().map_err(|error| wrong(&error))?;
    // Frames in UDP are worse than UDP: only by demand.
    options.automatic = vec![Backend::Ring, Backend::Given];
    options.preferred = Backend::remembered_of(interface)?;
    if let Some(number) = variable("DOSTP_CLUSTER")? {
        options.cluster =
            number.parse().map_err(|_| wrong(&format!("DOSTP_CLUSTER={number}: write 0 to 255")))?;
    }
    if let Some(path) = variable("DOSTP_KEY_FILE")? {
        let mode = match variable("DOSTP_MODE")?.as_deref() {
            None | Some("mac") => Mode::Mac,
            Some("aead") => Mode::Aead,
            Some(other) => return Err(wrong(&format!("DOSTP_MODE={other}: write mac or aead"))),
        };
        let slots = [Some(read_secret(Path::new(&path))?), None];
        options.secrets = Some(Secrets { slots, sends_by: 0, mode });
    }
    Ok(options)
}

fn variable(name: &str) -> io::Result<Option<String>> {
    match env::var(name) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(wrong(&format!("{name} is no text"))),
    }
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// Address and mask of `10.0.0.0/16`.
fn network(text: &str) -> Option<(u32, u32)> {
    let (address, length) = text.split_once('/')?;
    let (address, length) = (address.parse::<Ipv4Addr>().ok()?, length.parse::<u32>().ok()?);
    let mask = u32::MAX << 32_u32.checked_sub(length).filter(|free| *free <= LOW_BITS)?;
    (address.to_bits() & mask == address.to_bits()).then_some((address.to_bits(), mask))
}

/// The first interface with an address in this network.
fn interface_in(network: u32, mask: u32) -> Option<String> {
    let list = fs::read_to_string("/proc/self/net/dev").ok()?;
    let names = list.lines().skip(2).filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    let is_inside = |name: &&str| {
        let address = Interface::find(name).ok().and_then(|interface| interface.address);
        address.is_some_and(|address| address.to_bits() & mask == network)
    };
    names.into_iter().find(is_inside).map(str::to_owned)
}
