//! Keys of the process: its logs, its end, its rights, its own pages.

use crate::group::{Conflict, group};
use crate::syntax::choice::{LogField, OnOff, Sandbox};
use crate::syntax::log_line::{LogForm, StatusCondition};
use crate::syntax::text::{
    Admin, AdminAddress, Count, FilePath, Interface, Lines, OwnLines, Size, Time, User,
};
use crate::syntax::web::{Host, Pattern, UrlPath};
use crate::syntax::{Many, OrAuto, OrOff};

group! {
    /// The access log: a line for each answer.
    AccessLog, "Access log", |_| None;

    /// File with a line for each answer; `-`: standard output; or `syslog`
    /// `/dev/stdout` and `/dev/stderr` are the outputs of the process, as in containers. A file that cannot
    /// be opened at the start is no reason not to serve: its lines are lost, the error log and `/readyz` of
    /// the admin address say so, and it is tried again once a second while there are lines, and by USR1.
    /// Lines are written by a thread of their own. When the disk is slower than the requests, lines are
    /// dropped and counted; no request ever waits for the log. USR1 opens the file anew.
    /// `syslog` is the socket `/dev/log`, `syslog:/PATH` another one. Messages are of facility daemon and
    /// severity info (RFC 3164), in UTC.
    /// A key of this log in a `[[site]]` holds for requests to its hosts; one that is not there is as above;
    /// `off` there writes nothing of that site. Requests without a host are the default site's.
    access_log: OrOff<Lines> = Some("off"), Value, reload, "\"/var/log/staunch/access.log\"";
    /// How the lines look
    /// A text of one's own has the words of nginx: `$remote_addr`, `$remote_user`, `$time_local`,
    /// `$time_iso8601`, `$request`, `$request_method`, `$request_uri`, `$server_protocol`, `$host`,
    /// `$status`, `$body_bytes_sent`, `$http_referer`, `$http_user_agent`, `$http_x_forwarded_for`,
    /// `$request_time` (seconds the request waited for content), of clients that show certificates
    /// `$ssl_client_verify` (`SUCCESS` or `NONE`), `$ssl_client_s_dn` and `$ssl_client_fingerprint_sha256`,
    /// and of requests that applications answer `$upstream_addr`, `$upstream_tries`, `$upstream_class`,
    /// `$upstream_queue_time` (in line), `$upstream_header_time` and `$upstream_response_time`.
    /// What a client sent is escaped as in `combined`, and is `-` if it sent nothing.
    access_log_format: LogForm = Some("combined"), Value, reload,
        "\"$remote_addr $host \\\"$request\\\" $status $body_bytes_sent $request_time\"";
    /// Fields of a JSON line, in this order
    /// Of requests that applications answer there are `upstream` (the server's address), `upstream_tries`,
    /// `upstream_class`, `upstream_line_ms`, `upstream_header_ms` and `upstream_response_ms`; of others these
    /// are `null`.
    access_log_fields: Many<LogField> =
        Some("time,client,method,target,version,host,status,bytes,referer,user_agent"),
        Value, reload, "[\"time\", \"client\", \"target\", \"status\"]";
    /// Size from which on a new file is begun
    /// The old one is kept as `access.log.1`, the one before as `access.log.2`, and so on.
    access_log_size_max: OrOff<Size> = Some("off"), Value, reload, "\"100MiB\"";
    /// How many old files are kept
    access_log_keep: Count = Some("5"), Value, reload, "10";
    /// Conditions on an answer for a line to be written: all must hold
    /// A comparison of `status` with a number, by `>=`, `<`, `=` or `!=`, such as `status >= 400`.
    access_log_if: Many<StatusCondition> = Some(""), File, reload, "\"status >= 400\"";
    /// Patterns of paths of which no line is written
    /// The path is taken decoded, without its query. `*` stands for any characters, `/` among them.
    access_log_skip: Many<Pattern> = Some(""), File, reload, "[\"/healthz\", \"/assets/*\"]";
}

group! {
    /// The error log: lines of the server about itself.
    Logs, "Error log", |_| None;

    /// File for what the server says about itself; off is standard error
    /// `/dev/stdout` and `/dev/stderr` are the outputs of the process. While a file cannot be opened, lines
    /// go to standard error, and `/readyz` says so; USR1 tries again.
    error_log: OrOff<OwnLines> = Some("off"), Value, reload, "\"/var/log/staunch/error.log\"";
}

group! {
    /// How it ends, who it is, and what it tells.
    Process, "Process", public_admin;

    /// Further files, which hold `[[site]]` tables alone
    /// Names count from the folder of this file. A `*` in the name of a file stands for any characters but a
    /// dot at its beginning; such files are read in the order of their names, and there may be none. An
    /// included file includes no other, and none is read twice.
    include: Many<FilePath> = Some(""), File, reload, "\"conf.d/*.toml\"";
    /// Most time for answers under way at the end
    drain_timeout: Time = Some("30s"), Value, reload, "\"10s\"";
    /// Most time for answers after an upgrade
    /// The former process goes on with them beside the new one. A stop ends it as `drain_timeout` says.
    upgrade_timeout: Time = Some("1h"), Value, reload, "\"10min\"";
    /// PID file, kept while the server runs
    pid_file: OrOff<FilePath> = Some("off"), Value, restart, "\"/run/staunch/staunch.pid\"";
    /// Folder for what outlives it: certificates and their keys
    /// `auto` is what systemd says (`StateDirectory=`), else `/var/lib/staunch` for root, and
    /// `~/.local/state/staunch` for others.
    state_folder: OrAuto<FilePath> = Some("auto"), Value, restart, "\"/var/lib/staunch\"";
    /// User to become once ports are open: www-data
    user: OrOff<User> = Some("off"), Value, restart, "\"www-data\"";
    /// Confine it to what it serves (Landlock, seccomp)
    /// `auto` takes what the kernel has, and the start-up block says what that is. With `on` the server does
    /// not start when something is missing.
    sandbox: Sandbox = Some("auto"), Value, restart, "\"on\"";
    /// Interfaces at which what cannot be served is shed: eth0
    /// An XDP program sheds them before the kernel pays for them; see `staunch gate`, which does so for other
    /// servers and has more flags. The ports are those of `listen`. It needs CAP_BPF, CAP_NET_ADMIN and
    /// CAP_PERFMON at the start; they are given up with `user`. An upgrade ends it.
    gate: Many<Interface> = Some(""), Values, restart, "[\"eth0\"]";
    /// Address or socket file for /metrics and /healthz
    /// Plain HTTP without password: an address that others can reach needs `admin_public` as well. A socket
    /// file (its whole name, `/run/staunch/admin`) is for the server's user, its group, and root. By either
    /// `staunch reload`, `stop`, `upgrade`, `status` and `top` find the server.
    admin: OrOff<Admin> = Some("off"), Value, restart, "\"127.0.0.1:9090\"";
    /// Allow an admin address that is not a loopback one
    admin_public: OnOff = Some("off"), Switch, restart, "true";
    /// Names of the admin address, beside localhost and IPs
    /// Whoever asks for another name is refused with 421: a web page may have led a browser here by giving
    /// its own name this address (DNS rebinding).
    admin_hosts: Many<Host> = Some(""), Values, restart, "[\"web1.example.org\"]";
    /// Serve what the server knows about itself, as JSON, at this path
    status: OrOff<UrlPath> = Some("off"), Value, restart, "\"/status.json\"";
}

fn public_admin(process: &Process) -> Conflict {
    let Some(AdminAddress::Internet(address)) = &process.admin else { return None };
    if address.ip().is_loopback() || process.admin_public {
        return None;
    }
    let text = format!(
        "others can reach {address}, and there is no password: say `admin_public` as well if they may"
    );
    Some(("admin", text))
}
