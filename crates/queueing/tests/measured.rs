//! The model against measurements of real servers on one processor (one run of 0.8 to 3 s each on a machine
//! that had other work; repeated runs differed by 3 to 6 %). Tolerances are stated at each comparison.
//!
//! It must never fit a number on the very points it is compared with, unless it says so.

use staunch_queueing::batching::Reception;
use staunch_queueing::{Admission, Gate, Host, OfferedLoad, Run, Service, preemptive};

#[track_caller]
fn near(value: f64, measured: f64, relative: f64) {
    let off = (value / measured - 1.0).abs();
    assert!(off <= relative, "{value} predicted, {measured} measured, {:.1} % apart", off * 100.0);
}

/// nginx under a flood of forged SYN, no gate: forged SYN per second, requests answered per second.
const NGINX: [(f64, f64); 5] =
    [(0.0, 17_442.0), (30_000.0, 15_099.0), (82_000.0, 11_054.0), (165_000.0, 3996.0), (375_000.0, 347.0)];

#[test]
fn nginx_follows_equation_7() {
    // mu1 from the third point alone; the others are predicted.
    let (peak, third) = (NGINX[0].1, NGINX[2]);
    let mu1 = third.0 / (1.0 - third.1 / peak);
    near(mu1, 224_000.0, 0.01);
    near(preemptive::t2_heavy(NGINX[1].0, mu1, peak), NGINX[1].1, 0.03);
    near(preemptive::t2_heavy(NGINX[3].0, mu1, peak), NGINX[3].1, 0.16);
    // 220 000, as read off all points, is within 3 % for the first two and 10 % for the third.
    near(preemptive::t2_heavy(NGINX[1].0, 220_000.0, peak), NGINX[1].1, 0.03);
    near(preemptive::t2_heavy(NGINX[2].0, 220_000.0, peak), NGINX[2].1, 0.03);
    near(preemptive::t2_heavy(NGINX[3].0, 220_000.0, peak), NGINX[3].1, 0.10);
    // Beyond mu1 the law says nothing is left; 2 % of the peak was.
    assert_eq!(preemptive::t2_heavy(NGINX[4].0, 220_000.0, peak), 0.0);
    assert!(NGINX[4].1 / peak < 0.025);
}

#[test]
fn batches_explain_the_cost_of_reception() {
    // With interrupts 50 us after the first packet the law gave mu1 = 157 000 at 47 000/s, 180 000 at 95
    // 000/s and 197 000 at 187 000/s. c0 and c1 from the first and the last; the middle is predicted.
    let window_s = 50e-6;
    let share = |arrivals: f64| (1.0 + arrivals * window_s).recip();
    let (few, many) = (share(47_000.0), share(187_000.0));
    let interrupt_s = (1.0 / 157_000.0 - 1.0 / 197_000.0) / (few - many);
    let reception =
        Reception { packet_s: 1.0 / 157_000.0 - interrupt_s * few, interrupt_s, window_s, full_share: 1.0 };
    near(reception.mu1(95_000.0), 180_000.0, 0.01);
    // Without the window each packet has its interrupt: 86 000 to 120 000 at up to 71 000/s, where few
    // coincide.
    let at_once = Reception { window_s: 0.0, ..reception };
    for (flood, answered) in [(24_000.0, 3458.0), (47_000.0, 2121.0), (71_000.0, 1814.0)] {
        let predicted = preemptive::t2_heavy(flood, at_once.mu1(flood), 4676.0);
        assert!((predicted - answered).abs() < 0.16 * 4676.0, "{flood}: {predicted} and {answered}");
    }
}

#[test]
fn gate_under_a_flood() {
    // nginx whose known clients pass; requests answered without a flood: 20 367 a second. d = 0.56 us as
    // measured on another server at 928 000/s, so all four are predicted. Tolerance 12 %.
    let gate = |residual_s, flood_passed_per_s| {
        Some(Gate { residual_s, admission: Admission::PerSecond(1e9), flood_passed_per_s })
    };
    let host = Host {
        reception: Reception::constant(220_000.0),
        mu2_per_s: (20_367.0_f64.recip() - 220_000.0_f64.recip()).recip(),
        places: 4097,
        patience_s: 1.0,
        retry_s: 0.0,
        service: Service::Deterministic,
        gate: gate(0.56e-6, 0.0),
    };
    // Clients waited for answers there: what they get is what the host can do.
    let measured =
        [(92_000.0, 20_844.0), (187_000.0, 19_820.0), (373_000.0, 17_248.0), (916_000.0, 10_151.0)];
    for (flood_per_s, answered) in measured {
        let load = OfferedLoad { requests_per_s: 0.0, flood_per_s };
        near(host.capacity_per_s(&load).expect("a possible host"), answered, 0.12);
    }
    // The other server, 5000 of the flood let in a second: 4129 a second without a flood.
    let mu2_per_s = (4129.0_f64.recip() - 200_000.0_f64.recip()).recip();
    let reception = Reception::constant(200_000.0);
    let small = Host { mu2_per_s, reception, gate: gate(0.53e-6, 5000.0), ..host };
    for (flood_per_s, answered) in
        [(94_000.0, 3709.0), (281_000.0, 3137.0), (560_000.0, 2759.0), (928_000.0, 1976.0)]
    {
        let load = OfferedLoad { requests_per_s: 0.0, flood_per_s };
        near(small.capacity_per_s(&load).expect("a possible host"), answered, 0.10);
    }
}

/// An epoll server with 300 us of work a request, capacity about 1780 a second, patience 1 s.
fn small_server(backlog: u32, let_in_per_s: Option<f64>) -> Host {
    let admission =
        |rate| Gate { residual_s: 0.56e-6, admission: Admission::PerSecond(rate), flood_passed_per_s: 0.0 };
    Host {
        reception: Reception::constant(200_000.0),
        mu2_per_s: 1796.0,
        places: backlog + 1,
        patience_s: 1.0,
        retry_s: 0.0,
        service: Service::Deterministic,
        gate: let_in_per_s.map(admission),
    }
}

/// How long each run sent is not recorded; 2.5 s lies in the range that is, and the drain adds up to 1 s.
const RUN: Run = Run { sending_s: 2.5, drain_counted: true };

#[test]
fn all_honest_no_gate_backlog_4096() {
    // Offered per second, answered in time. Tolerance 20 %, from one unknown length of run; the fall to 28 %
    // of the peak comes from patience alone.
    for (offered, answered) in [
        (1000.0, 1000.0),
        (2000.0, 1783.0),
        (3000.0, 1446.0),
        (6000.0, 688.0),
        (12_000.0, 512.0),
        (20_000.0, 497.0),
    ] {
        let host = small_server(4096, None);
        let run = host.predict_run(&OfferedLoad::requests(offered), &RUN).expect("a possible host");
        near(run.goodput_per_s, answered, 0.20);
        // Had it gone on, nobody would have been served in time: the queue holds 2.3 s.
        let steady = host.predict(&OfferedLoad::requests(offered)).expect("a possible host");
        assert_eq!(steady.goodput_per_s > 1.0, offered < 1780.0, "{offered}");
    }
}

#[test]
fn all_honest_no_gate_backlog_128() {
    // Offered, answered in time, median in ms: goodput within 12 % (at 20 000/s the kernel refuses cheaper
    // than it receives: 1751 measured, 1616 predicted), median within 15 %.
    for (offered, answered, median_ms) in
        [(2000.0, 1787.0, 77.0), (6000.0, 1745.0, 82.0), (20_000.0, 1751.0, 83.0)]
    {
        let run = small_server(128, None)
            .predict_run(&OfferedLoad::requests(offered), &RUN)
            .expect("a possible host");
        near(run.goodput_per_s, answered, 0.12);
        near(run.in_time.expect("answers come").p50_s * 1000.0, median_ms, 0.15);
    }
}

#[test]
fn all_honest_gate_1700_backlog_128() {
    for (offered, answered) in [(2000.0, 1668.0), (6000.0, 1662.0), (20_000.0, 1666.0)] {
        let run = small_server(128, Some(1700.0))
            .predict_run(&OfferedLoad::requests(offered), &RUN)
            .expect("a possible host");
        near(run.goodput_per_s, answered, 0.05);
        assert!(run.in_time.is_some_and(|response| response.p99_s < 0.065), "{run:?}");
    }
}

#[test]
fn all_honest_gate_2200_backlog_4096() {
    // The limit is above capacity, so the queue grows as long as it is sent. Goodput within 8 %, and the
    // slowest within a quarter of what was measured (562 to 640 ms).
    for (offered, answered) in [(3000.0, 1684.0), (6000.0, 1674.0), (12_000.0, 1706.0), (20_000.0, 1710.0)] {
        let run = small_server(4096, Some(2200.0))
            .predict_run(&OfferedLoad::requests(offered), &RUN)
            .expect("a possible host");
        near(run.goodput_per_s, answered, 0.08);
        near(run.in_time.expect("answers come").p99_s, 0.6, 0.25);
    }
}
