//! Approvals that are taken back over HTTP.

use crate::service::Service;
use planwright_testing::http::HttpReply;
use planwright_testing::steps::effect;
use serde_json::{Value, json};

/// The token of a person.
struct Person(String);

impl Person {
    fn post(&self, service: &Service, path: &str, body: &Value) -> HttpReply {
        let request = service.bare("POST", path);
        request.token(&self.0).json(body).send()
    }

    fn agree(&self, service: &Service, plan: &str) {
        let yes = json!({ "decision": "approve", "version": 1 });
        self.post(service, &format!("/plan/{plan}/approve"), &yes)
            .ends(200);
    }
}

fn start(service: &Service, plan: &str) -> HttpReply {
    service.request("POST", &format!("/plan/{plan}/run")).send()
}

fn state(service: &Service, plan: &str) -> Value {
    service.get(&format!("/plan/{plan}")).ends(200).json()["approvals"][0]["state"].clone()
}

#[test]
fn one_takes_back_ones_own_approval_and_an_admin_anybodys() {
    let service = Service::new();
    let bob = Person(service.token("approver", "person", "bob"));
    let eve = Person(service.token("approver", "person", "eve"));
    let viewer = Person(service.token("viewer", "person", "bob"));
    service.plan("p", json!([effect("p", &[])]));
    bob.agree(&service, "p");
    let path = "/plan/p/revoke-approval";
    let of_bob = json!({ "of": "bob", "reason": "he left" });
    eve.post(&service, path, &of_bob)
        .refuses(403, "may not administer");
    eve.post(&service, path, &json!({}))
        .refuses(409, "person eve has no unused approval");
    viewer
        .post(&service, path, &json!({}))
        .refuses(403, "may not");
    for bad in [
        json!({ "of": "" }),
        json!({ "of": "x".repeat(65) }),
        json!({ "by": "bob" }),
        json!([]),
    ] {
        assert_eq!(bob.post(&service, path, &bad).status, 400, "{bad}");
    }
    assert_eq!(state(&service, "p"), "open");
    let done = service
        .bare("POST", path)
        .token(&bob.0)
        .send()
        .ends(200)
        .json();
    assert_eq!(
        (&done["status"], &done["approvals"]),
        (&json!("proposed"), &json!(0))
    );
    start(&service, "p").refuses(409, "person bob revoked the approval");
    bob.post(&service, path, &json!({}))
        .refuses(409, "has no unused approval");
    bob.agree(&service, "p");
    service.post(path, &of_bob).ends(200);
    start(&service, "p").refuses(409, "the approval of person bob was revoked by person ada");
    service
        .post("/plan/nosuch/revoke-approval", &json!({}))
        .refuses(404, "no plan");
    assert_eq!(service.files.read("effects.txt"), "");
}
