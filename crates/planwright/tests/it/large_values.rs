//! Large values in an object store, in the program.

use planwright_testing::objects::ObjectServer;
use planwright_testing::postgres::server;
use planwright_testing::steps::call;
use planwright_testing::workbench::{Bench, Said, said};
use serde_json::{Value, json};

/// A workspace whose large values are in a bucket.
struct Shelf {
    bench: Bench,
    objects: ObjectServer,
}

impl Shelf {
    fn new() -> Self {
        let shelf = Self {
            bench: Bench::new(),
            objects: ObjectServer::start(),
        };
        let config = format!("[store]\nobjects = {:?}\n", shelf.objects.url("plans"));
        shelf.bench.configure(&config);
        shelf
    }

    fn run(&self, store: &str, args: &[&str]) -> Said {
        let mut command = self.bench.command(args);
        command
            .envs(self.objects.keys())
            .env("PLANWRIGHT_STORE", store);
        said(command.output().unwrap())
    }

    fn plan(&self, id: &str) -> String {
        let step = call("a", "demo.random_bytes", json!({ "n": 200_000 }), &[]);
        self.bench.plan(id, json!([step]))
    }

    fn diagnose(&self, store: &str) -> Value {
        let checks = self.run(store, &["doctor", "--json"]).json();
        let checks = checks["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["name"] == "large values");
        found.unwrap().clone()
    }

    fn is_kept_by_the_workspace(&self) -> bool {
        let folder = self.bench.path(".plans/planwright.db-artifacts");
        std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some())
    }
}

#[test]
fn large_results_are_in_the_bucket_whatever_the_store_is() {
    let shelf = Shelf::new();
    server().create_database("large_values");
    let database = server().url("large_values");
    for (store, id) in [("sqlite", "one"), (&*database, "two")] {
        let before = shelf.objects.names("plans").len();
        shelf.run(store, &["run", &shelf.plan(id)]).ends(0);
        assert!(shelf.objects.names("plans").len() > before, "{store}");
        shelf.run(store, &["verify"]).ends(0);
        let check = shelf.diagnose(store);
        let message = check["message"].as_str().unwrap();
        assert!(message.contains("s3://values/plans"), "{check}");
        assert!(message.contains("read back"), "{check}");
    }
    assert!(!shelf.is_kept_by_the_workspace());
    let sql = "SELECT count(*) FROM planwright.artifacts";
    assert_eq!(server().sql("large_values", sql).trim(), "0");
    // A copy leaves them where they are, and finds them.
    server().create_database("large_values_copied");
    let copy = server().url("large_values_copied");
    let args = ["store", "copy", "--from", "sqlite", "--to", &copy, "--json"];
    let copied = shelf.run("sqlite", &args).ends(0).json();
    assert!(copied["values"].as_u64() >= Some(1), "{copied}");
    shelf.run(&copy, &["verify"]).ends(0);
    // One that is lost is damage.
    for name in shelf.objects.names("plans") {
        shelf.objects.remove(&name);
    }
    let found = shelf.run("sqlite", &["verify", "--json"]).ends(5).json();
    let message = found["findings"][0]["message"].as_str().unwrap();
    assert!(message.contains("missing"), "{found}");
}

#[test]
fn a_bucket_is_named_by_a_person_and_never_holds_what_is_encrypted() {
    let shelf = Shelf::new();
    // The keys are missing one half.
    let mut command = shelf.bench.command(&["run", &shelf.plan("p")]);
    command.env("AWS_ACCESS_KEY_ID", "S3RVER");
    let refused = said(command.output().unwrap());
    refused.complains(2, "cannot be used");
    let mut command = shelf.bench.command(&["list"]);
    command
        .env("PLANWRIGHT_OBJECTS", "s3://mine/of/the/agent")
        .env("PLANWRIGHT_AGENT", "robot");
    shelf.run("sqlite", &["import", &shelf.plan("p")]).ends(0);
    let refused = said(command.output().unwrap());
    refused.complains(3, "an agent cannot choose where large values are kept");
    // What a clone says does not count before it is trusted.
    let clone = Bench::new();
    clone.write("planwright.toml", "[store]\nobjects = \"s3://theirs\"\n");
    let ignored = clone.run(&["import", &clone.plan("p", json!([]))]);
    assert!(
        ignored.err.contains("place of large values"),
        "{ignored:#?}"
    );
    // A store that is encrypted keeps them itself.
    let word = shelf.bench.write("word", "correct horse battery staple\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&word, mode).unwrap();
    let mut encrypt = shelf.bench.command(&["store", "encrypt", "--yes"]);
    encrypt
        .args(["--passphrase-file", "word"])
        .envs(shelf.objects.keys());
    said(encrypt.output().unwrap()).ends(0);
    let args = ["list", "--passphrase-file", "word"];
    shelf.run("sqlite", &args).complains(3, "in the clear");
}
