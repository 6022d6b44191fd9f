//! The proxy from outside: what it passes on, what it does when applications fail, and who has to wait.
//!
//! Applications are the truth server, which counts what it was asked, scripted ones that send any bytes, and
//! real ones. It must never assert a time: waits have a limit, and what is asserted are answers and counts.
#![forbid(unsafe_code)]

mod checks;
mod classes;
mod crowd;
mod failing;
mod fastcgi;
mod fastcgi_hostile;
mod hostile;
mod log;
mod names;
mod parting;
mod passing;
mod php;
mod rules;
mod scripted;
mod scripts;
mod secured;
mod shares;
mod sticky;
mod strangers;
mod toxic;
mod world;
