use crate::workbench::{Workbench, call};
use planwright_engine::port::{CallError, Tools as _};
use serde_json::{Value, json};

async fn search(bench: &Workbench, args: Value) -> (Vec<String>, bool) {
    let found = bench.call("local.search_code", args).await.unwrap();
    let matches = found["matches"].as_array().unwrap();
    let lines = matches.iter().map(|found| {
        format!(
            "{}:{}:{}",
            found["path"].as_str().unwrap(),
            found["line"],
            found["text"].as_str().unwrap()
        )
    });
    (lines.collect(), found["truncated"].as_bool().unwrap())
}

#[tokio::test]
async fn a_query_is_literal_unless_it_says_otherwise() {
    let bench = Workbench::new();
    bench.put("src/b.rs", "fn a() {}\r\nlet x = a(1);\n");
    bench.put("src/a.rs", "// a(1) and ${a}\n");
    let (found, truncated) = search(&bench, json!({ "query": "a(1)" })).await;
    assert_eq!(
        found,
        ["src/a.rs:1:// a(1) and ${a}", "src/b.rs:2:let x = a(1);"]
    );
    assert!(!truncated);
    let (found, _) = search(&bench, json!({ "query": r"^fn \w+", "regex": true })).await;
    assert_eq!(found, ["src/b.rs:1:fn a() {}"]);
}

#[tokio::test]
async fn ignored_binary_and_closed_files_are_left_out() {
    let bench = Workbench::new();
    bench.put(".gitignore", "target/\n*.log\n");
    for path in [
        "seen",
        ".github/seen",
        "src/deep/seen",
        "target/x",
        "src/a.log",
        ".git/config",
        ".plans/a/plan.md",
    ] {
        bench.put(path, "needle\n");
    }
    bench.put("binary", b"needle\0needle");
    bench.put("src/.gitignore", "deep/hidden\n");
    bench.put("src/deep/hidden", "needle");
    let (found, _) = search(&bench, json!({ "query": "needle" })).await;
    assert_eq!(
        found,
        [
            ".github/seen:1:needle",
            "seen:1:needle",
            "src/deep/seen:1:needle"
        ]
    );
    let (found, _) = search(&bench, json!({ "query": "needle", "path": "src/deep" })).await;
    assert_eq!(
        found,
        ["src/deep/seen:1:needle"],
        "the rules above the directory count"
    );
    let (found, _) = search(&bench, json!({ "query": "needle", "path": "src/a.log" })).await;
    assert_eq!(
        found,
        ["src/a.log:1:needle"],
        "a file that is named is searched"
    );
}

#[tokio::test]
async fn matches_and_lines_have_limits() {
    let bench = Workbench::new();
    bench.put("a", "x\n".repeat(300));
    let (found, truncated) = search(&bench, json!({ "query": "x" })).await;
    assert_eq!((found.len(), truncated), (200, true));
    let (found, truncated) = search(&bench, json!({ "query": "x", "maxMatches": 300 })).await;
    assert_eq!((found.len(), truncated), (300, false));
    bench.put("a", "é".repeat(10_000));
    let (found, _) = search(&bench, json!({ "query": "é" })).await;
    assert_eq!(found[0].chars().count(), "a:1:".len() + 500);
}

#[tokio::test]
async fn a_file_too_large_to_search_is_reported() {
    let bench = Workbench::new();
    std::fs::File::create(bench.path("huge"))
        .unwrap()
        .set_len((16 << 20) + 1)
        .unwrap();
    bench.put("small", "x");
    let (found, truncated) = search(&bench, json!({ "query": "x" })).await;
    assert_eq!((found.len(), truncated), (1, true));
    assert_eq!(
        bench
            .code("local.search_code", json!({ "query": "x", "path": "huge" }))
            .await,
        "too_large"
    );
}

#[tokio::test]
async fn hostile_patterns_are_refused_or_harmless() {
    let bench = Workbench::new();
    bench.put("a", "a".repeat(100_000));
    for query in ["(", "(?:a{1000}){1000}", r"(a)\1"] {
        assert_eq!(
            bench
                .code(
                    "local.search_code",
                    json!({ "query": query, "regex": true })
                )
                .await,
            "invalid_args"
        );
    }
    let (found, _) = search(&bench, json!({ "query": "(a+)+b", "regex": true })).await;
    assert!(found.is_empty());
}

#[tokio::test]
async fn an_empty_line_is_a_line_and_the_end_of_a_file_is_not() {
    let bench = Workbench::new();
    bench.put("a", "x\n\ny\n");
    bench.put("b", "");
    let (found, _) = search(&bench, json!({ "query": "^$", "regex": true })).await;
    assert_eq!(found, ["a:2:"]);
}

#[tokio::test]
async fn a_cancelled_search_ends() {
    let bench = Workbench::new();
    bench.put("a", "x");
    let call = call("local.search_code", json!({ "query": "x" }));
    call.cancelled.cancel();
    assert_eq!(bench.tools.call(call).await, Err(CallError::Cancelled));
}
