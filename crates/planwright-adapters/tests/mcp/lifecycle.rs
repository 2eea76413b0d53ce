//! Starting, both eras, and servers that do not come up.

use crate::scene::{Scene, gone};
use planwright_adapters::mcp::{
    Connected, Era, McpOptions, McpServers, ServerSpec, ServerState, Transport,
};
use planwright_engine::memory::MemoryArtifacts;
use planwright_engine::port::{CallError, Tools as _};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

async fn agreed(scene: &Scene) -> Connected {
    match scene.connect().await {
        ServerState::Connected(connected) => connected,
        other => panic!("it was to come up: {other:?}"),
    }
}

#[tokio::test]
async fn both_eras_are_found_out() {
    let scene = Scene::python("echo_server.py", &[], |_, _| {});
    let earlier = agreed(&scene).await;
    assert_eq!(
        (earlier.era, earlier.protocol_version.as_str()),
        (Era::Earlier, "2025-06-18")
    );
    assert_eq!(
        (earlier.calls_itself.as_deref(), earlier.tools),
        (Some("echo 1"), 15)
    );
    scene.end().await;

    let scene = Scene::python("echo_server.py", &["modern"], |_, _| {});
    let modern = agreed(&scene).await;
    assert_eq!(
        (modern.era, modern.protocol_version.as_str()),
        (Era::Modern, "2026-07-28")
    );
    assert_eq!(
        (modern.calls_itself.as_deref(), modern.tools),
        (Some("echo 2"), 15)
    );
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_ignores_discover_is_spoken_to_the_earlier_way() {
    let scene = Scene::hostile("silent_discover");
    let began = Instant::now();
    assert_eq!(agreed(&scene).await.era, Era::Earlier);
    assert!(
        began.elapsed() < Duration::from_secs(9),
        "{:?}",
        began.elapsed()
    );
    // The second start knows better than to wait, and so does another process.
    scene.servers.close().await;
    let remembered = std::fs::read_to_string(scene.path("logs/s.era")).unwrap();
    assert!(remembered.starts_with("earlier sha256:"), "{remembered}");
    let again = Instant::now();
    assert_eq!(agreed(&scene).await.era, Era::Earlier);
    assert!(
        again.elapsed() < Duration::from_millis(2900),
        "{:?}",
        again.elapsed()
    );
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    scene.end().await;
}

#[tokio::test]
async fn a_modern_server_that_starts_slowly_is_still_modern() {
    let scene = Scene::hostile("late_discover");
    assert_eq!(agreed(&scene).await.era, Era::Modern);
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    scene.end().await;
    // One that speaks both is not started again for it.
    let scene = Scene::hostile("late_both");
    assert_eq!(agreed(&scene).await.era, Era::Earlier);
    assert_eq!(std::fs::read_to_string(scene.path("state")).unwrap(), "1");
    scene.end().await;
}

#[tokio::test]
async fn an_era_that_is_out_of_date_is_found_out_anew() {
    let scene = Scene::python("echo_server.py", &["modern"], |spec, options| {
        std::fs::create_dir_all(&options.logs).unwrap();
        std::fs::write(
            options.logs.join("s.era"),
            format!("earlier {}\n", spec.origin()),
        )
        .unwrap();
    });
    assert_eq!(agreed(&scene).await.era, Era::Modern);
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_is_being_started_is_closed_in_time() {
    let scene = Scene::hostile("hears_nothing");
    let servers = scene.servers.clone();
    let connecting = tokio::spawn(async move { servers.connect().await });
    while scene.processes().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    scene.end().await;
    connecting.await.unwrap();
}

#[tokio::test]
async fn odd_starts_are_survived() {
    for behaviour in [
        "odd_discover",
        "slow_start",
        "garbage_first",
        "early_requests",
        "stderr_at_start",
    ] {
        let scene = Scene::hostile(behaviour).connected().await;
        assert_eq!(
            scene.call("call", json!({})).await,
            Ok(json!("fine")),
            "{behaviour}"
        );
        scene.end().await;
    }
}

#[tokio::test]
async fn a_server_that_dies_while_it_starts_is_reported() {
    for (behaviour, why) in [
        ("exits", "exit status: 3"),
        ("dies_at_first_line", "exit status: 1"),
        ("dies_at_initialize", "exit status: 4"),
        ("dies_after_initialize", "exit status: 5"),
        ("dies_in_list", "exit status: 6"),
        ("list_is_no_list", "no tools"),
        ("unknown_version", "1066-10-14"),
        ("refuses", "go [31maway"),
        ("endless_start", "larger than 16 MiB"),
    ] {
        let scene = Scene::hostile(behaviour);
        let (reason, _) = scene.refusal().await;
        assert!(reason.contains(why), "{behaviour}: {reason}");
        let outcome = scene.call("call", json!({})).await;
        assert!(
            matches!(outcome, Err(CallError::Unavailable(_))),
            "{behaviour}: {outcome:?}"
        );
        scene.end().await;
    }
}

#[tokio::test]
async fn what_a_dead_server_said_is_shown_without_its_escapes() {
    let scene = Scene::hostile("exits_with_words");
    let (reason, stderr) = scene.refusal().await;
    assert!(reason.contains("exit status: 3"), "{reason}");
    assert_eq!(stderr, "cannot find [1mthe config");
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_and_ended() {
    for behaviour in ["never_answers", "hears_nothing"] {
        let scene = Scene::hostile_with(behaviour, &[], |spec, _| {
            spec.start_timeout = Duration::from_secs(3);
        });
        let began = Instant::now();
        let (reason, _) = scene.refusal().await;
        assert!(reason.contains("did not answer within 3 s"), "{reason}");
        assert!(began.elapsed() < Duration::from_secs(30));
        gone(&format!("state={}", scene.path("state").display())).await;
        scene.end().await;
    }
}

#[tokio::test]
async fn a_server_cannot_choose_its_name() {
    let scene = Scene::hostile("fake_name");
    let connected = agreed(&scene).await;
    assert_eq!(connected.calls_itself.as_deref(), Some("]0;ownedfake 1"));
    let catalog = scene.servers.catalog();
    assert!(catalog.iter().all(|tool| tool.name.server == "s"));
    scene.end().await;
}

#[tokio::test]
async fn one_server_that_fails_does_not_keep_the_others_from_working() {
    let logs = tempfile::TempDir::new().unwrap();
    let stdio = |command: &str, args: &[&str]| Transport::Stdio {
        command: command.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Default::default(),
        cwd: None,
    };
    let echo = crate::scene::fixture("echo_server.py")
        .display()
        .to_string();
    let specs = vec![
        ServerSpec::new("missing", stdio("/no/such/program", &[])),
        ServerSpec::new("broken", stdio("python3", &["-c", "raise SystemExit(9)"])),
        ServerSpec::new("works", stdio("python3", &[&echo])),
    ];
    let options = McpOptions::new(Arc::new(MemoryArtifacts::new()), logs.path());
    let servers = McpServers::new(specs, options).unwrap();
    let states = servers.connect().await;
    assert!(
        matches!(&states[0].state, ServerState::Failed { reason, .. } if reason.contains("/no/such/program"))
    );
    assert!(
        matches!(&states[1].state, ServerState::Failed { reason, .. } if reason.contains("exit status: 9"))
    );
    assert!(
        matches!(&states[2].state, ServerState::Connected(_)),
        "{states:?}"
    );
    assert_eq!(servers.catalog().iter().count(), 15);
    servers.close().await;
    assert_eq!(servers.status()[2].state, ServerState::Idle);
}

#[tokio::test]
async fn a_server_that_is_called_first_is_connected_first() {
    let scene = Scene::hostile("well_behaved");
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    scene.end().await;
}
