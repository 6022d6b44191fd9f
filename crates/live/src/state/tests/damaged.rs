//! Opening damaged files: they are set aside, never half read, never emptied.

use super::*;

#[test]
fn what_is_no_store_is_set_aside() {
    let folder = Folder::new("aside");
    for (number, content) in [&b"not a store"[..], &[0; 5000], &[0xff; 70_000]].iter().enumerate() {
        std::fs::write(folder.file(), content).unwrap();
        let (mut state, kept) = StateStore::open(&folder.file(), None, Sync::Off).unwrap();
        let aside = kept.set_aside.unwrap();
        assert_eq!(aside, folder.0.join(format!("live.redb.damaged-{}", number + 1)));
        assert_eq!(std::fs::read(aside).unwrap(), *content, "nothing is lost");
        assert!(kept.topics.is_empty() && kept.epoch.is_none());
        state.release().unwrap();
    }
}

/// The bytes of a store after twenty batches.
fn written(name: &str) -> Vec<u8> {
    let folder = Folder::new(name);
    let (mut state, mut hub) = reopen(&folder, Sync::Always);
    for number in 0..20 {
        publish(&mut hub, "v", &number.to_string().repeat(200));
        publish(&mut hub, "l.a", &number.to_string());
        keep(&mut hub, &mut state);
    }
    state.release().unwrap();
    std::fs::read(folder.file()).unwrap()
}

/// Opens a store with these bytes. True if it was read, and is then as it was after some batch; false if it
/// was set aside, or the bytes are none. `told` names the case in a failure.
fn is_read(folder: &Folder, content: &[u8], told: &str) -> bool {
    std::fs::write(folder.file(), content).unwrap();
    let (state, kept) = StateStore::open(&folder.file(), None, Sync::Off).unwrap();
    drop(state);
    if let Some(path) = &kept.set_aside {
        std::fs::remove_file(path).unwrap();
        return false;
    }
    if kept.topics.is_empty() {
        assert!(content.is_empty(), "{told}: nothing is emptied silently");
        return false;
    }
    let hub = Hub::restore(settings(), kept, Epoch(1), 0);
    let batch = hub.version().number / 2 - 1;
    assert_eq!(hub.version().number % 2, 0, "{told}: a batch is whole");
    assert_eq!(value(&hub, "l.a"), Some((2 * batch + 2, batch.to_string())), "{told}");
    assert_eq!(value(&hub, "v"), Some((2 * batch + 1, batch.to_string().repeat(200))), "{told}");
    true
}

#[test]
fn a_file_cut_at_every_512_bytes() {
    let (content, folder) = (written("cut"), Folder::new("cut-at"));
    let cuts = (512..content.len()).step_by(512);
    let read = cuts.clone().filter(|cut| is_read(&folder, &content[..*cut], &format!("cut at {cut}")));
    assert!(read.count() < cuts.len(), "a file that is cut is noticed");
}

/// A single byte of the file is changed: each of the first 512, then every 64th.
#[test]
fn a_file_with_a_wrong_byte() {
    let (mut content, folder) = (written("wrong"), Folder::new("wrong-at"));
    let (mut read, mut aside) = (0, 0);
    for place in (0..512).chain((512..content.len()).step_by(64)) {
        content[place] ^= 0x55;
        match is_read(&folder, &content, &format!("wrong at {place}")) {
            true => read += 1,
            false => aside += 1,
        }
        content[place] ^= 0x55;
    }
    assert!(aside > 0 && read > 0, "{read} read, {aside} set aside: pages that nothing uses do no harm");
}
