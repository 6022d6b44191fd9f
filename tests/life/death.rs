//! Signal 9 at any moment: the next start finds nothing in its way.

use std::process::Command;

use rustix::process::Signal;
use staunch_tests::process::binary;

use crate::conversation::get;
use crate::house::{self, House, SMALL, WAYS};
use crate::load::Load;

#[test]
fn it_starts_again_after_being_killed_under_load() {
    for io in WAYS {
        let folder = house::new_folder();
        let mut first = house::command(&folder, &binary());
        let mut house = House::of(folder.clone(), first.args(["--io", io, "--workers", "2"]));
        let address = house.address().to_string();
        let load = Load::closed(&house.url("/small.txt"), 16, "3s");
        for _ in 0..10 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            house.signal(Signal::KILL);
            assert_eq!(house.end(), None, "{io}: killed");
            assert!(house.path("pid").exists(), "nobody was there to remove it");
            let mut again = Command::new(binary());
            again.arg("serve").arg(folder.join("site")).args(["--listen", &address, "--io", io]);
            again.args(["--workers", "2", "--pid-file"]).arg(folder.join("pid"));
            house.start_again(&mut again);
            assert_eq!(get(house.address(), "/small.txt"), SMALL, "{io}");
        }
        assert!(load.finish().0 > 100, "{io}");
        assert_eq!(house.said(), "", "{io}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named_at_start() {
    let folder = house::new_folder();
    let mut command = Command::new(binary());
    command.arg("serve").arg(folder.join("site")).args(["--listen", "127.0.0.1:0"]);
    command.args(["--pid-file", "/nowhere/pid"]);
    let finished = staunch_tests::process::finish(&mut command);
    std::fs::remove_dir_all(&folder).expect("a folder");
    assert_eq!(finished.status.code(), Some(1));
    assert_eq!(
        finished.stderr.trim(),
        "staunch: pid_file: cannot write /nowhere/pid: No such file or directory (os error 2)"
    );
    assert_eq!(finished.stdout, "", "it does not say before that it listens");
}
