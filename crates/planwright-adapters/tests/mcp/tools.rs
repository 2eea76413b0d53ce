//! Which tools of a server can be called, and how the list follows the server.

use crate::scene::{Scene, call, code, fixture};
use planwright_adapters::demo::Demo;
use planwright_adapters::mcp::{AllTools, McpOptions, McpServers, ServerSpec, Transport};
use planwright_adapters::toolbox::{BuildToolboxError, InProcessServer, Toolbox, ToolboxOptions};
use planwright_core::tool::EffectClass;
use planwright_engine::memory::MemoryArtifacts;
use planwright_engine::port::{Call, CallError, Tools as _};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn names(scene: &Scene) -> Vec<String> {
    scene
        .servers
        .catalog()
        .iter()
        .map(|tool| tool.name.tool.clone())
        .collect()
}

fn reason(scene: &Scene, tool: &str) -> String {
    let refused = scene.servers.refused_tools();
    refused
        .iter()
        .find(|refused| refused.tool == tool)
        .map_or_else(
            || panic!("{tool} was to be refused: {refused:?}"),
            |refused| refused.reason.clone(),
        )
}

#[tokio::test]
async fn names_that_are_no_names_or_look_alike_are_refused() {
    let scene = Scene::hostile("bad_names").connected().await;
    assert_eq!(names(&scene), ["good"]);
    assert_eq!(scene.servers.refused_tools().len(), 13);
    assert!(reason(&scene, "with space").contains("its name"));
    assert!(reason(&scene, "Dup").contains("same name"));
    assert!(reason(&scene, "dup").contains("same name"));
    assert!(reason(&scene, "twice").contains("same name"));
    let refused = scene.servers.refused_tools();
    assert!(
        refused
            .iter()
            .all(|refused| !refused.tool.contains(['\n', '\u{200b}']))
    );
    scene.end().await;
}

#[tokio::test]
async fn tools_with_schemas_that_cannot_be_fetched_are_refused_and_the_server_checks_the_others() {
    let scene = Scene::hostile("bad_schemas").connected().await;
    assert_eq!(names(&scene), ["bad_regex", "good", "odd_hints"]);
    assert!(reason(&scene, "remote").contains("http://127.0.0.1:1/x"));
    assert!(reason(&scene, "huge").contains("larger"));
    // A schema that cannot be compiled is a warning of validation. The server checks what it is sent.
    let outcome = scene.call("bad_regex", json!({"a": "b"})).await;
    assert_eq!(outcome, Ok(json!("fine")));
    scene.end().await;
}

#[tokio::test]
async fn a_list_without_end_is_cut_and_says_so() {
    let scene = Scene::hostile("endless_pages").connected().await;
    assert_eq!(names(&scene).len(), 100);
    assert!(reason(&scene, "(more tools)").contains("does not end"));
    scene.end().await;
    let scene = Scene::hostile("same_page").connected().await;
    assert!(reason(&scene, "(more tools)").contains("does not end"));
    scene.end().await;
    let scene = Scene::hostile("pages").connected().await;
    assert_eq!(names(&scene), ["t1", "t2", "t3"]);
    assert_eq!(scene.servers.refused_tools(), []);
    scene.end().await;
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    for scene in [
        Scene::hostile("changes_tools"),
        Scene::modern("changes_tools"),
    ] {
        let scene = scene.connected().await;
        let before = scene.servers.catalog().resolve("s.call").unwrap().digest();
        assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
        let deadline = Instant::now() + Duration::from_secs(10);
        while names(&scene).len() != 2 {
            assert!(Instant::now() < deadline, "the list was not read again");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_ne!(
            scene.servers.catalog().resolve("s.call").unwrap().digest(),
            before
        );
        scene.servers.refresh().await;
        assert_eq!(names(&scene), ["added", "call"]);
        scene.end().await;
    }
}

/// The second call comes before the list can have been read again.
#[tokio::test]
async fn a_call_waits_for_a_list_that_changed() {
    for scene in [
        Scene::hostile("changes_tools"),
        Scene::modern("changes_tools"),
    ] {
        let scene = scene.connected().await;
        let judged = scene.servers.catalog().resolve("s.call").unwrap().digest();
        let pinned = || Call {
            definition: Some(judged),
            ..call("call", json!({}))
        };
        let first = scene.make(pinned(), Duration::from_secs(10)).await;
        assert_eq!(first, Ok(json!("fine")));
        let second = scene.make(pinned(), Duration::from_secs(10)).await;
        assert_eq!(code(&second), "tool_changed");
        scene.end().await;
    }
}

#[tokio::test]
async fn a_tool_that_changed_with_a_restart_is_not_called() {
    let scene = Scene::hostile("changed_after_restart").connected().await;
    let known = scene.servers.catalog().resolve("s.call").unwrap().digest();
    let [process] = scene.processes()[..] else {
        panic!("one process")
    };
    let pid = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    scene.lost().await;
    let outcome = scene.call("call", json!({})).await;
    assert!(
        matches!(&outcome, Err(CallError::Unavailable(why)) if why.contains("changed")),
        "{outcome:?}"
    );
    assert_ne!(
        scene.servers.catalog().resolve("s.call").unwrap().digest(),
        known
    );
    scene.end().await;
}

#[tokio::test]
async fn annotations_count_only_if_the_server_is_believed() {
    for (believed, class) in [(true, EffectClass::Safe), (false, EffectClass::Unsafe)] {
        let scene = Scene::python("echo_server.py", &[], |spec, _| spec.believed = believed)
            .connected()
            .await;
        let catalog = scene.servers.catalog();
        assert_eq!(catalog.resolve("s.echo").unwrap().class, class);
        assert_eq!(catalog.resolve("s.slow").unwrap().class, class);
        assert_eq!(
            catalog.resolve("s.image").unwrap().class,
            EffectClass::Unsafe
        );
        scene.end().await;
    }
}

#[tokio::test]
async fn the_operators_word_stands_above_the_servers() {
    let scene = Scene::python("echo_server.py", &[], |_, options| {
        options
            .tools
            .classes
            .insert("s.image".into(), EffectClass::Safe);
        options.tools.limits.insert("s".into(), 3);
        options.tools.serial_writes.insert("s".into(), false);
    })
    .connected()
    .await;
    assert_eq!(
        scene.servers.catalog().resolve("s.image").unwrap().class,
        EffectClass::Safe
    );
    assert_eq!(
        (
            scene.servers.server_limit("s"),
            scene.servers.serial_writes("s")
        ),
        (Some(3), false)
    );
    assert_eq!(scene.servers.check_settings(), Ok(()));
    scene.end().await;
}

#[tokio::test]
async fn settings_for_tools_that_do_not_exist_are_errors() {
    let scene = Scene::python("echo_server.py", &[], |_, options| {
        options
            .tools
            .classes
            .insert("s.made_up".into(), EffectClass::Safe);
    });
    assert_eq!(
        scene.servers.check_settings(),
        Ok(()),
        "nothing is known yet"
    );
    let scene = scene.connected().await;
    assert_eq!(
        scene.servers.check_settings(),
        Err(BuildToolboxError::UnknownTool("s.made_up".into()))
    );
    scene.end().await;

    let scene = Scene::python("echo_server.py", &[], |_, options| {
        options
            .tools
            .key_arguments
            .insert("s.echo".into(), "key".into());
    })
    .connected()
    .await;
    assert!(matches!(
        scene.servers.check_settings(),
        Err(BuildToolboxError::UnknownKeyArgument { .. })
    ));
    assert!(!names(&scene).contains(&"echo".to_owned()));
    scene.end().await;
}

#[tokio::test]
async fn local_and_remote_tools_are_one_set() {
    let logs = tempfile::TempDir::new().unwrap();
    let remote = |name: &str| {
        let transport = Transport::Stdio {
            command: "python3".into(),
            args: vec![fixture("echo_server.py").display().to_string()],
            env: Default::default(),
            cwd: None,
        };
        let options = McpOptions::new(Arc::new(MemoryArtifacts::new()), logs.path());
        McpServers::new(vec![ServerSpec::new(name, transport)], options).unwrap()
    };
    let local = || {
        let servers: [Arc<dyn InProcessServer>; 1] = [Arc::new(Demo)];
        Toolbox::new(servers, ToolboxOptions::default()).unwrap()
    };
    assert!(matches!(
        AllTools::new(local(), remote("demo")),
        Err(BuildToolboxError::DuplicateServer(_))
    ));

    let tools = AllTools::new(local(), remote("s")).unwrap();
    tools.remote().connect().await;
    let catalog = tools.catalog();
    assert!(catalog.resolve("demo.echo").is_ok() && catalog.resolve("mcp__s__echo").is_ok());
    let outcome = tools
        .call(crate::scene::call("echo", json!({"text": "far"})))
        .await;
    assert_eq!(outcome, Ok(json!("far")));
    tools.remote().close().await;
}

#[test]
fn names_of_servers_are_checked() {
    let build = |names: &[&str]| {
        let transport = Transport::Http {
            url: "https://example.com/".into(),
            headers: Default::default(),
        };
        let specs = names
            .iter()
            .map(|name| ServerSpec::new(*name, transport.clone()))
            .collect();
        McpServers::new(
            specs,
            McpOptions::new(Arc::new(MemoryArtifacts::new()), "logs"),
        )
        .map(drop)
    };
    assert_eq!(build(&["a", "b"]), Ok(()));
    assert_eq!(
        build(&["a", "a"]),
        Err(BuildToolboxError::DuplicateServer("a".into()))
    );
    for bad in ["", "../up", "a.b", "a b", "ä"] {
        assert_eq!(
            build(&[bad]),
            Err(BuildToolboxError::BadServerName(bad.into()))
        );
    }
}
