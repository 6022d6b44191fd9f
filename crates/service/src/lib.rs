//! A server as a program: what is opened before the fence, started, reloaded, handed over and ended.
//!
//! This crate owns the running server: its settings, its parts, its life, its logs and its admin address. It
//! must never read a command line or print by itself: the command `staunch` does.
#![forbid(unsafe_code)]

pub mod acme;
pub mod admin;
mod banner;
mod behind_khttpd;
pub mod certificates;
mod clients;
pub mod config;
mod confinement;
mod descriptors;
pub mod fabric;
mod gate;
pub mod life;
mod limits;
pub mod live;
mod part;
mod parts;
mod proxy;
mod reach;
mod reload;
pub mod resolver;
mod seeing;
pub mod serve;
mod settings;
mod sites;
