//! The files of a plan follow what is done over HTTP.

use crate::client::Service;
use planwright_testing::steps::echo;
use serde_json::json;

#[test]
fn the_files_of_a_plan_follow_every_change_and_go_with_it() {
    let service = Service::new();
    let goal = json!({ "goal": "Ship the next milestone" });
    let created = service.post("/plan", &goal).ends(201).json();
    let id = created["plan"]["id"].as_str().unwrap();
    for file in ["plan.json", "plan.md"] {
        let text = service.bench.read(&format!(".plans/{id}/{file}"));
        assert!(text.contains("Ship the next milestone"), "{file}: {text}");
    }
    service.plan("p", json!([echo("a", 0, &[])]));
    let no = json!({ "version": 1, "reason": "not like this" });
    service.post("/plan/p/reject", &no).ends(200);
    let page = service.bench.read(".plans/p/plan.md");
    assert!(page.contains("not like this"), "{page}");
    service.request("DELETE", "/plan/p").send().ends(204);
    assert!(!service.bench.path(".plans/p/plan.json").exists());
}
