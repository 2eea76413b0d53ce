use crate::workbench::{Workbench, call};
use planwright_engine::port::{CallError, Tools as _};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

#[tokio::test]
async fn read_file_returns_the_text_itself() {
    let bench = Workbench::new();
    let text = "line\r\n\tüñî ${not.a.reference} $${x}\n";
    bench.put("docs/a.txt", text);
    assert_eq!(
        bench
            .call("local.read_file", json!({ "path": "docs/a.txt" }))
            .await,
        Ok(json!(text))
    );
    let absolute = bench.path("docs/a.txt");
    assert_eq!(
        bench
            .call("local.read_file", json!({ "path": absolute }))
            .await,
        Ok(json!(text))
    );
}

#[tokio::test]
async fn read_file_says_what_is_wrong() {
    let bench = Workbench::new();
    bench.put("latin1", b"caf\xe9");
    bench.put("four", "1234");
    bench.put("dir/x", "");
    let cases = [
        (json!({ "path": "absent" }), "not_found"),
        (json!({ "path": "absent/a" }), "not_found"),
        (json!({ "path": "four/a" }), "not_a_directory"),
        (json!({ "path": "dir" }), "not_a_file"),
        (json!({ "path": "." }), "not_a_file"),
        (json!({ "path": "latin1" }), "not_utf8"),
        (json!({ "path": "four", "maxBytes": 3 }), "too_large"),
        (json!({ "path": "a\u{0}b" }), "invalid_args"),
        (json!({ "path": "x".repeat(5000) }), "invalid_args"),
        (json!({ "path": "" }), "invalid_args"),
        (json!({ "path": "four", "more": 1 }), "invalid_args"),
        (json!({}), "invalid_args"),
    ];
    for (args, code) in cases {
        assert_eq!(
            bench.code("local.read_file", args.clone()).await,
            code,
            "{args}"
        );
    }
    assert_eq!(
        bench
            .call("local.read_file", json!({ "path": "four", "maxBytes": 4 }))
            .await,
        Ok(json!("1234"))
    );
}

#[tokio::test]
async fn a_pipe_or_a_device_is_an_error_and_not_a_hang() {
    let bench = Workbench::new();
    let status = std::process::Command::new("mkfifo")
        .arg(bench.path("pipe"))
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(
        bench
            .code("local.read_file", json!({ "path": "pipe" }))
            .await,
        "not_a_file"
    );
    assert_eq!(
        bench
            .code("local.write_file", json!({ "path": "pipe", "content": "" }))
            .await,
        "not_a_file"
    );
    assert_eq!(
        bench
            .code(
                "local.append_file",
                json!({ "path": "pipe", "content": "" })
            )
            .await,
        "not_a_file"
    );
}

#[tokio::test]
async fn write_file_makes_directories_and_replaces_the_whole_file() {
    let bench = Workbench::new();
    for text in ["a long first version", "short"] {
        let written = bench
            .call(
                "local.write_file",
                json!({ "path": "a/b/c.txt", "content": text }),
            )
            .await;
        assert_eq!(
            written,
            Ok(json!({ "path": "a/b/c.txt", "bytes": text.len() }))
        );
        assert_eq!(bench.text("a/b/c.txt"), text);
    }
    let through_nothing = json!({ "path": "a/missing/../c.txt", "content": "" });
    assert_eq!(
        bench.code("local.write_file", through_nothing).await,
        "not_found"
    );
    assert!(!bench.path("a/missing").exists());
    let names: Vec<_> = std::fs::read_dir(bench.path("a/b")).unwrap().collect();
    assert_eq!(names.len(), 1, "a draft was left behind: {names:?}");
}

#[tokio::test]
async fn write_file_writes_text_as_it_is_and_other_values_as_json() {
    let bench = Workbench::new();
    let cases = [
        (json!("no newline ${x}"), "no newline ${x}"),
        (json!(""), ""),
        (
            json!({ "a": [1, true] }),
            "{\n  \"a\": [\n    1,\n    true\n  ]\n}\n",
        ),
        (json!(null), "null\n"),
        (json!(7), "7\n"),
    ];
    for (content, text) in cases {
        bench
            .call(
                "local.write_file",
                json!({ "path": "out", "content": content }),
            )
            .await
            .unwrap();
        assert_eq!(bench.text("out"), text);
    }
}

#[tokio::test]
async fn write_file_keeps_the_permissions_of_the_file_it_replaces() {
    let bench = Workbench::new();
    bench.put("script", "old");
    std::fs::set_permissions(bench.path("script"), PermissionsExt::from_mode(0o750)).unwrap();
    bench
        .call(
            "local.write_file",
            json!({ "path": "script", "content": "new" }),
        )
        .await
        .unwrap();
    let mode = std::fs::metadata(bench.path("script"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750);
}

#[tokio::test]
async fn write_file_does_not_replace_a_directory() {
    let bench = Workbench::new();
    bench.put("dir/x", "");
    assert_eq!(
        bench
            .code("local.write_file", json!({ "path": "dir", "content": "" }))
            .await,
        "not_a_file"
    );
    assert_eq!(
        bench
            .code("local.write_file", json!({ "path": ".", "content": "" }))
            .await,
        "not_a_file"
    );
    assert_eq!(
        bench
            .code(
                "local.write_file",
                json!({ "path": "dir/x/y", "content": "" })
            )
            .await,
        "not_a_directory"
    );
}

#[tokio::test]
async fn a_cancelled_write_writes_nothing() {
    let bench = Workbench::new();
    for tool in ["local.write_file", "local.append_file"] {
        let call = call(tool, json!({ "path": "out", "content": "x" }));
        call.cancelled.cancel();
        assert_eq!(bench.tools.call(call).await, Err(CallError::Cancelled));
        assert!(!bench.path("out").exists());
    }
}

#[tokio::test]
async fn append_file_adds_to_the_end() {
    let bench = Workbench::new();
    for text in ["one\n", "two\n"] {
        let written = bench
            .call(
                "local.append_file",
                json!({ "path": "logs/a.log", "content": text }),
            )
            .await;
        assert_eq!(written, Ok(json!({ "path": "logs/a.log", "bytes": 4 })));
    }
    assert_eq!(bench.text("logs/a.log"), "one\ntwo\n");
    bench
        .call(
            "local.append_file",
            json!({ "path": "logs/a.log", "content": [] }),
        )
        .await
        .unwrap();
    assert_eq!(bench.text("logs/a.log"), "one\ntwo\n[]\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_at_the_same_time_do_not_mingle() {
    let bench = Workbench::new();
    let line = format!("{}\n", "x".repeat(5000));
    let appends = (0..20).map(|_| {
        bench.call(
            "local.append_file",
            json!({ "path": "log", "content": line }),
        )
    });
    for outcome in futures::future::join_all(appends).await {
        outcome.unwrap();
    }
    assert_eq!(bench.text("log"), line.repeat(20));
}

#[tokio::test]
async fn list_dir_is_sorted_and_says_what_each_entry_is() {
    let bench = Workbench::new();
    bench.put("b.txt", "12");
    bench.put("a/z", "1");
    bench.put(".plans/plan.json", "{}");
    bench.link("c", "b.txt");
    let list = bench.call("local.list_dir", json!({})).await.unwrap();
    let expected = json!([
        { "name": "a", "path": "a", "kind": "directory", "bytes": null },
        { "name": "b.txt", "path": "b.txt", "kind": "file", "bytes": 2 },
        { "name": "c", "path": "c", "kind": "link", "bytes": null },
    ]);
    assert_eq!(list, expected);
    let list = bench
        .call("local.list_dir", json!({ "path": "a" }))
        .await
        .unwrap();
    assert_eq!(
        list,
        json!([{ "name": "z", "path": "a/z", "kind": "file", "bytes": 1 }])
    );
}

#[tokio::test]
async fn list_dir_goes_down_only_when_asked_and_never_through_links() {
    let bench = Workbench::new();
    bench.put("a/b/c", "");
    bench.put(".plans/secret", "");
    bench.link("a/up", "..");
    bench.link("out", "/");
    let list = bench
        .call("local.list_dir", json!({ "recursive": true }))
        .await
        .unwrap();
    let paths: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["path"].as_str())
        .collect();
    assert_eq!(paths, ["a", "a/b", "a/b/c", "a/up", "out"]);
}

#[tokio::test]
async fn list_dir_ends_where_the_caller_says() {
    let bench = Workbench::new();
    for name in ["c", "a", "b"] {
        bench.put(name, "");
    }
    let list = bench
        .call("local.list_dir", json!({ "maxEntries": 2 }))
        .await
        .unwrap();
    let names: Vec<&Value> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["name"])
        .collect();
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test]
async fn list_dir_fails_rather_than_leaving_entries_out_unasked() {
    let bench = Workbench::new();
    for i in 0..10_001 {
        bench.put(&format!("{i}"), "");
    }
    assert_eq!(
        bench.code("local.list_dir", json!({})).await,
        "too_many_entries"
    );
    assert_eq!(
        bench.code("local.list_dir", json!({ "path": "7" })).await,
        "not_a_directory"
    );
    assert_eq!(
        bench
            .code("local.list_dir", json!({ "path": "absent" }))
            .await,
        "not_found"
    );
}
