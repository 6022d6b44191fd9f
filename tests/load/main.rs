//! `staunch load` from outside, against a server whose behaviour is known: every count is checked against the
//! truth.
#![forbid(unsafe_code)]

mod accounts;
mod generator;
mod lanes;
mod life;
mod live;
mod live_server;
mod refusals;
mod results;
mod schedules;
mod secured;
mod terminal;
mod ways;
