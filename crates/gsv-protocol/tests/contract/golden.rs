//! Rust reads every committed example as TypeScript does; `protocol/test/golden.test.ts` is the twin.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::golden_types::{TYPE_NAMES, read};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One line of `protocol/golden/<Type>.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    name: String,
    valid: bool,
    /// What is wrong with an invalid example.
    mistake: Option<String>,
    value: Box<RawValue>,
}

/// An example of `type_name`; `at` is its file, line and name, for messages.
struct Located {
    type_name: String,
    at: String,
    example: Example,
}

impl Located {
    /// Reads the value as its type and writes it again.
    fn read(&self) -> Result<Value, serde_json::Error> {
        read(&self.type_name, self.example.value.get()).unwrap_or_else(|| panic!("{}: no such type", self.at))
    }
    fn json(&self) -> Value {
        serde_json::from_str(self.example.value.get()).expect("a raw value is JSON")
    }
}

/// The names in `protocol/golden`.
fn golden_names() -> BTreeSet<String> {
    fs::read_dir(golden())
        .expect("the folder of the examples")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect()
}

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../protocol/golden")
}

fn examples() -> Vec<Located> {
    let mut found = Vec::new();
    for type_name in TYPE_NAMES {
        let file = format!("{type_name}.jsonl");
        let text = fs::read_to_string(golden().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        for (index, line) in text.lines().enumerate() {
            let at = format!("{file}:{}", index + 1);
            let example: Example = serde_json::from_str(line).unwrap_or_else(|error| panic!("{at}: {error}"));
            assert_eq!(
                example.valid,
                example.mistake.is_none(),
                "{at}: only an invalid example has a mistake"
            );
            found.push(Located {
                type_name: (*type_name).to_owned(),
                at: format!("{at} ({})", example.name),
                example,
            });
        }
    }
    found
}

fn valid_examples() -> Vec<Located> {
    examples().into_iter().filter(|located| located.example.valid).collect()
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
fn every_type_has_a_golden_file_and_the_folder_has_no_other_file() {
    let expected: BTreeSet<String> = TYPE_NAMES.iter().map(|name| format!("{name}.jsonl")).collect();
    let names = golden_names();
    let missing: Vec<_> = expected.difference(&names).collect();
    assert!(
        missing.is_empty(),
        "types without a file: {missing:?}; run: node scripts/codegen/seed-golden.ts"
    );
    let unknown: Vec<_> = names.difference(&expected).collect();
    assert!(unknown.is_empty(), "files that belong to no type: {unknown:?}");
}

#[test]
fn valid_examples_come_back_as_they_were() {
    let mut seen = BTreeSet::new();
    for located in valid_examples() {
        let written = located.read().unwrap_or_else(|error| panic!("{}: {error}", located.at));
        let original = located.json();
        assert!(same(&written, &original), "{}: {written} is not {original}", located.at);
        seen.insert(located.type_name);
    }
    let missing: Vec<_> = TYPE_NAMES.iter().filter(|name| !seen.contains(**name)).collect();
    assert!(
        missing.is_empty(),
        "types without a valid example: {missing:?}; run: node scripts/codegen/seed-golden.ts"
    );
}

#[test]
fn invalid_examples_are_refused_where_the_shape_is_wrong() {
    let mut refused = 0;
    for located in examples() {
        // Bounds are checked by the gateway's validators, not by serde.
        if located
            .example
            .mistake
            .as_deref()
            .is_none_or(|mistake| mistake == "bound")
        {
            continue;
        }
        assert!(located.read().is_err(), "{} was accepted", located.at);
        refused += 1;
    }
    assert!(refused > TYPE_NAMES.len(), "only {refused} examples of wrong shapes");
}

#[test]
fn fields_that_a_newer_writer_added_are_ignored() {
    for located in valid_examples() {
        let mut value = located.json();
        let Some(object) = value.as_object_mut() else { continue };
        object.insert("fieldOfTheFuture".to_owned(), serde_json::json!({ "deep": [1, null] }));
        let answer = read(&located.type_name, &value.to_string()).expect("a type");
        assert!(answer.is_ok(), "{}: {answer:?}", located.at);
    }
}
