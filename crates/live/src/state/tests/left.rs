//! Files that another process had for a while: what is left of them, and the numbering, which goes on.

use super::*;

/// A store with a value that has been left to another process, and its hub.
fn left(folder: &Folder) -> (StateStore, Hub) {
    let (mut state, mut hub) = reopen(folder, Sync::Always);
    publish(&mut hub, "v", "kept");
    keep(&mut hub, &mut state);
    state.leave();
    state.release().unwrap();
    (state, hub)
}

/// Writes a number into the file, as another process would.
fn write_fact(folder: &Folder, name: &str, number: u64) {
    let database = Database::create(folder.file()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(FACTS).unwrap().insert(name, number).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn a_file_with_which_nobody_could_go_on_is_set_aside() {
    type Change = fn(&Folder);
    let changes: [(&str, Change); 3] = [
        ("a newer format", |folder| write_fact(folder, "format", FORMAT + 1)),
        ("another epoch", |folder| write_fact(folder, "epoch", 5)),
        ("damage", |folder| std::fs::write(folder.file(), [0xff; 5000]).unwrap()),
    ];
    for (what, change) in changes {
        let folder = Folder::new("left");
        let (mut state, mut hub) = left(&folder);
        change(&folder);
        let length = std::fs::metadata(folder.file()).unwrap().len();
        let aside = state.reopen().unwrap().expect(what);
        assert_eq!(std::fs::metadata(aside).unwrap().len(), length, "{what}: nothing is lost");
        state.agree(&hub.introduction()).unwrap();
        publish(&mut hub, "w", "next");
        keep(&mut hub, &mut state);
        drop(state);
        let (_state, restored) = reopen(&folder, Sync::Always);
        assert_eq!(restored.version(), hub.version(), "{what}");
        let values = (Some((1, "kept".to_owned())), Some((2, "next".to_owned())));
        assert_eq!((value(&restored, "v"), value(&restored, "w")), values, "{what}");
    }
}

#[test]
fn a_file_as_it_was_left_is_gone_on_with_and_one_with_later_numbers_is_not() {
    let folder = Folder::new("left-as-it-was");
    let (mut state, hub) = left(&folder);
    assert_eq!(state.reopen().unwrap(), None);
    state.agree(&hub.introduction()).unwrap();
    state.leave();
    state.release().unwrap();
    write_fact(&folder, "number", 9);
    assert_eq!(state.reopen().unwrap(), None);
    let fault = state.agree(&hub.introduction()).unwrap_err().to_string();
    assert!(fault.contains("another server has written to it"), "{fault}");
}

/// The name of the owner goes with the former name of the file.
#[test]
fn a_file_that_is_taken_back_is_nobody_elses() {
    let folder = Folder::new("left-owner");
    let (mut state, hub) = left(&folder);
    write_fact(&folder, "owner", 7);
    state.agree(&hub.introduction()).unwrap();
    state.release().unwrap();
    let own = folder.0.join("live-a.redb");
    let former = Former { path: folder.file(), is_renamed: true, owner: 8 };
    let (_state, kept) = StateStore::open(&own, Some(&former), Sync::Always).unwrap();
    assert_eq!(kept.topics.len(), 1);
}
