//! The model answers, regardless of what it says.

use crate::server::{LocalModel, configured};
use crate::watcher::Watcher;
use planwright_testing::peers::Project;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::said;
use serde_json::json;

#[test]
fn a_model_on_this_machine_is_checked() {
    let model = LocalModel::shared();
    let project = Project::with(&[]);
    project.configure(&configured(model.port));
    let checked = project
        .run(&["models", "check", "local/smollm2", "--json"])
        .ends(0)
        .json();
    let checked = &checked[0];
    assert_eq!(
        (&checked["ok"], &checked["reachable"]),
        (&json!(true), &json!(true)),
        "{checked:#}"
    );
    assert_eq!(checked["structured"], "json_schema", "{checked:#}");
    assert!(
        checked["usage"]["output"].as_u64().unwrap() > 0,
        "{checked:#}"
    );
}

/// The server listens before it can answer. It is stopped in the middle of loading until the
/// program has asked, so that the program is told 503 by the server itself, and not by luck.
#[test]
fn a_model_that_still_loads_is_waited_for() {
    use rustix::process::Signal;
    // The loading takes half a second, and a busy machine may let it slip by.
    for _ in 0..5 {
        let model = LocalModel::start();
        wait_until("the model to listen", || model.status().is_some());
        model.signal(Signal::STOP);
        let watcher = Watcher::before(model.port);
        let project = Project::with(&[]);
        project.configure(&configured(watcher.port));
        let command = project.command(&["models", "check", "local/smollm2", "--json"]);
        let asking = std::thread::spawn(move || { command }.output().unwrap());
        watcher.wait_for_request();
        model.signal(Signal::CONT);
        let checked = said(asking.join().unwrap()).ends(0).json();
        assert_eq!(checked[0]["ok"], true, "{checked:#}");
        if watcher.refused() > 0 {
            return;
        }
    }
    panic!("the model never said that it is loading");
}
