//! Signed receipts, verified by a program of other authors.

use planwright_testing::steps::effect;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};
use std::process::Command;

/// A verifier of 20 lines that knows nothing of this program but docs/receipts.md.
const NODE: &str = r#"
const crypto = require('crypto');
const fs = require('fs');
const [file, wanted] = process.argv.slice(1);
const envelope = JSON.parse(fs.readFileSync(file, 'utf8'));
const [signature] = envelope.signatures;
if (wanted && signature.keyid !== wanted) throw new Error('another key');
const raw = Buffer.from(signature.keyid.replace('ed25519:', ''), 'base64');
const prefix = Buffer.from('302a300506032b6570032100', 'hex');
const key = crypto.createPublicKey({ key: Buffer.concat([prefix, raw]), format: 'der', type: 'spki' });
const payload = Buffer.from(envelope.payload, 'base64');
const type = envelope.payloadType;
const head = Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `);
const signed = Buffer.concat([head, payload]);
if (!crypto.verify(null, signed, key, Buffer.from(signature.sig, 'base64'))) {
  console.error('bad signature');
  process.exit(1);
}
process.stdout.write(payload);
"#;

fn verify_with_node(file: &str, key: &str) -> Option<Value> {
    let output = Command::new("node")
        .args(["-e", NODE, file, key])
        .output()
        .expect("node is needed");
    output
        .status
        .success()
        .then(|| serde_json::from_slice(&output.stdout).unwrap())
}

fn public_key(bench: &Bench) -> String {
    let text = std::fs::read_to_string(bench.home().join(".config/planwright/store.key")).unwrap();
    let key: Value = serde_json::from_str(&text).unwrap();
    key["public"].as_str().unwrap().to_owned()
}

#[test]
fn a_receipt_is_verified_elsewhere_and_says_what_was_agreed_to_and_done() {
    let bench = Bench::new();
    bench.configure("[secrets]\nTOKEN = { env = \"TOKEN\" }\n");
    let plan = bench.document(json!({
        "id": "p", "title": "P", "variables": { "name": "unset" }, "steps": [
            { "id": "ask", "tool": "demo.echo", "args": { "value": "${secret.TOKEN}" } },
            { "id": "note", "tool": "local.write_file",
              "args": { "path": "note.txt", "content": "hello ${name}" }, "dependsOn": ["ask"] },
        ],
    }));
    let mut command = bench.command(&["run", &plan, "--yes", "--var", "name=ada", "--json"]);
    let ran = command
        .env("TOKEN", "s3cr3t-canary-token")
        .output()
        .unwrap();
    let ran: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(ran["status"], "completed", "{ran}");
    let digest = ran["digest"].as_str().unwrap_or_default().to_owned();
    let out = bench.path("receipt.json").display().to_string();
    bench.run(&["receipt", "p", "--out", &out]).ends(0);
    bench
        .run(&["receipt", "p", "--out", &out])
        .complains(3, "already exists");
    let key = public_key(&bench);
    let receipt = verify_with_node(&out, &key).expect("node says that it is signed");
    assert_eq!(receipt["planwright"], "receipt");
    assert_eq!(
        (&receipt["plan"]["id"], &receipt["plan"]["version"]),
        (&json!("p"), &json!(1))
    );
    assert_eq!(
        receipt["plan"]["document"]["steps"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let approval = &receipt["approvals"][0];
    assert_eq!(approval["digest"], receipt["plan"]["digest"]);
    assert!(digest.is_empty() || receipt["plan"]["digest"] == json!(digest));
    assert_eq!(approval["by"]["kind"], "person");
    assert_eq!(receipt["run"]["status"], "completed");
    let calls = receipt["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 2, "{receipt}");
    assert_eq!(calls[1]["tool"], "local.write_file");
    assert_eq!(
        calls[1]["args"],
        json!({ "path": "note.txt", "content": "hello ada" })
    );
    assert_eq!(calls[1]["outcome"]["kind"], "attempt_succeeded");
    let text = receipt.to_string();
    assert!(!text.contains("s3cr3t-canary-token"), "{text}");
    // The heads are those of the journals.
    let log = bench.log("p");
    assert_eq!(receipt["heads"][1]["hash"], log.last().unwrap()["hash"]);
    assert_eq!(receipt["heads"][1]["seq"], log.last().unwrap()["seq"]);

    // This program says the same, without the store.
    let elsewhere = Bench::new();
    let said = elsewhere
        .run(&["receipt", "--verify", &out, "--key", &key, "--json"])
        .ends(0)
        .json();
    assert_eq!((&said["ok"], &said["yours"]), (&json!(true), &json!(false)));
    assert_eq!(said["receipt"], receipt);
    let said = elsewhere.run(&["receipt", "--verify", &out]).ends(0);
    assert!(said.err.contains("anyone can make a key"), "{said:#?}");
    let said = bench.run(&["receipt", "--verify", &out]).ends(0);
    assert!(
        said.out.contains("(yours)") && said.out.contains("approved by person"),
        "{said:#?}"
    );
}

#[test]
fn a_receipt_with_a_flipped_byte_is_refused_by_both() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let receipt = bench.run(&["receipt", "p"]).ends(0).out;
    let key = public_key(&bench);
    let file = bench.path("flipped.json");
    let name = file.display().to_string();
    std::fs::write(&file, &receipt).unwrap();
    assert!(verify_with_node(&name, &key).is_some());
    bench.run(&["receipt", "--verify", &name]).ends(0);
    // In the payload, in the signature, in the key and in the type.
    for part in [
        "\"payload\":\"",
        "\"sig\":\"",
        "ed25519:",
        "vnd.planwright.r",
    ] {
        let at = receipt.find(part).unwrap() + part.len() + 5;
        let mut flipped = receipt.clone().into_bytes();
        flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
        std::fs::write(&file, &flipped).unwrap();
        assert!(verify_with_node(&name, &key).is_none(), "{part}");
        bench.run(&["receipt", "--verify", &name]).ends(5);
    }
    // Signed, and by another person.
    std::fs::write(&file, &receipt).unwrap();
    let other = Bench::new();
    let plan = other.plan("p", json!([effect("a", &[])]));
    other.run(&["import", &plan]).ends(0);
    let key = public_key(&other);
    other
        .run(&["receipt", "--verify", &name, "--key", &key])
        .complains(5, "and not with");
}

#[test]
fn a_run_that_goes_on_has_no_receipt() {
    let bench = Bench::new();
    let plan = bench.document(json!({ "id": "p", "title": "P", "steps": [
        { "id": "a", "tool": "local.append_file", "approvalRequired": true,
          "args": { "path": "effects.txt", "content": "a\n" } },
    ]}));
    bench.run(&["run", &plan, "--yes"]).ends(4);
    bench.run(&["receipt", "p"]).complains(3, "has not ended");
    let digest = bench.digest("p");
    bench
        .run(&["approve", "p", "--step", "a", "--digest", &digest])
        .ends(0);
    bench.run(&["resume", "p"]).ends(0);
    let receipt = bench.run(&["receipt", "p"]).ends(0).out;
    bench.write("r.json", &receipt);
    let name = bench.path("r.json").display().to_string();
    let said = bench
        .run(&["receipt", "--verify", &name, "--json"])
        .ends(0)
        .json();
    let approvals = said["receipt"]["approvals"].as_array().unwrap();
    assert!(
        approvals.iter().any(|approval| approval["step"] == "a"),
        "{said}"
    );
}
