//! Prints docs/host-settings.md. It must never print anything else.

fn main() {
    print!("{}", staunch_doctor::page());
}
