//! FastCGI: requests in records, answers from records, and PHP's own process manager behind both.

#[path = "../fastcgi_reading/mod.rs"]
mod fastcgi_reading;
#[path = "../relay_writing/mod.rs"]
#[allow(dead_code)]
mod relay_writing;

mod answers;
mod php;
mod records;
mod requests;
