//! A program that confines itself as the server does and says what it can still do, and one that takes from
//! another what the kernel has for confining.
//!
//! It must never be used but to test. Which of them it is, its first argument says: see [`main`].
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::fs::{Mode, OFlags, ResolveFlags, inotify};
use rustix::net::{
    AddressFamily, MMsgHdr, Protocol, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, ipproto,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use staunch_confine::{Confinement, Identity, Paths, Sandbox, confine};

/// `MSG_FASTOPEN`: the first bytes go with the request for a connection.
const FAST_OPEN: u32 = 0x2000_0000;

/// `probe on|ringless|off SITE LOG`: confines if it is to, `ringless` as a server on epoll, then prints a
/// line for each thing tried: its name, `ok` or the error.
/// `chain COUNT USER|- SITE LOG`: becomes the user, confines, and runs itself so often; the last one prints
/// who it is and how many filters hold.
/// `without landlock|seccomp|io_uring PROGRAM...`: runs a program as if the kernel did not have that.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["probe", sandbox, site, log] => probe(sandbox, Path::new(site), Path::new(log)),
        ["chain", count, user, site, log] => chain(count.parse().expect("a number"), user, site, log),
        ["without", what, program, ..] => {
            take(what);
            panic!("{program}: {}", Command::new(program).args(&words[3..]).exec());
        }
        ["nothing"] => {}
        _ => panic!("{words:?}: see the document of this program"),
    }
    ExitCode::SUCCESS
}

fn confined(site: &Path, log: &Path, rings: bool, user: Option<&Identity>) -> Confinement {
    let mut paths = Paths::default();
    if rings {
        paths.use_rings();
    }
    paths.read_site(site);
    paths.write_file(log);
    confine(Sandbox::On, paths, user).unwrap_or_else(|missing| panic!("{missing}"))
}

fn probe(sandbox: &str, site: &Path, log: &Path) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    if sandbox != "off" {
        confined(site, log, sandbox == "on", None);
    }
    needed(site, log);
    let parent = rustix::process::getppid().expect("a parent");
    tell("read /etc/shadow", File::open("/etc/shadow"));
    tell("list /", fs::read_dir("/"));
    tell("write into the site", fs::write(site.join("new"), "x"));
    tell("write the file served", OpenOptions::new().write(true).open(site.join("a.txt")));
    tell("link out of the site", File::open(site.join("out")));
    tell("make a folder for logs", fs::create_dir(log.with_extension("folder")));
    tell("connect", TcpStream::connect(address));
    ways_around(address);
    tell("run a shell", Command::new("/bin/sh").args(["-c", "true"]).status());
    tell("signal the parent", rustix::process::test_kill_process(parent));
    tell("change the root folder", rustix::process::chroot("/"));
    tell("be root again", nix::unistd::setuid(nix::unistd::Uid::from_raw(0)));
    tell("see all packets", socket(AddressFamily::PACKET, SocketType::RAW));
    tell("forge packets", socket(AddressFamily::INET, SocketType::RAW));
    tell("send datagrams", socket(AddressFamily::INET, SocketType::DGRAM));
    // The last of all: a process that is traced stops at its next signal.
    tell("trace", nix::sys::ptrace::traceme());
}

/// Ways to a peer that Landlock's rule about TCP does not cover.
fn ways_around(address: SocketAddr) {
    // MPTCP falls back to plain TCP with any server.
    let several = stream(Some(ipproto::MPTCP));
    tell("connect by MPTCP", several.and_then(|socket| rustix::net::connect(&socket, &address)));
    let fast = SendFlags::from_bits_retain(FAST_OPEN);
    let socket = || stream(None).expect("a socket");
    let bytes = [IoSlice::new(b"x")];
    tell("connect by sendto", rustix::net::sendto(socket(), b"x", fast, &address));
    let mut control = SendAncillaryBuffer::default();
    tell("connect by sendmsg", rustix::net::sendmsg_addr(socket(), &address, &bytes, &mut control, fast));
    let peer = address.into();
    let mut control = SendAncillaryBuffer::default();
    let mut messages = [MMsgHdr::new_with_addr(&peer, &bytes, &mut control)];
    tell("connect by sendmmsg", rustix::net::sendmmsg(socket(), &mut messages, fast));
}

fn stream(protocol: Option<Protocol>) -> rustix::io::Result<OwnedFd> {
    rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, protocol)
}

/// What a server does.
fn needed(site: &Path, log: &Path) {
    tell("read the site", fs::read(site.join("a.txt")));
    tell("read beside the site", fs::read_dir(site.parent().expect("a folder")));
    tell("list the site", fs::read_dir(site));
    let folder = File::open(site).expect("the site");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    tell("open beneath", rustix::fs::openat2(&folder, "a.txt", flags, Mode::empty(), ResolveFlags::BENEATH));
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).expect("inotify");
    tell("watch the site", inotify::add_watch(watch, site, inotify::WatchFlags::MODIFY));
    tell("write the log", fs::write(log, "a line\n"));
    tell("rename the log", fs::rename(log, log.with_extension("1")));
    tell("append to the log", OpenOptions::new().append(true).create(true).open(log));
    tell("remove the old log", fs::remove_file(log.with_extension("1")));
    tell("listen", TcpListener::bind("127.0.0.1:0"));
    tell("know its own name", ("localhost", 80).to_socket_addrs());
    tell("speak to the service manager", std::os::unix::net::UnixDatagram::unbound());
    tell("start a thread", std::thread::Builder::new().spawn(|| ()).map(|thread| thread.join()));
    tell("know the processors", std::thread::available_parallelism());
    tell("read the kernel's counters", fs::read("/proc/self/stat").and(fs::read("/proc/meminfo")));
    tell("raise limits", staunch_netio::descriptors::raise_descriptor_limit());
    tell("use epoll", staunch_netio::Waker::new());
    let own = std::env::current_exe().expect("our own path");
    tell("run its own program", Command::new(own).arg("nothing").env_clear().status());
    match staunch_netio::uring::probe() {
        Ok(_) => println!("use io_uring: ok"),
        Err(refusal) => println!("use io_uring: {refusal}"),
    }
}

fn socket(family: AddressFamily, kind: SocketType) -> rustix::io::Result<()> {
    rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).map(drop)
}

fn tell<T, E: Into<io::Error>>(what: &str, result: Result<T, E>) {
    match result.map_err(Into::into) {
        Ok(_) => println!("{what}: ok"),
        Err(error) => println!("{what}: {error}"),
    }
}

fn chain(count: u32, user: &str, site: &str, log: &str) {
    let identity = (user != "-").then(|| Identity::find(user).unwrap_or_else(|unknown| panic!("{unknown}")));
    if let Some(identity) = &identity {
        identity.assume().unwrap_or_else(|error| panic!("{error}"));
    }
    let confinement = confined(Path::new(site), Path::new(log), true, identity.as_ref());
    if count == 0 {
        let status = fs::read_to_string("/proc/self/status").expect("our own status");
        let filters = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
        println!("filters: {}", filters.expect("a number of filters").trim());
        println!("user: {}", rustix::process::getuid().as_raw());
        println!("environment: {}", confinement.environment().expect("a confinement").1);
        return;
    }
    let own: PathBuf = std::env::current_exe().expect("our own path");
    let mut next = Command::new(own);
    next.args(["chain", &(count - 1).to_string(), user, site, log]).envs(confinement.environment());
    panic!("{}", next.exec());
}

/// Lets a system call fail as it does in a kernel that was built without it.
fn take(what: &str) {
    let (call, errno) = match what {
        "landlock" => (libc::SYS_landlock_create_ruleset, libc::ENOSYS),
        "seccomp" => (libc::SYS_seccomp, libc::EINVAL),
        // As the filters of Docker and Podman have it.
        "io_uring" => (libc::SYS_io_uring_setup, libc::EPERM),
        _ => panic!("`{what}` is not one of landlock, seccomp, io_uring"),
    };
    let calls = BTreeMap::from([(call, Vec::new())]);
    let refused = SeccompAction::Errno(errno as u32);
    let arch = std::env::consts::ARCH.try_into().expect("a known processor");
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, refused, arch).expect("a filter");
    let program: BpfProgram = filter.try_into().expect("a program");
    seccompiler::apply_filter(&program).expect("a kernel with filters");
}
