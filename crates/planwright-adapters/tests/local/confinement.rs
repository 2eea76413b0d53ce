use crate::workbench::Workbench;
use planwright_engine::port::CallError;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// No way of naming `path` lets a tool read, list, search or write it.
async fn is_closed(bench: &Workbench, path: impl AsRef<Path>) {
    let path = path.as_ref().to_str().unwrap();
    let calls = [
        ("local.read_file", json!({ "path": path })),
        (
            "local.write_file",
            json!({ "path": path, "content": "overwritten" }),
        ),
        (
            "local.append_file",
            json!({ "path": path, "content": "appended" }),
        ),
        ("local.list_dir", json!({ "path": path, "recursive": true })),
        (
            "local.search_code",
            json!({ "path": path, "query": "reach" }),
        ),
        (
            "local.run_command",
            json!({ "command": "pwd", "cwd": path }),
        ),
    ];
    for (tool, args) in calls {
        let code = bench.code(tool, args).await;
        assert!(
            matches!(code.as_str(), "outside_workspace" | "protected"),
            "{tool} {path:?} failed with {code}"
        );
    }
}

fn outside(bench: &Workbench) -> String {
    std::fs::read_to_string(bench.parent().join("outside.txt")).unwrap()
}

#[tokio::test]
async fn no_spelling_of_a_path_leads_out() {
    let bench = Workbench::new();
    bench.put("a/b/c", "");
    let paths = [
        "..",
        "../",
        "../outside.txt",
        "../new.txt",
        "./../outside.txt",
        "a/../../outside.txt",
        "a/b/../../../outside.txt",
        "a//b/.././../..//outside.txt",
        "../workspace/../outside.txt",
        "/etc/passwd",
        "/",
        "//etc/passwd",
        "/proc/self/environ",
        "/dev/null",
    ];
    for path in paths {
        is_closed(&bench, path).await;
    }
    is_closed(&bench, Path::new("/proc/self/root").join("etc/passwd")).await;
    is_closed(&bench, bench.parent().join("outside.txt")).await;
    is_closed(&bench, bench.parent().join("workspace/../outside.txt")).await;
    is_closed(&bench, bench.parent().join("workspace-2/x")).await;
    assert_eq!(outside(&bench), "out of reach");
    assert_eq!(std::fs::read_dir(bench.parent()).unwrap().count(), 2);
}

#[tokio::test]
async fn no_link_leads_out() {
    let bench = Workbench::new();
    bench.put("dir/x", "");
    bench.link("file", "../outside.txt");
    bench.link("absolute", bench.parent().join("outside.txt"));
    bench.link("parent", "..");
    bench.link("root", "/");
    bench.link("dir/up", "../..");
    bench.link("chain", "dir/up");
    bench.link("dangling", "../new.txt");
    bench.link("proc", "/proc/self/cwd");
    let paths = [
        "file",
        "absolute",
        "parent",
        "parent/outside.txt",
        "root",
        "root/etc/passwd",
        "dir/up/outside.txt",
        "chain/outside.txt",
        "dangling",
        "proc/Cargo.toml",
    ];
    for path in paths {
        is_closed(&bench, path).await;
    }
    assert_eq!(outside(&bench), "out of reach");
    assert!(!bench.parent().join("new.txt").exists());
    let found = bench
        .call("local.search_code", json!({ "query": "reach" }))
        .await
        .unwrap();
    assert_eq!(found["matches"], json!([]));
}

/// Every path of up to four names, some of which are links.
#[tokio::test]
async fn no_combination_of_names_leads_out() {
    let bench = Workbench::new();
    bench.put("dir/file", "inside");
    bench.link("up", "..");
    bench.link("dir/up", "../..");
    bench.link("here", "dir/../dir");
    bench.link("root", bench.parent());
    let names = [
        "..",
        ".",
        "",
        "dir",
        "up",
        "here",
        "root",
        "workspace",
        "file",
        "outside.txt",
    ];
    let mut paths = vec![String::new()];
    let mut from = 0;
    let mut read = 0;
    for _ in 0..4 {
        let to = paths.len();
        for i in from..to {
            paths.extend(names.map(|name| format!("{}{name}/", paths[i])));
        }
        from = to;
    }
    for path in paths
        .iter()
        .filter_map(|path| path.strip_suffix('/'))
        .filter(|path| !path.is_empty())
    {
        match bench.call("local.read_file", json!({ "path": path })).await {
            Ok(text) => {
                assert_eq!(text, "inside", "{path}");
                read += 1;
            }
            Err(CallError::Failed { .. }) => {}
            Err(other) => panic!("{path}: {other:?}"),
        }
    }
    assert!(
        read > 10,
        "only {read} of {} paths led to the file",
        paths.len()
    );
}

#[tokio::test]
async fn links_within_the_workspace_work() {
    let bench = Workbench::new();
    bench.put("dir/a", "inside");
    bench.link("relative", "dir/a");
    bench.link("dir/back", "../dir");
    bench.link("absolute", bench.path("dir"));
    bench.link("missing", "dir/made");
    for path in [
        "relative",
        "dir/back/a",
        "dir/back/back/a",
        "absolute/a",
        "absolute/../dir/a",
    ] {
        assert_eq!(
            bench.call("local.read_file", json!({ "path": path })).await,
            Ok(json!("inside")),
            "{path}"
        );
    }
    let written = bench
        .call(
            "local.write_file",
            json!({ "path": "relative", "content": "new" }),
        )
        .await;
    assert_eq!(written, Ok(json!({ "path": "dir/a", "bytes": 3 })));
    assert_eq!(bench.text("dir/a"), "new");
    bench
        .call(
            "local.write_file",
            json!({ "path": "missing", "content": "made" }),
        )
        .await
        .unwrap();
    assert_eq!(bench.text("dir/made"), "made");
}

#[tokio::test]
async fn links_that_go_in_circles_end() {
    let bench = Workbench::new();
    bench.link("a", "b");
    bench.link("b", "a");
    bench.link("self", "self/x");
    for path in ["a", "b/x", "self"] {
        assert_eq!(
            bench.code("local.read_file", json!({ "path": path })).await,
            "too_many_links"
        );
    }
}

#[tokio::test]
async fn the_plans_directory_is_closed_under_every_name() {
    let bench = Workbench::new();
    is_closed(&bench, ".plans").await;
    is_closed(&bench, ".plans/new/file").await;
    assert!(!bench.path(".plans").exists());

    bench.put(".plans/plan-a/plan.json", "reach");
    bench.put("dir/x", "");
    bench.link("alias", ".plans");
    bench.link("dir/deep", "../.plans/plan-a");
    bench.link("dir/file", "../.plans/plan-a/plan.json");
    let paths = [
        ".plans",
        ".PLANS/plan-a/plan.json",
        "./.plans/plan-a/plan.json",
        "dir/../.plans/plan-a/plan.json",
        "alias",
        "alias/plan-a/plan.json",
        "dir/deep/plan.json",
        "dir/file",
    ];
    for path in paths {
        is_closed(&bench, path).await;
    }
    is_closed(&bench, bench.path(".plans/plan-a/plan.json")).await;
    assert_eq!(bench.text(".plans/plan-a/plan.json"), "reach");
    let found = bench
        .call("local.search_code", json!({ "query": "reach" }))
        .await
        .unwrap();
    assert_eq!(found["matches"], json!([]));
}

#[tokio::test]
async fn a_plans_directory_that_is_a_link_is_closed_where_it_really_is() {
    let bench = Workbench::new();
    bench.put("moved/plan-a/plan.json", "reach");
    bench.link(".plans", "moved");
    is_closed(&bench, "moved").await;
    is_closed(&bench, "moved/plan-a/plan.json").await;
    let list = bench
        .call("local.list_dir", json!({ "recursive": true }))
        .await
        .unwrap();
    assert_eq!(list, json!([]));
    let found = bench
        .call("local.search_code", json!({ "query": "reach" }))
        .await
        .unwrap();
    assert_eq!(found["matches"], json!([]));
}

#[tokio::test]
async fn the_policy_can_be_read_but_not_written() {
    let bench = Workbench::new();
    bench.put("planwright.toml", "policy");
    bench.put("dir/planwright.toml", "not the policy");
    bench.link("alias", "planwright.toml");
    for path in [
        "planwright.toml",
        "./PLANWRIGHT.toml",
        "dir/../planwright.toml",
        "alias",
    ] {
        for tool in ["local.write_file", "local.append_file"] {
            assert_eq!(
                bench
                    .code(tool, json!({ "path": path, "content": "mine" }))
                    .await,
                "protected",
                "{path}"
            );
        }
    }
    assert_eq!(
        bench
            .call("local.read_file", json!({ "path": "alias" }))
            .await,
        Ok(json!("policy"))
    );
    bench
        .call(
            "local.write_file",
            json!({ "path": "dir/planwright.toml", "content": "" }),
        )
        .await
        .unwrap();
}

/// A name alternates between a directory of the workspace and a link out of it while the tools work
/// through it.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_swapped_for_a_link_never_leads_out() {
    let bench = Workbench::new();
    let secrets = bench.parent().join("secrets");
    std::fs::create_dir(&secrets).unwrap();
    std::fs::write(secrets.join("file"), "reach").unwrap();
    bench.put("place/file", "inside");
    bench.link("other", &secrets);
    let swapper = Swapper::start(bench.path("place"), bench.path("other"));

    let mut inside = 0;
    let mut refused = 0;
    for _ in 0..400 {
        match bench
            .call("local.read_file", json!({ "path": "place/file" }))
            .await
        {
            Ok(text) => {
                assert_eq!(text, "inside");
                inside += 1;
            }
            Err(CallError::Failed { .. }) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
        // Whether a write finds the place or not, it must not find the other one.
        drop(
            bench
                .call(
                    "local.append_file",
                    json!({ "path": "place/log", "content": "x" }),
                )
                .await,
        );
        drop(
            bench
                .call(
                    "local.write_file",
                    json!({ "path": "place/new/file", "content": "x" }),
                )
                .await,
        );
        if let Ok(list) = bench
            .call(
                "local.list_dir",
                json!({ "path": "place", "recursive": true }),
            )
            .await
        {
            assert!(!list.to_string().contains("secrets"), "{list}");
        }
        if let Ok(found) = bench
            .call(
                "local.search_code",
                json!({ "path": "place", "query": "reach" }),
            )
            .await
        {
            assert_eq!(found["matches"], json!([]));
        }
    }
    drop(swapper);
    assert!(
        inside > 0 && refused > 0,
        "the swap was never met: {inside} inside, {refused} refused"
    );
    assert_eq!(
        std::fs::read_dir(&secrets).unwrap().count(),
        1,
        "something was written outside"
    );
}

/// Exchanges two names until it is dropped.
struct Swapper {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(one: PathBuf, other: PathBuf) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        Self {
            done,
            thread: Some(thread),
        }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[tokio::test]
async fn a_workspace_that_is_renamed_stays_the_same_workspace() {
    let bench = Workbench::new();
    bench.put("file", "first");
    let moved = bench.parent().join("moved");
    std::fs::rename(bench.path(""), &moved).unwrap();
    bench.put("file", "second");
    assert_eq!(
        bench
            .call("local.read_file", json!({ "path": "file" }))
            .await,
        Ok(json!("first"))
    );
}
