//! Builds the program that floods.

#[path = "../../bpf/build.rs"]
mod bpf;

fn main() {
    bpf::build(&[("flood.bpf.o", "flood.bpf.c", &[])]);
}
