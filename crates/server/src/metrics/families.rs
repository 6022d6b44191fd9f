//! Which metrics there are, and what each means.
//!
//! It owns their names: dashboards and alarms are built on them, so a name that was published stays. Sums
//! over
//! workers; only two have a label for the worker, to see that they share the work.

use staunch_engine::BOUNDS_NS;

use super::dictionary::dictionaries;
use super::exposition::Exposition;
use super::fabric::{FabricFigures, FabricLoad};
use super::snapshot::{ByReason, HistogramFigures, Readiness, SiteFigures, Snapshot, WorkerFigures};
use crate::live::LiveFigures;

/// The figures in the text form of Prometheus, version 0.0.4.
pub fn text(snapshot: &Snapshot) -> String {
    let mut out = Exposition::default();
    server(snapshot, &mut out);
    connections(snapshot, &mut out);
    tls(&snapshot.workers, &mut out);
    requests(&snapshot.workers, &mut out);
    http2(&snapshot.workers, &mut out);
    times(&snapshot.workers, &mut out);
    workers(&snapshot.workers, &mut out);
    log(snapshot, &mut out);
    content(&snapshot.sites, &mut out);
    if let Some(figures) = &snapshot.live {
        live(figures, &mut out);
    }
    dictionaries(snapshot, &mut out);
    if let Some(figures) = &snapshot.fabric {
        fabric(figures, &mut out);
    }
    process(snapshot, &mut out);
    out.finish()
}

fn server(snapshot: &Snapshot, out: &mut Exposition) {
    out.gauge("staunch_build_info", "Always 1; its labels say what is running.")
        .sample(&[("version", &snapshot.version), ("io", &snapshot.io)], 1);
    let ready = u8::from(snapshot.readiness == Readiness::Ready);
    out.gauge("staunch_ready", "Whether requests should be sent here: 1 when prepared and not draining.")
        .sample(&[], ready);
}

fn connections(snapshot: &Snapshot, out: &mut Exposition) {
    let workers = &snapshot.workers;
    let (sending, waiting) = (sum(workers, |one| one.sending), sum(workers, |one| one.waiting));
    let idle = sum(workers, WorkerFigures::open).saturating_sub(sending + waiting);
    out.gauge(
        "staunch_connections",
        "Open connections: sending an answer, waiting for content to be loaded, or idle, which includes \
         those with half a request.",
    )
    .sample(&[("state", "idle")], idle)
    .sample(&[("state", "sending")], sending)
    .sample(&[("state", "waiting")], waiting);
    out.gauge("staunch_connections_max", "Most connections that may be open at a time.")
        .sample(&[], snapshot.connections_max);
    out.counter("staunch_connections_accepted_total", "Connections accepted.")
        .sample(&[], sum(workers, |one| one.accepted));
    out.counter(
        "staunch_accept_stops_total",
        "Times accepting stopped for want of descriptors, memory or slots.",
    )
    .sample(&[], sum(workers, |one| one.accept_stops));
    out.counter(
        "staunch_accept_pauses_total",
        "Times accepting paused for a turn because more was accepted than patience allows.",
    )
    .sample(&[], sum(workers, |one| one.accept_pauses));
    out.counter(
        "staunch_newcomers_stopped_total",
        "Times newcomers were kept out of the kernel's queue because too much waited there.",
    )
    .sample(&[], sum(workers, |one| one.newcomers_stopped));
    out.counter("staunch_timeouts_total", "Connections that ran into a deadline, by its name.");
    by_reason("deadline", workers, |one| &one.timeouts, out);
}

fn tls(workers: &[WorkerFigures], out: &mut Exposition) {
    out.gauge(
        "staunch_tls_connections",
        "Secured connections: with a handshake at work, awake (keys at hand), or asleep (120 bytes each).",
    )
    .sample(&[("state", "shaking")], sum(workers, |one| one.tls.shaking))
    .sample(&[("state", "awake")], sum(workers, |one| one.tls.awake))
    .sample(&[("state", "asleep")], sum(workers, |one| one.tls.asleep));
    out.counter(
        "staunch_tls_handshakes_total",
        "Handshakes that are over: full ones, or resumed by a ticket.",
    );
    for name in workers.first().into_iter().flat_map(|first| first.tls.handshakes.keys()) {
        let (version, kind) = name.split_once(' ').unwrap_or((name, ""));
        let count = sum(workers, |one| one.tls.handshakes.get(name).copied().unwrap_or(0));
        out.sample(&[("version", version), ("kind", kind)], count);
    }
    out.counter(
        "staunch_tls_handshakes_hybrid_total",
        "Handshakes whose keys were exchanged by X25519MLKEM768, of all that are over.",
    )
    .sample(&[], sum(workers, |one| one.tls.hybrid));
    out.counter("staunch_tls_handshakes_refused_total", "Handshakes that came to nothing, by reason.");
    by_reason("reason", workers, |one| &one.tls.refusals, out);
    out.counter("staunch_tls_faults_total", "Secured connections ended for a fault of the peer's records.")
        .sample(&[], sum(workers, |one| one.tls.faults));
    out.counter(
        "staunch_tls_truncated_total",
        "Secured connections whose peer left without saying that nothing follows.",
    )
    .sample(&[], sum(workers, |one| one.tls.truncated));
    out.counter("staunch_tls_oddities_total", "Empty records, warnings and key updates of peers.")
        .sample(&[], sum(workers, |one| one.tls.oddities));
}

fn requests(workers: &[WorkerFigures], out: &mut Exposition) {
    out.counter("staunch_requests_total", "Requests answered.").sample(&[], sum(workers, |one| one.requests));
    out.counter("staunch_requests_late_total", "Requests that had to wait for content to be loaded.")
        .sample(&[], sum(workers, |one| one.requests_late));
    out.counter("staunch_responses_total", "Answers to requests, by class of their status.");
    for (index, class) in ["1xx", "2xx", "3xx", "4xx", "5xx"].iter().enumerate() {
        out.sample(&[("class", class)], sum(workers, |one| one.responses[index]));
    }
    out.counter(
        "staunch_refusals_total",
        "What was refused before it was worked on, or would be but for a dry run, by reason.",
    );
    by_reason("reason", workers, |one| &one.refusals, out);
    out.counter(
        "staunch_clients_uncounted_total",
        "Connections and requests of clients that were not limited for want of a place to count them.",
    )
    .sample(&[], sum(workers, |one| one.uncounted_clients));
    out.counter("staunch_sent_bytes_total", "Bytes handed to the kernel for sending, heads included.")
        .sample(&[], sum(workers, |one| one.sent_bytes));
    out.counter("staunch_sends_failed_total", "Sends that failed before all was taken.")
        .sample(&[], sum(workers, |one| one.sends_failed));
}

fn http2(workers: &[WorkerFigures], out: &mut Exposition) {
    out.counter("staunch_http2_connections_total", "Connections that spoke HTTP/2.")
        .sample(&[], sum(workers, |one| one.http2.connections));
    out.counter("staunch_http2_requests_total", "Requests that came by HTTP/2.")
        .sample(&[], sum(workers, |one| one.http2.requests));
    out.counter(
        "staunch_http2_resets_total",
        "Requests by HTTP/2 that were over before their answers were complete: cancelled, or reset for what \
         was wrong or too slow.",
    )
    .sample(&[], sum(workers, |one| one.http2.resets));
    out.counter(
        "staunch_http2_refused_total",
        "What came as a request by HTTP/2 and was malformed, too large, or more at a time than may be.",
    )
    .sample(&[], sum(workers, |one| one.http2.refused));
    out.counter(
        "staunch_http2_calmed_total",
        "Connections ended with ENHANCE_YOUR_CALM: resets, pings, empty frames and the like without end.",
    )
    .sample(&[], sum(workers, |one| one.http2.calmed));
    out.counter("staunch_http2_websockets_total", "WebSockets opened on a stream of HTTP/2 (RFC 8441).")
        .sample(&[], sum(workers, |one| one.http2.websockets));
}

fn times(workers: &[WorkerFigures], out: &mut Exposition) {
    let mut histogram = |name, help, of: fn(&WorkerFigures) -> &HistogramFigures| {
        let mut buckets = vec![0; BOUNDS_NS.len() + 1];
        for one in workers.iter().map(of) {
            buckets.iter_mut().zip(&one.buckets).for_each(|(sum, count)| *sum += count);
        }
        out.histogram(name, help, &BOUNDS_NS, &buckets, sum(workers, |one| of(one).sum_ns));
    };
    histogram(
        "staunch_request_duration_seconds",
        "From the turn of the loop in which a request was complete to the end of the turn that answered it: \
         an upper bound of the server's own part. Sending and the network are not in it.",
        |one| &one.latency,
    );
    histogram(
        "staunch_queue_age_seconds",
        "How long requests may have waited in the server before they were looked at: the length of the turn \
         before, or the time new connections stood in line if that was longer; an upper bound. Waiting in \
         the kernel's accept queue is not in it.",
        |one| &one.queue_age,
    );
}

fn workers(workers: &[WorkerFigures], out: &mut Exposition) {
    let each = |of: fn(&WorkerFigures) -> u64, out: &mut Exposition| {
        for (index, one) in workers.iter().enumerate() {
            out.sample(&[("worker", &index.to_string())], of(one));
        }
    };
    out.counter("staunch_worker_requests_total", "Requests answered by each worker.");
    each(|one| one.requests, out);
    out.gauge("staunch_worker_connections", "Connections open at each worker.");
    each(WorkerFigures::open, out);
    out.gauge("staunch_memory_held_bytes", "Memory that peers make each worker hold: answers, input kept.");
    each(|one| one.memory_held_bytes, out);
    out.gauge("staunch_memory_budget_bytes", "Memory that peers may make each worker hold.");
    each(|one| one.memory_budget_bytes, out);
    out.counter("staunch_turns_total", "Turns of the workers' loops: idle ones make none.")
        .sample(&[], sum(workers, |one| one.turns));
}

fn log(snapshot: &Snapshot, out: &mut Exposition) {
    let log = &snapshot.log;
    out.counter(
        "staunch_access_log_lines_total",
        "Lines of the access log: written, dropped because the log was too slow, or failed to be written.",
    )
    .sample(&[("outcome", "written")], log.written)
    .sample(&[("outcome", "dropped")], log.dropped)
    .sample(&[("outcome", "failed")], log.failed);
    out.counter(
        "staunch_error_log_lines_total",
        "The server's own lines, also on standard output and error: written, or lost as nobody took them.",
    )
    .sample(&[("outcome", "written")], snapshot.error_log.written)
    .sample(&[("outcome", "lost")], snapshot.error_log.lost);
}

fn content(sites: &[SiteFigures], out: &mut Exposition) {
    let each = |of: fn(&SiteFigures) -> u64, out: &mut Exposition| {
        for site in sites {
            out.sample(&[("site", &site.name)], of(site));
        }
    };
    out.gauge("staunch_content_files", "Files found in the site's folder.");
    each(|site| site.files, out);
    out.gauge("staunch_content_answers", "Answers held in memory, ready to be sent.");
    each(|site| site.prepared, out);
    out.counter("staunch_content_encodings_total", "Encodings made of the site's content.");
    each(|site| site.encodings, out);
    out.gauge("staunch_content_held_bytes", "Memory the site's answers occupy.");
    each(|site| site.held_bytes, out);
    out.gauge("staunch_content_budget_bytes", "Memory the site's answers may occupy.");
    each(|site| site.budget_bytes, out);
    out.gauge("staunch_content_prepared", "Whether everything is prepared that will be unasked.");
    each(|site| u64::from(site.done), out);
}

fn live(figures: &LiveFigures, out: &mut Exposition) {
    out.gauge("staunch_live_readers", "Readers of live data, by transport.");
    for (transport, readers) in &figures.readers {
        out.sample(&[("transport", transport)], *readers);
    }
    out.counter("staunch_live_tokens_refused_total", "Times a token was refused, by the reason.");
    for (reason, times) in &figures.tokens_refused {
        out.sample(&[("reason", reason)], *times);
    }
    let gauges = [
        ("staunch_live_readers_max", "Most readers of live data at a time.", figures.readers_max),
        ("staunch_live_topics", "Topics that there are.", figures.topics),
        ("staunch_live_memory_bytes", "Memory of values, last updates and forms.", figures.memory_bytes),
        ("staunch_live_memory_max_bytes", "Memory that they may have.", figures.memory_bytes_max),
        ("staunch_live_queue_updates", "Updates that wait to be numbered.", figures.queued),
        (
            "staunch_live_state_failing",
            "Whether nothing can be kept, and publications are refused.",
            figures.state_failing,
        ),
    ];
    for (name, help, value) in gauges {
        out.gauge(name, help).sample(&[], value);
    }
    let counters = [
        ("staunch_live_joined_total", "Readers that joined.", figures.joined),
        ("staunch_live_readers_refused_total", "Readers refused for want of room.", figures.refused),
        ("staunch_live_published_total", "Updates numbered.", figures.published),
        ("staunch_live_publish_refused_total", "Publications that were not taken.", figures.not_published),
        ("staunch_live_deliveries_total", "Sends to readers, of one update or more.", figures.deliveries),
        (
            "staunch_live_passed_by_total",
            "Times a reader was passed by because its last send was under way.",
            figures.passed_by,
        ),
        ("staunch_live_heartbeats_total", "Signs of life sent to quiet readers.", figures.heartbeats),
        (
            "staunch_live_unknown_versions_total",
            "Readers that came back with a version not known here, and got a snapshot.",
            figures.unknown_versions,
        ),
        ("staunch_live_slow_total", "Readers closed because too much stood to be sent.", figures.slow),
        ("staunch_live_polls_total", "Values polled.", figures.polls),
        ("staunch_live_commands_total", "Commands of WebSockets answered.", figures.commands),
        (
            "staunch_live_socket_faults_total",
            "WebSockets closed because the peer broke the protocol or a limit.",
            figures.socket_faults,
        ),
        (
            "staunch_live_socket_silences_total",
            "WebSockets closed because they gave no sign of life.",
            figures.socket_silences,
        ),
        ("staunch_live_compressions_total", "Compressions of updates.", figures.compressions),
        ("staunch_live_hub_waits_total", "Times publishing waited for a worker.", figures.waits),
        ("staunch_live_state_batches_total", "Batches of updates that were kept.", figures.state_batches),
        ("staunch_live_state_failures_total", "Times nothing could be kept.", figures.state_failures),
    ];
    for (name, help, value) in counters {
        out.counter(name, help).sample(&[], value);
    }
}

/// Nodes have no label of their own: a peer can choose its address.
fn fabric(figures: &FabricFigures, out: &mut Exposition) {
    let silent = figures.nodes.iter().filter(|node| node.silent).count();
    let behind = figures.nodes.iter().filter(|node| node.behind).count();
    out.gauge("staunch_fabric_nodes", "Other servers of the LAN that are known.")
        .sample(&[("state", "heard")], figures.nodes.len() - silent)
        .sample(&[("state", "silent")], silent);
    let load = |of: fn(&FabricLoad) -> u64| -> u64 {
        figures.nodes.iter().filter_map(|node| node.load.as_ref()).map(of).sum()
    };
    let gauges = [
        ("staunch_fabric_behind", "Other servers that are asked for values.", behind as u64),
        ("staunch_fabric_topics", "Topics with a value that others are told of.", figures.topics),
        ("staunch_fabric_marks", "Ends of topics that are remembered.", figures.marks),
        (
            "staunch_fabric_trouble",
            "Whether nothing can be told at present.",
            u64::from(!figures.trouble.is_empty()),
        ),
        (
            "staunch_fabric_others_requests_per_second",
            "Requests a second of all other servers.",
            load(|load| load.requests_per_second.into()),
        ),
        (
            "staunch_fabric_others_connections",
            "Connections of all other servers.",
            load(|load| load.connections.into()),
        ),
        (
            "staunch_fabric_others_readers",
            "Readers of live data of all other servers.",
            load(|load| load.readers.into()),
        ),
    ];
    for (name, help, value) in gauges {
        out.gauge(name, help).sample(&[], value);
    }
    out.counter("staunch_fabric_events_total", "What happened between this server and the others, by kind.");
    for (event, count) in &figures.counts {
        out.sample(&[("event", event)], *count);
    }
}

fn process(snapshot: &Snapshot, out: &mut Exposition) {
    let process = &snapshot.process;
    out.counter("process_cpu_seconds_total", "Processor time used, in user space and in the kernel.")
        .sample(&[], process.cpu_seconds);
    out.gauge("process_resident_memory_bytes", "Memory occupied.").sample(&[], process.resident_bytes);
    out.gauge("process_virtual_memory_bytes", "Addresses occupied.").sample(&[], process.virtual_bytes);
    out.gauge("process_open_fds", "Descriptors open.").sample(&[], process.open_descriptors);
    out.gauge("process_max_fds", "Descriptors that may be open.").sample(&[], process.descriptors_max);
    out.gauge("process_start_time_seconds", "When the process was started, in seconds since 1970.")
        .sample(&[], process.start_unix_seconds);
}

fn by_reason(
    label: &str,
    workers: &[WorkerFigures],
    of: fn(&WorkerFigures) -> &ByReason,
    out: &mut Exposition,
) {
    for reason in workers.first().into_iter().flat_map(|first| of(first).keys()) {
        let count = sum(workers, |one| of(one).get(reason).copied().unwrap_or(0));
        out.sample(&[(label, reason)], count);
    }
}

fn sum(workers: &[WorkerFigures], of: impl Fn(&WorkerFigures) -> u64) -> u64 {
    workers.iter().map(of).sum()
}
