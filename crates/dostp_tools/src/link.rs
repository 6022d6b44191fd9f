//! The words that say by which interface and how, and the socket that comes of them.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use staunch_dostp::{
    Backend, ETHER_TYPE, Mode, Options, Secrets, Socket, UDP_PORT, Wait, choice_file, read_secret,
};

use staunch_program::Failure;
use staunch_service::fabric::is_of_interface;

/// The word that stands in the place of a key file where that slot is to stay empty.
const NO_KEY: &str = "none";

/// By which interface, and how.
#[derive(Args, Debug, Clone)]
pub(super) struct NodeLink {
    /// Network interface by which the other nodes are reached
    #[arg(long, short = 'I', value_name = "NAME")]
    pub(super) interface: String,

    /// IPv4 address of this node, if it is not the interface's first
    #[arg(long = "address", value_name = "ADDR")]
    own_address: Option<Ipv4Addr>,

    /// How frames travel; by default what `staunch dostp bench --choose` found the fastest, or the first of
    /// ring, given and udp that opens
    #[arg(long, value_name = "auto|ring|xdp-generic|xdp-native|given|udp", value_parser = backend,
          default_value = "auto")]
    backend: Choice,

    /// File that keeps that choice [default: /var/lib/staunch/dostp-INTERFACE.backend]
    #[arg(long, value_name = "FILE")]
    choice_file: Option<PathBuf>,

    /// Control socket of the node of this host that gives rings [default: /run/staunch/dostp-INTERFACE.sock]
    #[arg(long, value_name = "PATH")]
    node: Option<PathBuf>,

    /// Number of the cluster: others on the same wire are not heard
    #[arg(long, value_name = "0-255", default_value = "0")]
    cluster: u8,

    /// EtherType of the frames
    #[arg(long, value_name = "NUMBER", value_parser = ether_type, default_value = "0x88b5")]
    ether_type: u16,

    /// UDP port of the frames, with the backend udp
    #[arg(long, value_name = "PORT", default_value_t = UDP_PORT)]
    udp_port: u16,

    /// Let frames bear a checksum of their payload
    #[arg(long)]
    sum: bool,

    /// File of mode 0600 with the cluster's secret, 64 hexadecimal digits; a second one is accepted as well,
    /// for a rotation; `none` leaves the first or the second place free
    #[arg(long, value_name = "FILE")]
    key_file: Vec<PathBuf>,

    /// Send by the second key file instead of the first
    #[arg(long, requires = "key_file")]
    send_by_second: bool,

    /// With keys: whether messages are only protected from change and replay, or encrypted too
    #[arg(long, value_name = "mac|aead", value_enum, hide_possible_values = true, default_value = "mac")]
    mode: Protection,

    /// How a wait is spent: looking all the time, looking for 20 us and then asleep, or asleep
    #[arg(
        long,
        value_name = "spin|adaptive|sleep",
        value_enum,
        hide_possible_values = true,
        default_value = "adaptive"
    )]
    wait: Waiting,
}

/// A backend, or the first that opens.
#[derive(Debug, Clone, Copy)]
struct Choice(Option<Backend>);

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Waiting {
    Spin,
    Adaptive,
    Sleep,
}

/// The mode in which a node with keys sends messages.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Protection {
    Mac,
    Aead,
}

impl Protection {
    /// The mode's word on the command line and in the module's file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mac => "mac",
            Self::Aead => "aead",
        }
    }
}

impl NodeLink {
    /// How a wait is spent.
    pub(super) fn wait(&self) -> Wait {
        match self.wait {
            Waiting::Spin => Wait::Spin,
            Waiting::Adaptive => Wait::Adaptive,
            Waiting::Sleep => Wait::Sleep,
        }
    }

    /// Opens a socket on this port.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(super) fn open(&self, port: u16, adjust: impl FnOnce(&mut Options)) -> io::Result<Socket> {
        let mut options = Options::on(&self.interface);
        options.address = self.own_address;
        options.backend = self.backend.0;
        if options.backend.is_none() {
            options.preferred = match &self.choice_file {
                Some(file) => Backend::remembered(file)?,
                None => Backend::remembered_of(&self.interface)?,
            };
        }
        options.node = self.node.clone();
        options.cluster = self.cluster;
        options.ether_type = self.ether_type;
        options.udp_port = self.udp_port;
        options.sum = self.sum;
        options.secrets = self.secrets()?;
        options.wait = self.wait();
        adjust(&mut options);
        Socket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port), &options)
    }

    /// The file that keeps the choice of a backend.
    pub(super) fn choice_file(&self) -> PathBuf {
        self.choice_file.clone().unwrap_or_else(|| choice_file(&self.interface))
    }

    /// The secrets of the key files, as they are now.
    ///
    /// # Errors
    /// A file cannot be read, is open to others, or holds no secret.
    pub(super) fn secrets(&self) -> io::Result<Option<Secrets>> {
        if self.key_file.is_empty() {
            return Ok(None);
        }
        if self.key_file.len() > 2 {
            return Err(io::Error::new(ErrorKind::InvalidInput, "there are two slots for keys, not more"));
        }
        let mut slots = [None; 2];
        for (slot, path) in slots.iter_mut().zip(&self.key_file) {
            if path.as_os_str() != NO_KEY {
                *slot = Some(read_secret(path)?);
            }
        }
        let sends_by = u8::from(self.send_by_second);
        if slots[usize::from(sends_by)].is_none() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "no key file in the place that is sent by"));
        }
        let mode = match self.mode {
            Protection::Mac => Mode::Mac,
            Protection::Aead => Mode::Aead,
        };
        Ok(Some(Secrets { slots, sends_by, mode }))
    }

    /// What a person is told when a socket does not open, and what the program ends with.
    pub(super) fn failure(&self, error: &io::Error) -> Failure {
        if error.kind() == ErrorKind::PermissionDenied {
            let backend = self.backend.0.unwrap_or(Backend::Ring);
            let text = format!("{error}: the backend {backend} needs {}", backend.needs());
            return Failure::no_right(text);
        }
        let text = match error.raw_os_error() {
            Some(_) => format!("interface {}: {error}", self.interface),
            None => error.to_string(),
        };
        let is_configuration = is_of_interface(error) || error.kind() == ErrorKind::InvalidInput;
        if is_configuration { Failure::configuration(text) } else { text.into() }
    }
}

/// How the socket was opened, in a sentence, with the reasons against other backends, and what is amiss.
pub(super) fn describe(socket: &Socket) -> String {
    let opened = socket.opened();
    let refused: String =
        opened.refused.iter().map(|(backend, error)| format!("; not by {backend}: {error}")).collect();
    let remarks: String = opened.remarks.iter().map(|remark| format!("; {remark}")).collect();
    format!("by {} on {}{refused}{remarks}", opened.backend, opened.interface.name)
}

fn backend(text: &str) -> Result<Choice, String> {
    if text == "auto" { Ok(Choice(None)) } else { text.parse().map(|backend| Choice(Some(backend))) }
}

fn ether_type(text: &str) -> Result<u16, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let wrong = format!("write a number from 0x0600 to 0xffff, such as {ETHER_TYPE:#06x}");
    number.filter(|number| *number >= 0x0600).ok_or(wrong)
}
