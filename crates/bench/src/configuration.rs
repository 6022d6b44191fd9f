//! The configuration of each server, as text.
//!
//! It owns what each server is told; it must never write a file or start a process. Request logs are off,
//! connections are kept as long as the client wants, there is one worker, and paths that look like
//! directories of this machine are quoted.

use std::path::Path;

use super::setup::{ServerKind, Setup};

mod secured;

/// Connections are kept this long, in seconds: longer than any scenario.
const KEEP_ALIVE_S: u32 = 600;
/// Length of the queue of connections not yet accepted.
const BACKLOG: u32 = 4096;

/// nginx: sendfile and open_file_cache, as its admin guide advises for static files. For pipelined requests
/// sendfile and tcp_nopush are off: with them each small answer waits for the peer's delayed acknowledgement
/// (24 000 requests a second instead of 120 000), which would compare nothing but that.
pub(super) fn nginx(setup: &Setup<'_>, folder: &Path, port: u16) -> String {
    let (address, connections, directory) = (setup.address, setup.connections_max, setup.directory.display());
    let folder = folder.display();
    let (modules, work) = nginx_work(setup.work_us);
    let (secured, pair) = secured::nginx(setup.pair);
    let gzip = nginx_gzip(setup.gzip_level);
    format!(
        r#"{modules}daemon off;
user root;
pid "{folder}/nginx.pid";
error_log "{folder}/error.log" warn;
worker_processes 1;
worker_rlimit_nofile {descriptors};
events {{
    use epoll;
    worker_connections {connections};
}}
http {{
    access_log off;
    sendfile {sendfile};
    tcp_nopush {sendfile};
    tcp_nodelay on;
    keepalive_timeout {KEEP_ALIVE_S};
    keepalive_requests 1000000000;
    open_file_cache max=200000 inactive={KEEP_ALIVE_S}s;
    open_file_cache_valid 60s;
    open_file_cache_min_uses 1;
    types {{ text/plain txt; text/html html; application/octet-stream bin; }}
    client_body_temp_path "{folder}/body";
    proxy_temp_path "{folder}/proxy";
    fastcgi_temp_path "{folder}/fastcgi";
    uwsgi_temp_path "{folder}/uwsgi";
    scgi_temp_path "{folder}/scgi";
    server {{
        listen {address}:{port}{secured} backlog={BACKLOG};
        root "{directory}";
        {work}{gzip}{pair}
    }}
}}
"#,
        descriptors = connections + 512,
        sendfile = if setup.pipelined > 1 { "off" } else { "on" },
    )
}

/// The work of each answer in Lua, before the file is looked for.
fn nginx_work(work_us: u32) -> (&'static str, String) {
    if work_us == 0 {
        return ("", String::new());
    }
    let modules = "load_module modules/ndk_http_module.so;\nload_module modules/ngx_http_lua_module.so;\n";
    (modules, format!("rewrite_by_lua_block {{ {} }}", lua_work(work_us)))
}

/// Compression of texts, which nginx does anew for each answer.
fn nginx_gzip(level: u8) -> String {
    if level == 0 {
        return String::new();
    }
    format!("gzip on; gzip_comp_level {level}; gzip_types text/plain;")
}

/// Lua that takes so much processor time.
fn lua_work(work_us: u32) -> String {
    format!("local stop = os.clock() + {work_us} / 1000000; while os.clock() < stop do end")
}

/// The script that lighttpd runs for each answer.
pub(super) fn lighttpd_work(work_us: u32) -> String {
    format!("{}\nreturn 0\n", lua_work(work_us))
}

/// lighttpd: epoll, its stat cache and sendfile, all its own defaults. Its writev backend costs the same for
/// a small file, which it reads into memory either way.
pub(super) fn lighttpd(setup: &Setup<'_>, folder: &Path, port: u16) -> String {
    let (address, connections, directory) = (setup.address, setup.connections_max, setup.directory.display());
    let folder = folder.display();
    let work = match setup.work_us {
        0 => String::new(),
        _ => format!(
            "server.modules = ( \"mod_magnet\" )\n\
             magnet.attract-physical-path-to = ( \"{folder}/work.lua\" )\n"
        ),
    };
    format!(
        r#"{work}server.document-root = "{directory}"
server.bind = "{address}"
server.port = {port}
server.event-handler = "linux-sysepoll"
server.network-backend = "sendfile"
server.stat-cache-engine = "simple"
server.max-keep-alive-requests = 65535
server.max-keep-alive-idle = {KEEP_ALIVE_S}
server.max-connections = {connections}
server.max-fds = {descriptors}
server.listen-backlog = {BACKLOG}
server.errorlog = "{folder}/error.log"
mimetype.assign = ( ".txt" => "text/plain", ".html" => "text/html", "" => "application/octet-stream" )
"#,
        descriptors = 2 * connections + 16,
    )
}

/// h2o: one thread, its file cache on by default.
pub(super) fn h2o(setup: &Setup<'_>, folder: &Path, port: u16) -> String {
    let (address, connections, directory) = (setup.address, setup.connections_max, setup.directory.display());
    let folder = folder.display();
    let (work, secured) = (h2o_work(setup.work_us), secured::h2o(setup.pair));
    format!(
        r#"listen:
  host: "{address}"
  port: {port}{secured}
user: root
num-threads: 1
max-connections: {connections}
http1-request-timeout: {KEEP_ALIVE_S}
http1-upgrade-to-http2: OFF
http2-idle-timeout: {KEEP_ALIVE_S}
error-log: "{folder}/error.log"
pid-file: "{folder}/h2o.pid"
hosts:
  default:
    paths:
      /:
{work}        file.dir: "{directory}"
"#
    )
}

/// The work of each answer in Ruby, before the file is looked for.
fn h2o_work(work_us: u32) -> String {
    if work_us == 0 {
        return String::new();
    }
    let seconds = f64::from(work_us) / 1e6;
    format!(
        r#"        mruby.handler: |
          Proc.new do |env|
            stop = Time.now.to_f + {seconds}
            while Time.now.to_f < stop
            end
            [399, {{}}, []]
          end
"#
    )
}

/// HAProxy, where it is to speak TLS; `None` otherwise.
pub(super) fn haproxy(setup: &Setup<'_>, folder: &Path, port: u16) -> Option<String> {
    secured::haproxy(setup, folder, port, KEEP_ALIVE_S)
}

/// Caddy, whose templates do the work: `content` says what such a file holds.
pub(super) fn caddy(setup: &Setup<'_>, port: u16) -> String {
    let (address, directory) = (setup.address, setup.directory.display());
    let work = if setup.work_us == 0 { "" } else { "templates {\n        mime text/plain\n    }" };
    let (scheme, secured) = secured::caddy(setup.pair);
    format!(
        r#"{{
    admin off
    auto_https off
    log default {{
        level ERROR
    }}
}}
{scheme}://:{port} {{
    bind {address}{secured}
    root * "{directory}"
    {work}
    file_server
}}
"#
    )
}

/// What a template of Caddy begins with to take so much time.
pub(super) fn caddy_work(work_us: u32) -> String {
    format!(
        "{{{{ $t := now }}}}{{{{ range until 1000 }}}}{{{{ if gt (now.Sub $t).Microseconds {work_us} }}}}\
         {{{{ break }}}}{{{{ end }}}}{{{{ end }}}}"
    )
}

/// Ours: the work of each answer, in a configuration file.
pub(super) fn staunch_work(work_us: u32) -> String {
    format!("[[path]]\nmatch = \"/*\"\nresponse_work = \"{work_us}us\"\n")
}

/// The command that starts ours, word by word.
pub(super) fn staunch(setup: &Setup<'_>, program: &str, port: u16) -> Vec<String> {
    let engine = if setup.kind == ServerKind::Uring { "uring" } else { "epoll" };
    let directory = setup.directory.to_string_lossy();
    let listen = format!("{}:{port}", setup.address);
    let certificate = secured::staunch(setup.pair);
    let listens = if setup.pair.is_some() { "--tls-listen" } else { "--listen" };
    let mut words = vec![program, "serve", &directory, listens, &listen, "--workers", "1", "--cpus", "0"];
    words.extend(certificate.iter().map(String::as_str));
    words.extend(["--io", engine, "--keep-alive", "600s", "--encodings", "off", "--listing", "off"]);
    words.extend(setup.arguments);
    words.into_iter().map(str::to_owned).collect()
}
