//! The gate's figures in the format of Prometheus.
//!
//! It owns their names and help. It must never keep a figure.
