//! HUP: the configuration is read again, and no connection notices.

use rustix::process::Signal;

use crate::conversation::Talk;
use crate::house::{House, SMALL, WAYS};
use crate::load::Load;

#[test]
fn no_connection_is_closed() {
    for io in WAYS {
        let house = House::new(&["--io", io, "--workers", "2"]);
        let load = Load::closed(&house.url("/small.txt"), 32, "2s");
        let mut kept = Talk::with(house.address());
        for _ in 0..20 {
            house.signal(Signal::HUP);
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert_eq!(kept.get("/small.txt"), (SMALL.to_vec(), false), "{io}");
        }
        house.until_said("the configuration was read again", 1);
        load.expect_no_failure();
    }
}
