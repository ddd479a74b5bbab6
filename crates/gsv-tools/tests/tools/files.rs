//! Read, Write, Edit and Delete as a model uses them: results, limits, errors.

use base64::Engine as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::common::Lab;
use gsv_tools::{CallContext, Cancel, Effect};
use serde_json::json;

#[tokio::test]
async fn p6_2_read_numbers_lines_and_pages() {
    let lab = Lab::new();
    let text = (1..=4500)
        .map(|line| format!("line {line}\n"))
        .collect::<Vec<_>>()
        .concat();
    lab.put("f", &text);
    let first = lab.ok("Read", json!({"path": "f"})).await;
    assert_eq!(
        (&first["lines"], &first["totalLines"], &first["truncated"]),
        (&json!(2000), &json!(4500), &json!(true))
    );
    assert!(
        first["content"]
            .as_str()
            .unwrap()
            .starts_with("     1\tline 1\n     2\tline 2\n")
    );
    assert_eq!(first["note"], "lines 1 to 2000 of 4500; go on with offset 2000");
    let last = lab.ok("Read", json!({"path": "f", "offset": 4499, "limit": 5})).await;
    assert_eq!(
        last,
        json!({"path": "f", "content": "  4500\tline 4500\n", "lines": 1, "totalLines": 4500, "truncated": false})
    );
    let past = lab.ok("Read", json!({"path": "f", "offset": 9000})).await;
    assert_eq!(
        (&past["lines"], &past["note"]),
        (&json!(0), &json!("the file ends before line 9001"))
    );
    lab.put("empty", "");
    assert_eq!(
        lab.ok("Read", json!({"path": "empty"})).await,
        json!({"path": "empty", "content": "", "lines": 0, "totalLines": 0, "truncated": false})
    );
    lab.put("crlf", "a\r\nb");
    assert_eq!(
        lab.ok("Read", json!({"path": "crlf"})).await["content"],
        "     1\ta\n     2\tb\n"
    );
}

#[tokio::test]
async fn p4_3_read_knows_images_by_their_content_not_their_name() {
    let lab = Lab::new();
    let images: [(&str, &[u8]); 4] = [
        ("image/png", b"\x89PNG\r\n\x1a\n\0\0rest"),
        ("image/jpeg", b"\xff\xd8\xff\xe0\0rest"),
        ("image/gif", b"GIF89a\0rest"),
        ("image/webp", b"RIFF\0\0\0\0WEBPrest"),
    ];
    for (mime, bytes) in images {
        lab.put("picture.txt", bytes);
        let read = lab.ok("Read", json!({"path": "picture.txt"})).await;
        assert_eq!(read["content"][0]["type"], "text");
        assert_eq!(
            (&read["content"][1]["type"], &read["content"][1]["mimeType"]),
            (&json!("image"), &json!(mime))
        );
        let data = base64::engine::general_purpose::STANDARD
            .decode(read["content"][1]["data"].as_str().unwrap())
            .unwrap();
        assert_eq!(data, bytes);
    }
    let file = std::fs::File::create(lab.ws("huge.png")).unwrap();
    std::io::Write::write_all(&mut &file, images[0].1).unwrap();
    file.set_len(10 * 1024 * 1024).unwrap();
    assert!(lab.call("Read", json!({"path": "huge.png"})).await.is_ok());
    file.set_len(10 * 1024 * 1024 + 1).unwrap();
    assert_eq!(lab.reason("Read", json!({"path": "huge.png"})).await, "file.too_large");
    lab.put("fake.png", "\0\0not an image");
    assert_eq!(lab.reason("Read", json!({"path": "fake.png"})).await, "file.binary");
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn w26_a_huge_file_is_read_in_bounded_memory() {
    let lab = Lab::new();
    let file = std::fs::File::create(lab.ws("huge.log")).unwrap();
    std::io::Write::write_all(&mut &file, &b"some text\n".repeat(1000)).unwrap();
    file.set_len(4 << 30).unwrap();
    let before = resident_kib();
    let read = lab.ok("Read", json!({"path": "huge.log", "limit": 3})).await;
    assert_eq!(read["lines"], 3);
    assert!(read.get("totalLines").is_none(), "lines of a huge file are not counted");
    // One endless line of NULs after the text: never held.
    let tail = lab
        .call("Read", json!({"path": "huge.log", "offset": 999, "limit": 1}))
        .await
        .unwrap();
    assert_eq!(tail["content"], "  1000\tsome text\n");
    // The kernel sums this counter per CPU, so a later reading can be a little smaller; other tests of this process run meanwhile.
    let more_kib = resident_kib().saturating_sub(before);
    assert!(more_kib < 256 * 1024, "{more_kib} KiB more");
}

#[tokio::test]
async fn p6_2_write_is_atomic_makes_parents_and_keeps_the_mode() {
    let lab = Lab::new();
    assert_eq!(
        lab.ok("Write", json!({"path": "a/b/c.sh", "content": "é"})).await,
        json!({"path": "a/b/c.sh", "bytes": 2})
    );
    std::fs::set_permissions(lab.ws("a/b/c.sh"), std::fs::Permissions::from_mode(0o751)).unwrap();
    let inode = lab.ws("a/b/c.sh").metadata().unwrap().ino();
    lab.ok("Write", json!({"path": "a/b/c.sh", "content": "new"})).await;
    let now = lab.ws("a/b/c.sh").metadata().unwrap();
    assert_eq!(now.mode() & 0o777, 0o751);
    assert_ne!(now.ino(), inode, "replaced by rename, not written over");
    assert_eq!(lab.get("a/b/c.sh"), "new");
    assert_eq!(
        std::fs::read_dir(lab.ws("a/b")).unwrap().count(),
        1,
        "no temporary file is left"
    );
    assert_eq!(
        lab.reason("Write", json!({"path": "a/b", "content": ""})).await,
        "path.not_a_file"
    );
    assert_eq!(
        lab.reason(
            "Write",
            json!({"path": "big", "content": "x".repeat(10 * 1024 * 1024 + 1)})
        )
        .await,
        "file.too_large"
    );
}

#[tokio::test]
async fn p6_2_write_leaves_no_temporary_file_when_it_fails() {
    let lab = Lab::new();
    lab.put("dir/f", "old");
    let path = lab.tools.files().parse("dir/f").unwrap();
    let stale = lab.tools.files().open_file(&path).unwrap().stat;
    lab.put("dir/f", "someone else's");
    let error = lab.tools.files().write_file(&path, b"mine", Some(&stale)).unwrap_err();
    assert_eq!(error.reason(), "tool.failed");
    assert_eq!(lab.get("dir/f"), "someone else's");
    assert_eq!(std::fs::read_dir(lab.ws("dir")).unwrap().count(), 1);
}

#[tokio::test]
async fn p6_2_edit_is_exact_and_unique() {
    let lab = Lab::new();
    lab.put("f", "one two two\r\nthree\r\n");
    assert_eq!(
        lab.ok("Edit", json!({"path": "f", "oldString": "one", "newString": "1"}))
            .await,
        json!({"path": "f", "replacements": 1})
    );
    let error = lab
        .call("Edit", json!({"path": "f", "oldString": "two", "newString": "2"}))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "edit.ambiguous");
    assert!(error.to_string().contains("2 times") && error.to_string().contains("replaceAll"));
    assert_eq!(
        lab.ok(
            "Edit",
            json!({"path": "f", "oldString": "two", "newString": "2", "replaceAll": true})
        )
        .await["replacements"],
        2
    );
    lab.ok(
        "Edit",
        json!({"path": "f", "oldString": "2\nthree", "newString": "2\nand\nthree"}),
    )
    .await;
    assert_eq!(lab.get("f"), "1 2 2\r\nand\r\nthree\r\n");
    let error = lab
        .call("Edit", json!({"path": "f", "oldString": " three ", "newString": "x"}))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "edit.no_match");
    assert!(error.to_string().contains("other white space"));
    assert_eq!(
        lab.reason("Edit", json!({"path": "f", "oldString": "and", "newString": "and"}))
            .await,
        "tool.bad_args"
    );
    assert_eq!(
        lab.reason("Edit", json!({"path": "f", "oldString": "", "newString": "and"}))
            .await,
        "tool.bad_args"
    );
    assert_eq!(
        lab.reason("Edit", json!({"path": "none", "oldString": "a", "newString": "b"}))
            .await,
        "path.not_found"
    );
    lab.put("bin", "a\0b");
    assert_eq!(
        lab.reason("Edit", json!({"path": "bin", "oldString": "a", "newString": "b"}))
            .await,
        "file.binary"
    );
    std::fs::File::create(lab.ws("huge"))
        .unwrap()
        .set_len(10 * 1024 * 1024 + 1)
        .unwrap();
    assert_eq!(
        lab.reason("Edit", json!({"path": "huge", "oldString": "a", "newString": "b"}))
            .await,
        "file.too_large"
    );
    assert_eq!(
        lab.get("f"),
        "1 2 2\r\nand\r\nthree\r\n",
        "refused edits change nothing"
    );
}

#[tokio::test]
async fn p19_a_file_of_10_mib_is_edited_and_neither_the_file_nor_the_result_may_be_larger() {
    const MOST: usize = 10 * 1024 * 1024;
    let lab = Lab::new();
    let edit = |new: &str| json!({"path": "f", "oldString": "a", "newString": new, "replaceAll": true});
    lab.put("f", "a".to_owned() + &"\n".repeat(MOST - 1));
    lab.ok("Edit", edit("b")).await;
    lab.put("f", "a".to_owned() + &"\n".repeat(MOST - 1));
    assert_eq!(lab.reason("Edit", edit("bc")).await, "file.too_large", "the result");
    lab.put("f", "a".to_owned() + &"\n".repeat(MOST + 4000));
    let refused = lab.call("Edit", edit("b")).await.unwrap_err();
    assert_eq!(refused.reason(), "file.too_large");
    assert!(refused.to_string().contains(&(MOST + 4001).to_string()), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_2_concurrent_edits_of_one_file_all_count() {
    let lab = std::sync::Arc::new(Lab::new());
    lab.put("f", (0..24).map(|at| format!("<{at}>\n")).collect::<Vec<_>>().concat());
    let calls: Vec<_> = (0..24)
        .map(|at| {
            let lab = std::sync::Arc::clone(&lab);
            tokio::spawn(async move {
                lab.ok(
                    "Edit",
                    json!({"path": "f", "oldString": format!("<{at}>"), "newString": format!("done {at}")}),
                )
                .await
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(
        lab.get("f"),
        (0..24).map(|at| format!("done {at}\n")).collect::<Vec<_>>().concat()
    );
}

#[tokio::test]
async fn delete_removes_files_and_never_directories() {
    let lab = Lab::new();
    lab.put("dir/f", "x");
    assert_eq!(
        lab.ok("Delete", json!({"path": "dir/f"})).await,
        json!({"path": "dir/f", "deleted": true})
    );
    assert_eq!(lab.reason("Delete", json!({"path": "dir/f"})).await, "path.not_found");
    assert_eq!(lab.reason("Delete", json!({"path": "dir"})).await, "path.not_a_file");
    assert!(lab.ws("dir").is_dir());
}

#[tokio::test]
async fn arguments_are_checked_and_the_field_is_named() {
    let lab = Lab::new();
    lab.put("f", "x");
    for (tool, args, field) in [
        ("Read", json!({}), "path"),
        ("Read", json!({"path": 3}), "path"),
        ("Read", json!({"path": "f", "offset": -1}), "offset"),
        ("Read", json!({"path": "f", "limit": "10"}), "limit"),
        ("Read", json!({"path": "f", "limit": 0}), "limit"),
        ("Read", json!([]), "args"),
        ("Write", json!({"path": "f"}), "content"),
        (
            "Edit",
            json!({"path": "f", "oldString": "x", "newString": "y", "replaceAll": "yes"}),
            "replaceAll",
        ),
        ("Bash", json!({"command": ""}), "command"),
        ("Bash", json!({"command": "a\0b"}), "command"),
        ("Bash", json!({"command": "x".repeat(100_001)}), "command"),
        ("Bash", json!({"command": "true", "timeout": 0}), "timeout"),
        ("Bash", json!({"command": "true", "timeout": 86_400_001}), "timeout"),
        ("Bash", json!({"command": "true", "yieldMs": true}), "yieldMs"),
        ("Bash", json!({"command": "true", "yieldMs": 86_400_001}), "yieldMs"),
        ("Process", json!({"action": "dance"}), "action"),
        ("Process", json!({"action": "poll"}), "sessionId"),
        ("Glob", json!({"pattern": "a{b"}), "pattern"),
        ("Glob", json!({"pattern": "*", "limit": 1001}), "limit"),
        ("Grep", json!({"pattern": "(a"}), "pattern"),
        ("Grep", json!({"pattern": "a(?=b)"}), "pattern"),
        ("Grep", json!({"pattern": "a\nb"}), "pattern"),
        ("Grep", json!({"pattern": "x".repeat(1025)}), "pattern"),
        ("Grep", json!({"pattern": "((a{100}){100}){100}"}), "pattern"),
        ("Grep", json!({"pattern": "a", "context": 6}), "before"),
        ("Grep", json!({"pattern": "a", "limit": 101}), "limit"),
    ] {
        let error = lab.call(tool, args.clone()).await.expect_err(&args.to_string());
        assert_eq!(error.reason(), "tool.bad_args", "{tool} {args}");
        assert!(
            error.to_string().contains(&format!("`{field}`")),
            "{tool} {args}: {error}"
        );
    }
    assert!(
        lab.call("Read", json!({"path": "f", "unknown": 1, "offset": null}))
            .await
            .is_ok(),
        "unknown fields are ignored"
    );
    assert_eq!(lab.reason("Dance", json!({})).await, "tool.unknown");
}

#[tokio::test]
async fn p6_every_tool_has_an_effect_and_capabilities() {
    let lab = Lab::new();
    let read_only = |tool, args| lab.tools.effect(tool, &args).unwrap() == Effect::ReadOnly;
    for tool in ["Read", "Glob", "Grep"] {
        assert!(read_only(tool, json!({})));
    }
    for tool in ["Bash", "Write", "Edit", "Delete", "Process"] {
        assert!(!read_only(tool, json!({})));
    }
    for action in ["list", "poll", "log"] {
        assert!(read_only("Process", json!({"action": action})));
    }
    for action in ["write", "submit", "kill", "LIST"] {
        assert!(!read_only("Process", json!({"action": action})));
    }
    assert_eq!(
        lab.tools.capabilities(),
        [
            "filesystem.edit",
            "filesystem.list",
            "filesystem.read",
            "filesystem.write",
            "shell.exec",
            "text.search"
        ]
    );
    let names: Vec<String> = lab.tools.definitions().into_iter().map(|tool| tool.name).collect();
    assert_eq!(
        names,
        ["Bash", "Process", "Read", "Write", "Edit", "Delete", "Glob", "Grep"]
    );
    for tool in lab.tools.definitions() {
        assert_eq!(tool.input_schema["type"], "object");
        for required in tool.input_schema["required"].as_array().unwrap() {
            assert!(
                tool.input_schema["properties"]
                    .get(required.as_str().unwrap())
                    .is_some()
            );
        }
        let read_only = ["Read", "Glob", "Grep"].contains(&tool.name.as_str());
        assert_eq!(tool.idempotent, read_only);
    }
}

#[tokio::test]
async fn p14_a_cancelled_call_changes_nothing() {
    let lab = Lab::new();
    lab.put("f", "old");
    for (tool, args) in [
        ("Write", json!({"path": "f", "content": "new"})),
        ("Edit", json!({"path": "f", "oldString": "old", "newString": "new"})),
        ("Delete", json!({"path": "f"})),
        ("Bash", json!({"command": "echo new >f"})),
        ("Read", json!({"path": "f"})),
        ("Grep", json!({"pattern": "old"})),
        ("Glob", json!({"pattern": "*"})),
    ] {
        let cancel = Cancel::default();
        cancel.cancel();
        let context = CallContext {
            cancel,
            ..CallContext::new(format!("c/{tool}"))
        };
        assert_eq!(
            lab.call_with(tool, args, context).await.unwrap_err().reason(),
            "tool.cancelled",
            "{tool}"
        );
        assert_eq!(lab.get("f"), "old");
    }
}

#[tokio::test]
async fn p19_an_image_may_have_10_mib_and_a_larger_one_is_refused_with_its_size() {
    let lab = Lab::new();
    let image = |size: usize| {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.resize(size, 0);
        bytes
    };
    lab.put("fits.png", image(10 * 1024 * 1024));
    lab.put("large.png", image(11 * 1024 * 1024));
    assert_eq!(
        lab.ok("Read", json!({"path": "fits.png"})).await["content"][1]["type"],
        "image"
    );
    let refused = lab.call("Read", json!({"path": "large.png"})).await.unwrap_err();
    assert_eq!(refused.reason(), "file.too_large");
    assert!(refused.to_string().contains("11534336"), "{refused}");
}
