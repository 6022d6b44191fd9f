//! The list of tools: how one sees that it is there, which Debian package brings it, and what it is for.
//!
//! It must never install anything.
use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum;

use super::command::is_on_path;

/// Tasks that need tools. Each includes those before it, but no test needs what is shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum Purpose {
    /// Build and run the server
    Run,
    /// Show what happens under overload
    Demo,
    /// Run every test
    Test,
    /// Measure side by side with other servers
    Bench,
    /// Test for hours
    Soak,
}

impl Purpose {
    fn includes(self, other: Self) -> bool {
        other <= self && (self, other) != (Self::Test, Self::Demo)
    }
}

/// A tool that a task needs.
pub(crate) struct Need {
    /// The first task that needs it.
    pub(crate) purpose: Purpose,
    /// How one sees that it is there.
    pub(crate) probe: Probe,
    /// The Debian 12 package that brings it.
    pub(crate) package: &'static str,
    /// What it is for, in a few words.
    pub(crate) reason: &'static str,
}

/// How one sees that a tool is there.
pub(crate) enum Probe {
    /// A program on PATH.
    Program(&'static str),
    /// A file or folder.
    Path(&'static str),
    /// A module of Python 3.
    Python(&'static str),
}

const NCHAN: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";
const NGINX_LUA: &str = "/usr/lib/nginx/modules/ngx_http_lua_module.so";
const LIGHTTPD_LUA: &str = "/usr/lib/lighttpd/mod_magnet.so";
const PYTHON_H2: &str = "/usr/lib/python3/dist-packages/h2";
const PYTHON_H11: &str = "/usr/lib/python3/dist-packages/h11";
const FONTS: &str = "/usr/share/fonts/truetype/dejavu";

/// Everything any task needs.
#[rustfmt::skip] // a table
const NEEDS: &[Need] = &[
    need(Purpose::Run, Probe::Program("cc"), "gcc", "compiles the C parts of libraries, links"),
    need(Purpose::Run, Probe::Path("/usr/include/stdio.h"), "libc6-dev", "C library headers and start files"),
    need(Purpose::Run, Probe::Program("clang"), "clang", "compiles BPF programs"),
    need(Purpose::Demo, Probe::Program("nginx"), "nginx-light", "server to put the gate before"),
    need(Purpose::Demo, Probe::Path(NGINX_LUA), "libnginx-mod-http-lua", "work for nginx"),
    need(Purpose::Demo, Probe::Program("apache2"), "apache2", "server to put the gate before"),
    need(Purpose::Demo, Probe::Program("haproxy"), "haproxy", "a proxy to compare with"),
    need(Purpose::Demo, Probe::Program("chrt"), "util-linux", "lets reception go before the server"),
    need(Purpose::Demo, Probe::Program("ip"), "iproute2", "network namespaces for the flood"),
    need(Purpose::Demo, Probe::Program("ethtool"), "ethtool", "makes an interface ready for the flood"),
    need(Purpose::Test, Probe::Program("prometheus"), "prometheus", "reads the dashboard and the alerts"),
    need(Purpose::Test, Probe::Program("make"), "make", "the commands of the Makefile"),
    need(Purpose::Test, Probe::Program("c++"), "g++", "compiles libFuzzer"),
    need(Purpose::Test, Probe::Program("chromium"), "chromium", "opens the pages we make"),
    need(Purpose::Test, Probe::Path(FONTS), "fonts-dejavu-core", "letters for its screenshots"),
    need(Purpose::Test, Probe::Program("node"), "nodejs", "HTTP client; drives the browser"),
    need(Purpose::Test, Probe::Program("python3"), "python3", "HTTP client"),
    need(Purpose::Test, Probe::Python("ensurepip"), "python3-venv", "an environment of its own for REDbot"),
    need(Purpose::Test, Probe::Path(PYTHON_H2), "python3-h2", "HTTP/2 client and its codec of fields"),
    need(Purpose::Test, Probe::Path(PYTHON_H11), "python3-h11", "reads what the proxy passes on"),
    need(Purpose::Test, Probe::Program("gunicorn"), "gunicorn", "reads what the proxy passes on"),
    need(Purpose::Test, Probe::Program("apache2"), "apache2", "reads what the proxy passes on"),
    need(Purpose::Test, Probe::Program("go"), "golang-go", "reads what the proxy passes on; HTTP client"),
    need(Purpose::Test, Probe::Python("websockets"), "python3-websockets", "WebSocket client"),
    need(Purpose::Test, Probe::Program("nghttp"), "nghttp2-client", "HTTP/2 client and load"),
    need(Purpose::Test, Probe::Program("perl"), "perl", "HTTP client"),
    need(Purpose::Test, Probe::Program("curl"), "curl", "HTTP client"),
    need(Purpose::Test, Probe::Program("openssl"), "openssl", "TLS client, maker of RSA certificates"),
    need(Purpose::Test, Probe::Program("wrk"), "wrk", "load"),
    need(Purpose::Test, Probe::Program("ab"), "apache2-utils", "load by ab"),
    need(Purpose::Test, Probe::Program("siege"), "siege", "load"),
    need(Purpose::Test, Probe::Program("httperf"), "httperf", "load"),
    need(Purpose::Test, Probe::Program("slowhttptest"), "slowhttptest", "slow and hostile clients"),
    need(Purpose::Test, Probe::Program("haproxy"), "haproxy", "a proxy that sends PROXY headers"),
    need(Purpose::Test, Probe::Program("varnishtest"), "varnish", "clients and servers beside the proxy"),
    need(Purpose::Test, Probe::Program("php-fpm8.2"), "php8.2-fpm", "a FastCGI application"),
    need(Purpose::Test, Probe::Program("tmux"), "tmux", "a terminal for the live view of the load generator"),
    need(Purpose::Test, Probe::Program("valgrind"), "valgrind", "counts instructions for the gate"),
    need(Purpose::Test, Probe::Program("strace"), "strace", "makes system calls of the server fail"),
    need(Purpose::Test, Probe::Program("setpriv"), "util-linux", "takes privileges away; pins to processors"),
    need(Purpose::Test, Probe::Program("debootstrap"), "debootstrap", "a clean Debian to install in"),
    need(Purpose::Test, Probe::Program("systemd-nspawn"), "systemd-container", "boots the clean Debian"),
    need(Purpose::Test, Probe::Program("lintian"), "lintian", "looks at the package as Debian does"),
    need(Purpose::Test, Probe::Program("strip"), "binutils", "makes the packaged program small"),
    need(Purpose::Test, Probe::Program("ip"), "iproute2", "makes network namespaces"),
    need(Purpose::Test, Probe::Program("tshark"), "tshark", "reads frames of DOSTP by its dissector"),
    need(Purpose::Test, Probe::Program("ethtool"), "ethtool", "readies their cables for XDP"),
    need(Purpose::Test, Probe::Program("zsh"), "zsh", "reads its completions"),
    need(Purpose::Test, Probe::Program("fish"), "fish", "reads its completions"),
    need(Purpose::Test, Probe::Program("groff"), "groff-base", "reads the manual pages"),
    need(Purpose::Test, Probe::Program("qemu-system-x86_64"), "qemu-system-x86", "runs other kernels"),
    need(Purpose::Test, Probe::Program("busybox"), "busybox", "a shell for such a machine"),
    need(Purpose::Test, Probe::Program("cpio"), "cpio", "packs its files"),
    need(Purpose::Test, Probe::Program("xz"), "xz-utils", "unpacks kernels and modules"),
    need(Purpose::Test, Probe::Program("zstd"), "zstd", "unpacks kernels, reads differences"),
    need(Purpose::Test, Probe::Program("depmod"), "kmod", "knows what a module needs"),
    need(Purpose::Test, Probe::Program("dkms"), "dkms", "builds the package of modules"),
    need(Purpose::Test, Probe::Program("nginx"), "nginx-light", "server to put the gate before"),
    need(Purpose::Bench, Probe::Path(NCHAN), "libnginx-mod-nchan", "fan-out by nginx"),
    need(Purpose::Bench, Probe::Path(LIGHTTPD_LUA), "lighttpd-modules-lua", "work for lighttpd"),
    need(Purpose::Bench, Probe::Program("java"), "default-jdk-headless", "server to put the gate before"),
    need(Purpose::Bench, Probe::Program("caddy"), "caddy", "server to compare with"),
    need(Purpose::Bench, Probe::Program("lighttpd"), "lighttpd", "server to compare with"),
    need(Purpose::Bench, Probe::Program("h2o"), "h2o", "server to compare with"),
    need(Purpose::Soak, Probe::Program("musl-gcc"), "musl-tools", "compiles the static program's C"),
    need(Purpose::Soak, Probe::Program("flex"), "flex", "builds a kernel with checks of its own"),
    need(Purpose::Soak, Probe::Program("bison"), "bison", "builds a kernel with checks of its own"),
    need(Purpose::Soak, Probe::Path("/usr/include/gelf.h"), "libelf-dev", "builds such a kernel's objtool"),
    need(Purpose::Soak, Probe::Program("bc"), "bc", "builds a kernel with checks of its own"),
];

const fn need(purpose: Purpose, probe: Probe, package: &'static str, reason: &'static str) -> Need {
    Need { purpose, probe, package, reason }
}

/// What a task needs and this machine has not.
pub(crate) fn missing(purpose: Purpose) -> Vec<&'static Need> {
    list(purpose).filter(|need| !is_there(&need.probe)).collect()
}

/// What a task needs.
fn list(purpose: Purpose) -> impl Iterator<Item = &'static Need> {
    NEEDS.iter().filter(move |need| purpose.includes(need.purpose))
}

fn is_there(probe: &Probe) -> bool {
    match probe {
        Probe::Program(name) => is_on_path(name),
        Probe::Path(path) => Path::new(path).exists(),
        Probe::Python(module) => Command::new("python3")
            .args(["-c", &format!("import {module}")])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_includes_those_before_it() {
        let names = |purpose| list(purpose).map(|need| need.package).collect::<Vec<_>>();
        assert!(names(Purpose::Run).contains(&"gcc"));
        assert!(!names(Purpose::Run).contains(&"wrk"));
        assert!(names(Purpose::Test).contains(&"gcc") && names(Purpose::Test).contains(&"wrk"));
        assert!(!names(Purpose::Test).contains(&"caddy"));
        assert!(names(Purpose::Bench).contains(&"caddy") && names(Purpose::Bench).contains(&"apache2"));
        let shown = names(Purpose::Demo);
        assert!(shown.contains(&"apache2") && shown.contains(&"gcc") && !shown.contains(&"curl"));
        assert!(!names(Purpose::Test).contains(&"libnginx-mod-http-lua"));
    }

    #[test]
    fn probes_tell_what_is_there() {
        assert!(is_there(&Probe::Program("sh")) && !is_there(&Probe::Program("no such program")));
        assert!(is_there(&Probe::Path("/proc/self")) && !is_there(&Probe::Path("/no such path")));
        assert!(!is_there(&Probe::Python("no_such_module")));
    }
}
