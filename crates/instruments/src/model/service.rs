//! How a kind of service is written, on the command line and in files.

use staunch_queueing::Service;

/// The word of a distribution of service times, as it is written on the command line.
pub(crate) fn service_word(service: Service) -> &'static str {
    match service {
        Service::Deterministic => "deterministic",
        Service::Exponential => "exponential",
    }
}

/// The other way round.
///
/// # Errors
/// A sentence with the right words.
pub(crate) fn service(text: &str) -> Result<Service, String> {
    match text {
        "deterministic" => Ok(Service::Deterministic),
        "exponential" => Ok(Service::Exponential),
        _ => Err("write deterministic or exponential".into()),
    }
}
