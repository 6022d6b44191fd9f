//! What one reading of each sensor of the gate costs on this host, as the table of docs/gate.md.

use staunch_gate::sensors::Sensors;

fn main() {
    let (mut sensors, notes) = Sensors::open(&[80, 443]);
    for note in notes {
        eprintln!("{note}");
    }
    println!("| sensor | us a reading | readings a second, open | part of a processor |");
    println!("|---|---|---|---|");
    for cost in sensors.costs() {
        match cost.ns {
            Some(ns) => {
                let share = ns * cost.per_s / 1e7;
                println!("| {} | {:.1} | {:.0} | {share:.3} % |", cost.sensor, ns / 1e3, cost.per_s);
            }
            None => println!("| {} | not to be had | | |", cost.sensor),
        }
    }
}
