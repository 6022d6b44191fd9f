//! The control file. It must never name a dependency that the program does not need to run.

/// The version of the package: that of the project.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The control file for an architecture and the size of what is installed.
pub(crate) fn control(architecture: &str, size_kib: u64) -> String {
    // libc6 is that of Debian 12, on which packages are built.
    format!(
        "Package: staunch\n\
         Version: {VERSION}\n\
         Architecture: {architecture}\n\
         Maintainer: Staunch maintainers <maintainers@staunch.invalid>\n\
         Installed-Size: {size_kib}\n\
         Depends: libc6 (>= 2.36), libgcc-s1 (>= 4.2), adduser, init-system-helpers (>= 1.54)\n\
         Section: httpd\n\
         Priority: optional\n\
         Description: web server for crowds\n \
         Staunch serves files over HTTP/1.1 and HTTP/2, in plain text and by TLS, from\n \
         content that was prepared before the request came, on io_uring or epoll. It\n \
         gets and renews certificates by itself (ACME), pushes live data to readers\n \
         (server-sent events, WebSockets), and gives way in a stated order when more\n \
         people come than it can serve.\n \
         .\n \
         The package also brings its load generator (staunch load) and a program that\n \
         judges the settings of the host (staunch doctor).\n"
    )
}

/// The control file of the package of modules. DKMS needs a compiler and make, and names them itself.
pub(crate) fn modules(size_kib: u64) -> String {
    format!(
        "Package: staunch-dkms\n\
         Version: {VERSION}\n\
         Architecture: all\n\
         Maintainer: Staunch maintainers <maintainers@staunch.invalid>\n\
         Installed-Size: {size_kib}\n\
         Depends: dkms (>= 2.1.0.0)\n\
         Suggests: staunch\n\
         Section: kernel\n\
         Priority: optional\n\
         Description: servers that live in the kernel (DKMS)\n \
         Sources of the modules khttpd (a server of files), kecho (an echo server) and\n \
         dostp (a transport for the LAN), built by DKMS for each kernel that is\n \
         installed with its headers.\n \
         .\n \
         The web server in the package staunch needs none of them.\n"
    )
}
