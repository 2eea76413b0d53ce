//! Tools that an earlier process heard: known without a process, and never called as remembered.

use crate::scene::{Scene, call, code, fixture};
use planwright_adapters::mcp::{McpServers, ServerState, ToolMemory, Transport};
use planwright_adapters::toolbox::ToolboxOptions;
use planwright_adapters::vault::Cipher;
use planwright_core::tool::EffectClass;
use planwright_engine::port::{Call, Tools as _};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const SCRIPT: &str = "hostile_server.py";

/// A scene that was connected once and is closed, and its servers as the next process has them,
/// with these settings.
async fn next_process(
    behaviour: &str,
    memory: &TempDir,
    settings: ToolboxOptions,
) -> (Scene, McpServers) {
    let directory = memory.path().to_owned();
    let script = directory.join(SCRIPT);
    std::fs::copy(fixture(SCRIPT), &script).unwrap();
    let mut next = None;
    let scene = Scene::hostile_with(behaviour, &[], |spec, options| {
        let workspace = Path::new("/somewhere");
        let memory = ToolMemory::new(directory, workspace, Arc::new(Cipher::Plain));
        options.memory = Some(memory);
        if let Transport::Stdio { args, .. } = &mut spec.transport {
            args[1] = script.display().to_string();
        }
        next = Some((spec.clone(), options.clone()));
    });
    let scene = scene.connected().await;
    scene.servers.close().await;
    crate::scene::gone(scene.marker()).await;
    let (spec, mut options) = next.unwrap();
    options.tools = settings;
    (scene, McpServers::new(vec![spec], options).unwrap())
}

#[tokio::test]
async fn what_was_heard_before_is_known_without_a_process() {
    let memory = TempDir::new().unwrap();
    let (scene, servers) = next_process("fine", &memory, ToolboxOptions::default()).await;
    assert!(servers.catalog().iter().next().is_none());
    assert!(!servers.recall_one("t"));
    assert!(servers.recall_one("s"));
    let before = scene.servers.catalog();
    let now = servers.catalog();
    let digest = now.resolve("s.call").unwrap().digest();
    assert_eq!(digest, before.resolve("s.call").unwrap().digest());
    assert_eq!(now.iter().count(), before.iter().count());
    assert!(servers.recalled_servers().contains_key("s"));
    assert_eq!(servers.status()[0].state, ServerState::Idle);
    assert!(scene.processes().is_empty());

    // A call asks the server first, and what it lists is known from then on.
    let call = Call {
        definition: Some(digest),
        ..call("call", json!({}))
    };
    assert_eq!(servers.call(call).await, Ok(json!("fine")));
    assert!(servers.recalled_servers().is_empty());
    servers.close().await;
    scene.end().await;
}

#[tokio::test]
async fn a_tool_that_is_another_one_by_now_is_not_called() {
    let memory = TempDir::new().unwrap();
    let settings = ToolboxOptions::default();
    let (scene, servers) = next_process("changed_after_restart", &memory, settings).await;
    assert!(servers.recall_one("s"));
    let judged = servers.catalog().resolve("s.call").unwrap().digest();
    let call = Call {
        definition: Some(judged),
        ..call("call", json!({}))
    };
    assert_eq!(code(&servers.call(call).await), "tool_changed");
    let now = servers.catalog().resolve("s.call").unwrap().digest();
    assert_ne!(now, judged);
    servers.close().await;
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_does_not_come_up_has_no_tools() {
    let memory = TempDir::new().unwrap();
    let (scene, servers) = next_process("fine", &memory, ToolboxOptions::default()).await;
    assert!(servers.recall_one("s"));
    std::fs::remove_file(memory.path().join(SCRIPT)).unwrap();
    let state = servers.connect().await.remove(0).state;
    assert!(matches!(state, ServerState::Failed { .. }), "{state:?}");
    assert!(servers.recalled_servers().is_empty());
    assert!(servers.catalog().iter().next().is_none());
    servers.close().await;
    scene.end().await;
}

#[tokio::test]
async fn a_setting_for_a_tool_that_was_not_there_has_the_server_asked() {
    let memory = TempDir::new().unwrap();
    let settings = |tool: &str| ToolboxOptions {
        classes: [(tool.to_owned(), EffectClass::Safe)].into(),
        ..ToolboxOptions::default()
    };
    let (scene, servers) = next_process("fine", &memory, settings("s.call")).await;
    assert!(servers.recall_one("s"));
    let class = servers.catalog().resolve("s.call").unwrap().class;
    assert_eq!(class, EffectClass::Safe);
    scene.end().await;
    let (scene, servers) = next_process("fine", &memory, settings("s.later")).await;
    assert!(!servers.recall_one("s"));
    assert!(servers.catalog().iter().next().is_none());
    scene.end().await;
}
