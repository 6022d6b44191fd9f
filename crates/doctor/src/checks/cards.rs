//! Network cards: their queues, and which processor does a packet's work.
//!
//! It must never look at interfaces without a device: loopback, bridges and cables of containers have no
//! queues worth the name.

use super::sources::SCALING;
use crate::check::{Check, Judge, Verdict};
use crate::host::{Host, Interface, numbers_of_list};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "link",
        rule: "1000 Mbit/s or more, full duplex",
        reason: "A port that came up slow or half duplex limits everything above it: Yang's first advice, \
                 still right.",
        source: "ethtool(8); Yang 2008",
        judge: Judge::Interface(link),
    },
    Check {
        name: "queues",
        rule: "as many receive queues as processors, or RPS",
        reason: "Each receive queue has an interrupt, and its work is done where that is handled. With one \
                 queue one processor does it for all.",
        source: SCALING,
        judge: Judge::Interface(queues),
    },
    Check {
        name: "RPS",
        rule: "off where each processor has a receive queue, else on",
        reason: "Spreads the work of few queues over many processors, for one more interrupt a packet. \
                 Where the card has enough queues it is a loss.",
        source: SCALING,
        judge: Judge::Interface(rps),
    },
    Check {
        name: "XPS",
        rule: "on where there are several send queues",
        reason: "Lets each processor send by a queue of its own, so that no two wait for one lock.",
        source: SCALING,
        judge: Judge::Interface(xps),
    },
    Check {
        name: "IRQ placement",
        rule: "interrupts of several queues on several processors",
        reason: "Where all interrupts of a card are handled by one processor, that one is full while the \
                 others rest: what stopped Yang's server at 300000 connections. irqbalance or smp_affinity \
                 spread them.",
        source: "Documentation/core-api/irq/irq-affinity.rst; Yang 2008",
        judge: Judge::Interface(interrupts),
    },
    Check {
        name: "packets missed",
        rule: "none",
        reason: "Packets the card had no room for, since start: its rings are too short (ethtool -G) or \
                 its processor too busy.",
        source: "Documentation/networking/statistics.rst",
        judge: Judge::Interface(|host, card| {
            let missed = host.number(&format!("{}/statistics/rx_missed_errors", card.folder));
            Verdict::happened(missed, "longer rings (ethtool -G), interrupts on more processors")
        }),
    },
];

fn link(host: &Host, card: &Interface) -> Verdict {
    // The kernel gives an error or -1 where there is no link or a virtual card has no speed.
    let speed = host.text(&format!("{}/speed", card.folder)).and_then(|text| text.parse::<i64>().ok());
    let duplex = host.text(&format!("{}/duplex", card.folder)).unwrap_or_default();
    match speed {
        Some(speed) if speed > 0 && duplex == "half" => {
            Verdict::matters(format!("{speed} Mbit/s, half"), "full duplex")
        }
        Some(speed) if (1..1000).contains(&speed) => {
            Verdict::advise(format!("{speed} Mbit/s"), "1000 Mbit/s or more: cable, port, or switch")
        }
        Some(speed) if speed > 0 => Verdict::ok(format!("{speed} Mbit/s")),
        _ => Verdict::ok("says no speed"),
    }
}

/// Numbers of receive and send queues.
fn count_queues(host: &Host, card: &Interface) -> (usize, usize) {
    let names = host.names(&format!("{}/queues", card.folder));
    let count = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
    (count("rx-"), count("tx-"))
}

fn queues(host: &Host, card: &Interface) -> Verdict {
    let ((receive, send), processors) = (count_queues(host, card), host.processors().len());
    let value = format!("{receive} receive, {send} send");
    if receive >= processors.min(8) || is_spread(host, card, receive) {
        Verdict::ok(value)
    } else {
        Verdict::advise(
            value,
            format!("ethtool -L {} combined {processors}, if the card has so many", card.name),
        )
    }
}

/// Whether a file of every queue of one kind names a processor.
fn is_set(host: &Host, card: &Interface, prefix: &str, file: &str) -> bool {
    let queues = host.names(&format!("{}/queues", card.folder));
    let mut masks = queues
        .iter()
        .filter(|queue| queue.starts_with(prefix))
        .filter_map(|queue| host.text(&format!("{}/queues/{queue}/{file}", card.folder)));
    masks.any(|mask| mask.chars().any(|digit| matches!(digit, '1'..='9' | 'a'..='f')))
}

/// Whether RPS makes up for few queues.
fn is_spread(host: &Host, card: &Interface, receive: usize) -> bool {
    receive > 0 && is_set(host, card, "rx-", "rps_cpus")
}

fn rps(host: &Host, card: &Interface) -> Verdict {
    let (receive, processors) = (count_queues(host, card).0, host.processors().len());
    match (is_set(host, card, "rx-", "rps_cpus"), receive < processors.min(8)) {
        (true, false) if processors > 1 => Verdict::advise("on", "off: write 0 to each rps_cpus"),
        (true, _) => Verdict::ok("on"),
        (false, true) => {
            let mask = if processors >= 32 { u32::MAX } else { (1 << processors) - 1 };
            Verdict::advise("off", format!("write {mask:x} to queues/rx-*/rps_cpus of {}", card.name))
        }
        (false, false) => Verdict::ok("off"),
    }
}

fn xps(host: &Host, card: &Interface) -> Verdict {
    let send = count_queues(host, card).1;
    match is_set(host, card, "tx-", "xps_cpus") {
        true => Verdict::ok("on"),
        false if send < 2 => Verdict::ok("one send queue"),
        false => Verdict::advise("off", "a processor for each queue in queues/tx-*/xps_cpus"),
    }
}

/// Interrupts of the card: those of its device, or of the device's parent (virtio).
fn interrupts(host: &Host, card: &Interface) -> Verdict {
    let folders = ["device/msi_irqs", "device/../msi_irqs"];
    let numbers = folders.iter().map(|folder| host.names(&format!("{}/{folder}", card.folder)));
    let Some(numbers) = numbers.into_iter().find(|names| !names.is_empty()) else {
        return Verdict::not_here();
    };
    let mut used: Vec<usize> = Vec::new();
    for number in &numbers {
        let files = ["effective_affinity_list", "smp_affinity_list"];
        let list = files.iter().find_map(|file| host.text(&format!("proc/irq/{number}/{file}")));
        used.extend(list.as_deref().map(numbers_of_list).unwrap_or_default());
    }
    used.sort_unstable();
    used.dedup();
    let processors =
        if used.len() == 1 { "one processor".into() } else { format!("{} processors", used.len()) };
    let value = format!("{} interrupts on {processors}", numbers.len());
    match used.len() {
        0 => Verdict::unknown(format!("{} interrupts", numbers.len())),
        1 if count_queues(host, card).0 > 1 && host.processors().len() > 1 => {
            Verdict::matters(value, "spread them: irqbalance, or /proc/irq/N/smp_affinity_list")
        }
        _ => Verdict::ok(value),
    }
}
