//! Figures for people: plots, pages, tables, words and statistics, shared by everything that measures.
//!
//! It owns one writer of SVG, one of HTML pages, one escape of markup, one form of numbers in words and one
//! set of statistics. It must never measure, read a file or a clock, or know what its figures are of: a meter
//! may use it without sharing anything with what it measures.
#![forbid(unsafe_code)]

pub mod bars;
mod markup;
pub mod page;
pub mod plot;
pub mod spark;
pub mod statistics;
pub mod style;
pub mod table;
pub mod words;

pub use markup::escape;
