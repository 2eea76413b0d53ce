//! A client that is killed takes its servers with it.

use crate::scene::{Scene, call, gone, processes};
use serde_json::json;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

const ROLE: &str = "PLANWRIGHT_TEST_ROLE";

/// Not a test of its own: the process that [`servers_die_with_a_client_that_is_killed`] starts and
/// kills. Its servers hang in calls, so they do not see that their input ended, and ignore SIGTERM.
#[tokio::test]
#[ignore = "another test starts it, in a process of its own"]
async fn a_client_to_be_killed() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let hung = Scene::hostile_with("ignores_sigterm", &[], |spec, _| spec.per_plan = true)
        .connected()
        .await;
    let many = Scene::hostile("grandchildren").connected().await;
    let hanging = hung.make(call("call", json!({})), Duration::from_secs(600));
    let telling = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        println!("READY {} {}", hung.marker(), many.marker());
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = hanging => {}
        () = telling => {}
    }
}

#[tokio::test]
async fn servers_die_with_a_client_that_is_killed() {
    let mut client = Command::new(std::env::current_exe().unwrap())
        .args([
            "killed::a_client_to_be_killed",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env(ROLE, "killed")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let ready = lines
        .map_while(Result::ok)
        .find_map(|line| {
            line.split_once("READY ")
                .map(|(_, markers)| markers.to_owned())
        })
        .expect("the client comes up");
    let markers: Vec<&str> = ready.split_whitespace().collect();
    // The one that lists the tools, and the one of the run.
    assert_eq!(processes(markers[0]).len(), 2);
    assert_eq!(processes(markers[1]).len(), 3);
    client.kill().unwrap();
    client.wait().unwrap();
    for marker in markers {
        gone(marker).await;
    }
}
