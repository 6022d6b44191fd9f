//! In its folder. It must never fly.
