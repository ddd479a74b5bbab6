//! Every committed example says the same to Rust as to TypeScript; `protocol/test/golden.test.ts` is the twin.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may stop")]

mod golden_types;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use golden_types::{TYPE_NAMES, read};
use serde_json::Value;

struct Example {
    type_name: String,
    name: String,
    text: String,
}

fn examples() -> Vec<Example> {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../protocol/golden");
    let mut found = Vec::new();
    for folder in fs::read_dir(&golden).expect("protocol/golden is there") {
        let folder = folder.expect("a readable folder");
        if !folder.file_type().expect("a file type").is_dir() {
            continue;
        }
        for file in fs::read_dir(folder.path()).expect("a readable folder") {
            let file = file.expect("a readable file");
            found.push(Example {
                type_name: folder.file_name().into_string().expect("a plain name"),
                name: file.file_name().into_string().expect("a plain name"),
                text: fs::read_to_string(file.path()).expect("UTF-8"),
            });
        }
    }
    found
}

/// Equal as JSON, where 1 and 1.0 are the same number.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

#[test]
fn valid_examples_come_back_as_they_were() {
    let mut seen = BTreeSet::new();
    for example in examples().iter().filter(|example| example.name.starts_with("valid-")) {
        let at = format!("{}/{}", example.type_name, example.name);
        let written = read(&example.type_name, &example.text)
            .unwrap_or_else(|| panic!("{at}: no such type"))
            .unwrap_or_else(|error| panic!("{at}: {error}"));
        let original: Value = serde_json::from_str(&example.text).expect("JSON");
        assert!(same(&written, &original), "{at}: {written} is not {original}");
        seen.insert(example.type_name.clone());
    }
    let missing: Vec<_> = TYPE_NAMES.iter().filter(|name| !seen.contains(**name)).collect();
    assert!(
        missing.is_empty(),
        "types without an example: {missing:?}; run: node scripts/codegen/seed-golden.ts"
    );
}

#[test]
fn invalid_examples_are_refused_where_the_shape_is_wrong() {
    let mut refused = 0;
    for example in examples().iter().filter(|example| example.name.starts_with("invalid-")) {
        // Bounds are checked by the gateway's validators, not by serde.
        if example.name.starts_with("invalid-bound-") {
            continue;
        }
        let at = format!("{}/{}", example.type_name, example.name);
        let answer = read(&example.type_name, &example.text).unwrap_or_else(|| panic!("{at}: no such type"));
        assert!(answer.is_err(), "{at} was accepted");
        refused += 1;
    }
    assert!(refused > TYPE_NAMES.len(), "only {refused} examples of wrong shapes");
}

#[test]
fn fields_that_a_newer_writer_added_are_ignored() {
    for example in examples().iter().filter(|example| example.name.starts_with("valid-")) {
        let mut value: Value = serde_json::from_str(&example.text).expect("JSON");
        let Some(object) = value.as_object_mut() else { continue };
        object.insert("fieldOfTheFuture".to_owned(), serde_json::json!({ "deep": [1, null] }));
        let answer = read(&example.type_name, &value.to_string()).expect("a type");
        assert!(answer.is_ok(), "{}/{}: {answer:?}", example.type_name, example.name);
    }
}
