//! Health tells the truth: ready means that a write works, and the answer says why it does not.

use crate::service::Service;
use planwright_engine::port::StoreError;
use planwright_server::http::ServeError;
use planwright_testing::steps::{echo, sleep};
use planwright_testing::wait::wait_until;
use serde_json::json;

#[test]
fn a_service_that_cannot_write_is_not_ready_and_says_why() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[])]));
    for (error, reason) in [
        (StoreError::Full, "the disk is full"),
        (StoreError::ReadOnly, "the store is read-only"),
        (StoreError::Busy("locked".to_owned()), "locked"),
    ] {
        service.store.fail_writes(Some(error));
        wait_until("the service not to be ready", || {
            service.bare("GET", "/readyz").send().status == 503
        });
        let refused = service.bare("GET", "/readyz").send().ends(503);
        assert_eq!(refused.header("content-type"), Some("application/json"));
        let said = refused.json();
        assert_eq!(said["ready"], false);
        let reasons = said["reasons"].as_array().unwrap();
        assert!(
            reasons
                .iter()
                .any(|said| said.as_str().unwrap().contains(reason)),
            "{said}"
        );
        // It is alive all the same.
        service.bare("GET", "/healthz").send().ends(200);
        // The same holds for those who want something done.
        let refused = service.post("/plan", &json!({ "goal": "one more" }));
        let refused = refused.refuses(503, reason);
        assert!(refused.header("retry-after").is_some());
        service.store.fail_writes(None);
        wait_until("the service to be ready again", || {
            service.bare("GET", "/readyz").send().status == 200
        });
    }
}

#[test]
fn probes_within_a_second_share_one_write() {
    let service = Service::new();
    let began = std::time::Instant::now();
    for _ in 0..200 {
        service.bare("GET", "/readyz").send().ends(200);
    }
    let allowed = 1 + usize::try_from(began.elapsed().as_secs()).unwrap();
    let probes = service.store.probes();
    assert!((1..=allowed).contains(&probes), "{probes} of {allowed}");
}

#[test]
fn a_service_whose_store_failed_for_good_ends() {
    let mut service = Service::new();
    service.plan("p", json!([sleep("a", 60_000, &[])]));
    service.run("p");
    wait_until("the call", || service.status("p") == "executing");
    service
        .store
        .fail_writes(Some(StoreError::Lost("fsync failed".to_owned())));
    let ended = service.ended();
    assert!(
        matches!(&ended, Err(ServeError::StoreLost(reason)) if reason == "fsync failed"),
        "{ended:?}"
    );
    wait_until("the address to be free", || {
        std::net::TcpStream::connect(&service.host).is_err()
    });
}
