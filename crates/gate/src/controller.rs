//! How many connections may come in: from what one tick sees to the orders for the next.
//!
//! It owns the law of control and its state. It must never read a clock, a file or a map.
