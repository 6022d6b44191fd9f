//! HTTP as conversations: those of `tests/lab/wire` are about what the models serve, and of `tests/wire`
//! those that are about no site at all.

use staunch_tests::body::Body;
use staunch_tests::conversation::{Action, Conversation};
use staunch_tests::player::play;
use staunch_tests::split::Split;
use staunch_tests::suite::{load, wire_folder};
use staunch_tests::tree::Tree;

use crate::model::{Running, with_each};

/// What a session says by itself: nobody has looked at a path then, so it does not matter what is served. 408
/// is not among them, for the models have no deadlines.
const WITHOUT_A_SITE: &[u16] = &[400, 413, 414, 417, 431, 501, 505];

const SEED: u64 = 20_240_102;

/// Whether a conversation of the whole server can be held with a model: it has no settings, no tree of its
/// own, and every answer is a refusal that comes before any path is looked at.
fn is_without_a_site(conversation: &Conversation) -> bool {
    let plain = conversation.only.is_empty()
        && conversation.options.is_empty()
        && conversation.settings.is_empty()
        && conversation.tree.is_empty();
    let mut answers = 0;
    let fits = conversation.steps.iter().all(|step| match &step.action {
        Action::Expect(expectation) => {
            answers += 1;
            expectation.statuses.iter().all(|status| WITHOUT_A_SITE.contains(status))
        }
        Action::Change(_) | Action::Eventually(_) | Action::Wait(_) => false,
        _ => true,
    });
    plain && fits && answers > 0
}

fn hold(conversations: &[Conversation], splits: &[Split]) {
    let tree = Tree::with(&[]).expect("a tree, which nobody looks at");
    with_each(|model| {
        let running = Running::start(model);
        let mut failures = Vec::new();
        for conversation in conversations {
            for &split in splits {
                let mut body = Body::Server(running.address());
                if let Err(failure) = play(conversation, &tree, &mut body, None, split) {
                    failures.push(format!("{}, {split}: {failure:?}", conversation.name));
                }
            }
        }
        assert!(failures.is_empty(), "{}:\n{}", model.name, failures.join("\n"));
        running.end("after conversations");
    });
}

#[test]
fn conversations_of_the_laboratory() {
    let conversations = load(&wire_folder().with_file_name("lab").join("wire"));
    assert!(conversations.len() >= 10, "only {} conversations", conversations.len());
    hold(&conversations, &[Split::Whole, Split::Bytes, Split::Random(SEED)]);
}

#[test]
fn refusals_of_the_whole_server() {
    let mut conversations = load(&wire_folder());
    conversations.retain(is_without_a_site);
    println!("{} conversations need no site", conversations.len());
    assert!(conversations.len() >= 40, "only {} conversations", conversations.len());
    hold(&conversations, &[Split::Whole, Split::Random(SEED)]);
}
