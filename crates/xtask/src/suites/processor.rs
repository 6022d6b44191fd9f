//! How much processor time a suite took, its own processes included.
//!
//! It owns the look at a child that has ended and is not yet collected: then the kernel knows the sum. It
//! must never collect the child itself.

use std::fs;
use std::process::{Child, ExitStatus};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Parts of a second in which `/proc` tells times: fixed by the interface to programs.
const TICKS_PER_S: f64 = 100.0;
/// Where the times of a process and of its children begin, counted from the word behind its name.
const FIRST_TIME: usize = 11;
const TIMES: usize = 4;

/// Waits for the end of a child; gives its status, and the seconds of processors that it and its children
/// took.
///
/// # Errors
/// It cannot be waited for.
pub(super) fn wait(child: &mut Child) -> std::io::Result<(ExitStatus, f64)> {
    let seconds = match i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        Some(id) => {
            waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
            fs::read_to_string(format!("/proc/{id}/stat")).ok().and_then(|stat| seconds(&stat))
        }
        None => None,
    };
    Ok((child.wait()?, seconds.unwrap_or(0.0)))
}

/// The sum of the four times in a line of `/proc/PID/stat`. A name may have spaces and brackets.
fn seconds(stat: &str) -> Option<f64> {
    let (_, words) = stat.rsplit_once(')')?;
    let times = words.split_ascii_whitespace().skip(FIRST_TIME).take(TIMES);
    let ticks: Vec<u32> = times.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    (ticks.len() == TIMES).then(|| ticks.into_iter().map(f64::from).sum::<f64>() / TICKS_PER_S)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn times_are_added_up() {
        let stat = "7 (a) b (c) Z 1 7 7 0 -1 4194316 90 4000 0 0 12 3 200 85 20 0 1 0 0 0 0";
        assert_eq!(seconds(stat), Some(3.0));
        assert_eq!(seconds("7 (a) Z 1"), None);
    }

    #[test]
    fn the_work_of_a_childs_child_counts() {
        let loops = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done'; exit 3";
        let mut child = Command::new("sh").args(["-c", loops]).spawn().expect("a shell");
        let (status, seconds) = wait(&mut child).expect("its end");
        assert!(status.code() == Some(3) && seconds > 0.0, "{status} {seconds}");
    }
}
