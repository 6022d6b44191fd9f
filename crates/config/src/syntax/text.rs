//! Values of one word: times, sizes, numbers, rates, addresses, names of files and people.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::node::Node;
use crate::syntax::Scalar;
use crate::units::{self, CpuList, ListenAddress, WiredServer};

/// Work for one answer. A worker does nothing else meanwhile, so more is no rehearsal but a standstill.
const WORK_MAX: Duration = Duration::from_secs(1);

/// Makes syntaxes, one for each line: name, value, word, how to read it, how to write it, and `text` if only
/// a string is meant.
macro_rules! scalars {
    ($($(#[doc = $doc:literal])+ $name:ident: $value:ty, $word:literal,
       $parse:expr, $write:expr $(, $text:ident)?;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub struct $name;

        impl Scalar for $name {
            type Value = $value;
            const WORD: &'static str = $word;
            $(const IS_TEXT: bool = $crate::syntax::text::is_text!($text);)?

            fn parse(text: &str) -> Result<$value, String> {
                let parse: fn(&str) -> Result<$value, String> = $parse;
                parse(text)
            }

            fn write(value: &$value) -> Node {
                let write: fn(&$value) -> Node = $write;
                write(value)
            }
        }
    )+};
}
macro_rules! is_text {
    (text) => {
        true
    };
}

pub(super) use {is_text, scalars};

scalars! {
    /// A time, with its unit.
    Time: Duration, "TIME", units::duration, |time| Node::text(units::write_duration(*time));
    /// Time that others keep, with its unit.
    LongTime: Duration, "TIME", units::long_duration, |time| Node::text(units::write_duration(*time));
    /// Time of a processor, with its unit.
    Work: Duration, "TIME", work, |time| match time.subsec_micros() % 1000 {
        0 => Node::text(units::write_duration(*time)),
        _ => Node::text(format!("{}us", time.as_micros())),
    };
    /// A size, with its unit.
    Size: u64, "SIZE", units::size_bytes, |bytes| Node::text(units::write_size(*bytes));
    /// How many; at least one.
    Count: u64, "N", units::count, |number| Node::number(number);
    /// How many, maybe none.
    CountOrNone: u64, "N", count_or_none, |number| Node::number(number);
    /// The number of a cluster.
    ClusterNumber: u8, "0-255", cluster, |number| Node::number(number);
    /// Leading bits of an IPv6 address.
    PrefixIpv6: u8, "BITS", prefix_ipv6, |number| Node::number(number);
    /// Bytes a second; 0 asks for none.
    ByteRate: u64, "SIZE/s", byte_rate, |number| Node::number(number);
    /// So many in a time.
    Rate: EventRate, "N/s", event_rate, |rate| Node::text(rate.to_string());
    /// Where to listen.
    Listen: ListenAddress, "ADDR", units::address, |address| Node::text(address.to_string());
    /// Where a server of an application listens.
    Server: WiredServer, "ADDR", units::wired_server, |server| Node::text(server.to_string());
    /// The path of a folder as another machine has it.
    FarFolder: String, "DIR", far_folder, |path| Node::text(path.as_str()), text;
    /// The name of a script's file.
    ScriptName: String, "NAME", script_name, |name| Node::text(name.as_str()), text;
    /// A mode of a file.
    Mode: u32, "MODE", units::mode, |mode| Node::text(format!("{mode:04o}")), text;
    /// An address in digits with a port, or the whole name of a socket file.
    Admin: AdminAddress, "ADDR|PATH", admin, |address| Node::text(address.to_string());
    /// Processors by number.
    Cpus: CpuList, "LIST", units::cpu_list, |list| Node::text(units::write_cpu_list(list));
    /// A block of addresses.
    Block: AddressBlock, "CIDR", address_block, |block| Node::text(block.to_string());
    /// A user, maybe with a group.
    User: UserName, "USER[:GROUP]", user, |user| Node::text(user.to_string());
    /// An IPv4 address.
    NodeAddress: Ipv4Addr, "ADDR", node_address, |address| Node::text(address.to_string());
    /// A network interface.
    Interface: String, "NAME", interface, |name| Node::text(name.as_str());
    /// The path of a file.
    FilePath: PathBuf, "PATH", path, |path| Node::text(path.to_string_lossy()), text;
    /// The path of a folder.
    Folder: PathBuf, "DIR", path, |path| Node::text(path.to_string_lossy()), text;
    /// Where lines go.
    Lines: Output, "PATH|-|syslog", output, write_output, text;
    /// Where the server's own lines go.
    OwnLines: Output, "PATH", own_output, write_output, text;
    /// Any words that are not empty.
    Words: String, "TEXT", words, |text| Node::text(text.as_str()), text;
}

/// Where the server tells about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminAddress {
    /// Address and port.
    Internet(SocketAddr),
    /// A socket file, reached only by who may write to it.
    Unix(PathBuf),
}

impl std::fmt::Display for AdminAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(formatter),
            Self::Unix(path) => path.display().fmt(formatter),
        }
    }
}

/// So many in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRate {
    /// How many.
    pub count: u64,
    /// In how many seconds: 1, 60 or 3600.
    pub seconds: u32,
}

impl EventRate {
    /// As a number a second.
    pub fn per_s(self) -> f64 {
        self.count as f64 / f64::from(self.seconds)
    }
}

impl std::fmt::Display for EventRate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = match self.seconds {
            1 => "s",
            60 => "m",
            _ => "h",
        };
        write!(formatter, "{}/{unit}", self.count)
    }
}

/// A block of addresses, or one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressBlock {
    /// Its first address.
    pub address: IpAddr,
    /// How many leading bits are the block's.
    pub prefix: u8,
}

impl AddressBlock {
    /// All who come by socket files: the unspecified address stands for them, which no other peer has.
    const UNIX: Self = Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), prefix: 128 };
}

impl std::fmt::Display for AddressBlock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == Self::UNIX {
            return formatter.write_str("unix:");
        }
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}

/// The user and the group that a process is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserName {
    /// Name or number of the user.
    pub user: String,
    /// Name or number of the group; `None` for the user's own.
    pub group: Option<String>,
}

impl std::fmt::Display for UserName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.user)?;
        self.group.as_ref().map_or(Ok(()), |group| write!(formatter, ":{group}"))
    }
}

/// Lines for the syslog service of this host, and where that listens unless another place is named.
const SYSLOG: &str = "syslog";
const SYSLOG_SOCKET: &str = "/dev/log";

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Standard,
    /// Standard error of the process.
    StandardError,
    /// A file, to whose end they are added.
    File(PathBuf),
    /// The syslog service that listens at this socket.
    Syslog(PathBuf),
}

fn work(text: &str) -> Result<Duration, String> {
    let time = match text.strip_suffix("us") {
        Some(digits) => digits.parse().ok().filter(|&us| us > 0).map(Duration::from_micros),
        None => units::duration(text).ok(),
    };
    let time = time.filter(|time| *time <= WORK_MAX);
    time.ok_or_else(|| "write a time up to 1s, such as 300us or 2ms".into())
}

fn byte_rate(text: &str) -> Result<u64, String> {
    units::size_bytes(text.strip_suffix("/s").unwrap_or(text))
}

fn count_or_none(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { units::count(text) }
}

fn cluster(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "write a number from 0 to 255".into())
}

fn prefix_ipv6(text: &str) -> Result<u8, String> {
    let bits = text.parse().ok().filter(|bits| (1..=128).contains(bits));
    bits.ok_or_else(|| "write a number from 1 to 128, such as 64".into())
}

fn event_rate(text: &str) -> Result<EventRate, String> {
    let rate = text.split_once('/').and_then(|(count, unit)| {
        let seconds = match unit {
            "s" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            _ => return None,
        };
        Some(EventRate { count: units::count(count).ok()?, seconds })
    });
    rate.ok_or_else(|| "write a rate such as 100/s or 600/m".into())
}

fn admin(text: &str) -> Result<AdminAddress, String> {
    if text.starts_with('/') {
        return units::socket_file(text).map(AdminAddress::Unix);
    }
    let address = text.parse().map(AdminAddress::Internet);
    address
        .map_err(|_| "write an address such as 127.0.0.1:9090, or a socket such as /run/staunch/admin".into())
}

fn address_block(text: &str) -> Result<AddressBlock, String> {
    if text == "unix:" {
        return Ok(AddressBlock::UNIX);
    }
    let (address, prefix) =
        text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let block = address.parse::<IpAddr>().ok().and_then(|address| {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Some(bits), |text| text.parse().ok().filter(|&prefix| prefix <= bits))?;
        Some(AddressBlock { address, prefix })
    });
    block.ok_or_else(|| "write a block such as 10.0.0.0/8, fd00::/8, one address, or unix:".into())
}

fn user(text: &str) -> Result<UserName, String> {
    let is_name = |name: &str| {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        !name.is_empty() && !name.starts_with('-') && name.bytes().all(inside)
    };
    let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
    if is_name(user) && group.is_none_or(is_name) {
        return Ok(UserName { user: user.into(), group: group.map(str::to_owned) });
    }
    Err("write a user such as www-data, or user and group such as www-data:adm".into())
}

fn interface(text: &str) -> Result<String, String> {
    // As the kernel has it (dev_valid_name): at most 15 bytes.
    let inside = |byte: u8| byte.is_ascii_graphic() && !b"/:,".contains(&byte);
    let is_name = (1..16).contains(&text.len()) && text.bytes().all(inside) && !matches!(text, "." | "..");
    if is_name { Ok(text.to_owned()) } else { Err("write a network interface such as eth0".into()) }
}

fn node_address(text: &str) -> Result<Ipv4Addr, String> {
    text.parse().map_err(|_| "write an IPv4 address such as 10.0.0.7".into())
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.contains('\0') {
        return Err("write the name of a file or folder".into());
    }
    Ok(PathBuf::from(text))
}

fn far_folder(text: &str) -> Result<String, String> {
    let is_whole = text.starts_with('/') && !text.chars().any(char::is_control);
    is_whole
        .then(|| text.trim_end_matches('/').to_owned())
        .filter(|path| !path.is_empty())
        .ok_or_else(|| "write the whole path of a folder such as /var/www/html".into())
}

fn script_name(text: &str) -> Result<String, String> {
    let is_script = text.strip_suffix(".php").is_some_and(|stem| !stem.is_empty() && !stem.starts_with('.'));
    let is_name = is_script && !text.contains(['/', '$']) && !text.chars().any(char::is_control);
    is_name.then(|| text.to_owned()).ok_or_else(|| "write the name of a script such as index.php".into())
}

fn output(text: &str) -> Result<Output, String> {
    if let Some((path, format)) = text.split_once(' ').filter(|(_, rest)| is_format(rest)) {
        return Err(format!(
            "write the file alone, {path:?}; `access_log_format` says how lines look, not {format:?}"
        ));
    }
    match text.strip_prefix(SYSLOG) {
        Some("") => return Ok(Output::Syslog(SYSLOG_SOCKET.into())),
        Some(rest) if rest.starts_with(":/") => return path(&rest[1..]).map(Output::Syslog),
        Some(rest) if rest.starts_with(':') => {
            return Err(format!(
                "write syslog, or syslog:{SYSLOG_SOCKET}, the socket of a syslog service on this host; \
                 it forwards lines to others"
            ));
        }
        _ => {}
    }
    if text == "-" { Ok(Output::Standard) } else { file_or_standard(text) }
}

fn own_output(text: &str) -> Result<Output, String> {
    match text {
        "-" => Err("write off for standard error, /dev/stdout for standard output".into()),
        _ if text.split(':').next() == Some(SYSLOG) => {
            Err("write off: standard error is the journal under systemd, and a file is any other place"
                .into())
        }
        _ => file_or_standard(text),
    }
}

/// A file, or the names by which containers know the outputs of a process. These are taken for what they
/// mean: opening them fails for who may not open a file of that user anew, or in the sandbox.
fn file_or_standard(text: &str) -> Result<Output, String> {
    match text {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Ok(Output::Standard),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => Ok(Output::StandardError),
        "stdout" | "stderr" => Err(format!("write /dev/{text}, or ./{text} for a file of that name")),
        _ => path(text).map(Output::File),
    }
}

fn write_output(output: &Output) -> Node {
    match output {
        Output::Standard => Node::text("/dev/stdout"),
        Output::StandardError => Node::text("/dev/stderr"),
        Output::File(path) => Node::text(path.to_string_lossy()),
        Output::Syslog(path) => Node::text(format!("{SYSLOG}:{}", path.display())),
    }
}

/// Whether this is how other servers name the format of a log's lines, behind the file.
fn is_format(text: &str) -> bool {
    let formats = ["combined", "common", "main", "json", "vhost_combined"];
    text.split_ascii_whitespace().next().is_some_and(|first| formats.contains(&first))
}

fn words(text: &str) -> Result<String, String> {
    let is_plain = !text.is_empty() && !text.chars().any(char::is_control);
    is_plain.then(|| text.to_owned()).ok_or_else(|| "write one line of text".into())
}
