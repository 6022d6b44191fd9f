//! How a program ends that has a fault.

/// Lets a panic of any thread end the process in every build, as it does in the one that is shipped
/// (`panic = "abort"`): what tests see of a fault is then what users would.
pub fn end_at_a_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
}
