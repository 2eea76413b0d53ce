//! What a person does with a service, over HTTP.

use crate::http::{HttpReply, HttpRequest};
use crate::wait::wait_until;
use serde_json::{Value, json};

/// A client of one service.
#[derive(Debug, Clone)]
pub struct ServiceClient {
    /// Host and port.
    pub host: String,
    /// The token of a person who may do everything.
    pub admin: String,
}

impl ServiceClient {
    /// A request with the token of the person who may do everything.
    pub fn request(&self, method: &str, path: &str) -> HttpRequest {
        self.bare(method, path).token(&self.admin)
    }

    /// A request without a token.
    pub fn bare(&self, method: &str, path: &str) -> HttpRequest {
        HttpRequest::new(&self.host, method, path)
    }

    /// Gets a document.
    #[track_caller]
    pub fn get(&self, path: &str) -> HttpReply {
        self.request("GET", path).send()
    }

    /// Posts a document.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> HttpReply {
        self.request("POST", path).json(body).send()
    }

    /// Posts a plan with these steps.
    #[track_caller]
    pub fn plan(&self, id: &str, steps: Value) -> Value {
        let plan =
            json!({ "id": id, "title": format!("Plan {id}"), "goal": "a test", "steps": steps });
        self.post("/plan", &plan).ends(201).json()
    }

    /// Approves the first version of a plan.
    #[track_caller]
    pub fn approve(&self, id: &str) {
        self.post(
            &format!("/plan/{id}/approve"),
            &json!({ "decision": "approve", "version": 1 }),
        )
        .ends(200);
    }

    /// Begins a run and returns its id.
    #[track_caller]
    pub fn run(&self, id: &str) -> String {
        let begun = self
            .request("POST", &format!("/plan/{id}/run"))
            .send()
            .ends(202)
            .json();
        begun["runId"].as_str().unwrap().to_owned()
    }

    /// The status of a plan.
    #[track_caller]
    pub fn status(&self, id: &str) -> String {
        self.get(&format!("/plan/{id}")).ends(200).json()["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Waits until a plan has this status.
    #[track_caller]
    pub fn wait_for(&self, id: &str, status: &str) {
        wait_until(&format!("{id} to be {status}"), || {
            self.status(id) == status
        });
    }

    /// The run with this id.
    #[track_caller]
    pub fn result(&self, id: &str, run: &str) -> Value {
        self.get(&format!("/plan/{id}/runs/{run}")).ends(200).json()
    }

    /// What waits for a person.
    #[track_caller]
    pub fn inbox(&self) -> Vec<Value> {
        self.get("/approvals").ends(200).json()["items"]
            .as_array()
            .unwrap()
            .clone()
    }
}
