//! What honest clients do a lot of: it costs them nothing.

use super::conversations::driver;
use super::driver::{Manner, frame, get};

const READS: Manner = Manner { waits: 0, goes_on: true, reads: true };

/// Forty pictures of which most are on their way when the page is left, again and again.
#[test]
fn galleries_that_are_left() {
    let mut driver = driver(READS);
    driver.deliver(&frame(4, 0, 0, &[0, 4, 0, 0x60, 0, 0]));
    let mut stream = 1;
    for _ in 0..1_000 {
        for place in 0..40 {
            // Most answers have begun, some are complete.
            assert!(!driver.deliver(&get(stream + 2 * place, "/150000")));
        }
        for place in 0..40 {
            assert!(!driver.deliver(&frame(3, 0, stream + 2 * place, &8u32.to_be_bytes())));
        }
        driver.deliver(&frame(8, 0, 0, &400_000u32.to_be_bytes()));
        stream += 80;
        driver.now_ms += 1_000;
    }
    assert!(driver.session.wasted_us() < 64_000 / 2, "{}", driver.session.wasted_us());
    driver.end();
}

/// Some look every 100 ms whether the way is still open.
#[test]
fn a_ping_each_100_ms_for_a_day() {
    let mut driver = driver(READS);
    for _ in 0..86_400 * 10 {
        assert!(!driver.deliver(&frame(6, 0, 0, b"12345678")));
        driver.now_ms += 100;
    }
    assert!(driver.session.wasted_us() <= 640);
    driver.end();
}

/// Clients with little memory have windows of some bytes.
#[test]
fn small_windows() {
    for window in [1_u32, 7, 16, 63] {
        let mut driver = driver(READS);
        driver.deliver(&frame(4, 0, 0, &[0, 4, 0, 0, 0, window as u8]));
        driver.deliver(&get(1, "/30000"));
        for _ in 0..30_000 / window {
            assert!(!driver.deliver(&frame(8, 0, 1, &window.to_be_bytes())), "{window}");
        }
        assert_eq!(driver.over, 1, "{window}");
        driver.end();
    }
}
