//! Builds the programs of the gate, those that prove it among them.

#[path = "../../bpf/build.rs"]
mod bpf;

fn main() {
    bpf::build(&[
        ("gate.bpf.o", "gate.bpf.c", &["-DTRACKER"]),
        ("gate-plain.bpf.o", "gate.bpf.c", &[]),
        ("buffers.bpf.o", "buffers.bpf.c", &[]),
        ("reception.bpf.o", "reception.bpf.c", &[]),
        ("storm.bpf.o", "storm.bpf.c", &[]),
    ]);
}
