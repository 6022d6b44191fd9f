//! Merge patches of JSON documents (RFC 7396), and the difference of two documents as one.
//!
//! It must never guess: a difference that a merge patch cannot say (a member set to null, anything but
//! objects) is none.

use serde_json::{Map, Value};

/// Applies a patch to a document (section 2).
pub fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            target.remove(&name);
        } else {
            merge(target.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// The patch that makes `to` of `from`; `None` if there is none, or if both are equal and there is nothing to
/// say.
pub fn difference(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return None };
    let patch = object_difference(from, to)?;
    (!patch.is_empty()).then_some(Value::Object(patch))
}

fn object_difference(from: &Map<String, Value>, to: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut patch = Map::new();
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in to {
        match (from.get(name), value) {
            (Some(before), value) if before == value => {}
            (_, Value::Null) => return None,
            (Some(Value::Object(before)), Value::Object(value)) => {
                patch.insert(name.clone(), Value::Object(object_difference(before, value)?));
            }
            // A member that was no object is replaced by the patch, nulls inside would be left out.
            (_, Value::Object(value)) if has_null(value) => return None,
            _ => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    Some(patch)
}

/// Whether an object, or one that stands in it as a member, has a member that is null. What stands in arrays
/// is not looked at by a patch.
fn has_null(object: &Map<String, Value>) -> bool {
    object.values().any(|value| match value {
        Value::Null => true,
        Value::Object(inner) => has_null(inner),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// RFC 7396, appendix A.
    #[test]
    fn the_examples_of_the_standard() {
        let table = [
            (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
            (json!({"a":"b"}), json!({"a":null}), json!({})),
            (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
            (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
            (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
            (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a":"b"}), json!(["c"]), json!(["c"])),
            (json!({"a":"foo"}), json!(null), json!(null)),
            (json!({"a":"foo"}), json!("bar"), json!("bar")),
            (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
            (json!([1, 2]), json!({"a":"b","c":null}), json!({"a":"b"})),
            (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
        ];
        for (mut target, patch, expected) in table {
            let told = format!("{target} {patch}");
            merge(&mut target, patch);
            assert_eq!(target, expected, "{told}");
        }
    }

    #[test]
    fn what_no_patch_can_say() {
        for (from, to) in [
            (json!({"a":1}), json!({"a":null})),
            (json!({"a":1}), json!({"a":{"b":null}})),
            (json!({}), json!({"a":{"b":{"c":null}}})),
            (json!([1]), json!([2])),
            (json!({"a":1}), json!({"a":1})),
        ] {
            assert_eq!(difference(&from, &to), None, "{from} {to}");
        }
        assert_eq!(difference(&json!({"a":null}), &json!({"a":null,"b":1})), Some(json!({"b":1})));
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(|n| json!(n)), Just(json!([null]))];
        let inner = leaf.prop_recursive(3, 24, 4, |inner| {
            prop::collection::btree_map("[abc]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect()))
        });
        prop::collection::btree_map("[abc]", inner, 0..4)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn a_difference_that_exists_is_right(from in document(), to in document()) {
            if let Some(patch) = difference(&from, &to) {
                let mut target = from;
                merge(&mut target, patch);
                prop_assert_eq!(target, to);
            }
        }
    }
}
