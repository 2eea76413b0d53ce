//! The service with a certificate, asked by a client that does not share its TLS.

use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running};
use serde_json::{Value, json};
use std::process::Command;

/// What a client of the standard library makes of an address: with the certificate's issuer known
/// and unknown, with an old TLS, and without any.
const CLIENT: &str = r#"
import json, ssl, sys, urllib.request, warnings
warnings.simplefilter("ignore")
url, authority, token = sys.argv[1:]

def get(url, context, token=token):
    request = urllib.request.Request(url + "/whoami", headers={"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(request, context=context, timeout=20) as answer:
            return [answer.status, json.load(answer)["name"]]
    except urllib.error.HTTPError as error:
        return [error.code]
    except Exception as error:
        return [type(error).__name__]

known = ssl.create_default_context(cafile=authority)
old = ssl.create_default_context(cafile=authority)
old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
plain = url.replace("https://", "http://")
print(json.dumps({
    "known": get(url, known), "stranger": get(url, known, "pwt_no"), "unknown": get(url, ssl.create_default_context()),
    "old": get(url, old), "plain": get(plain, None)}))
"#;

/// A certificate for this machine that signs itself, and its key.
fn certify(bench: &Bench) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()])
        .unwrap();
    bench.write("cert.pem", &made.cert.pem());
    bench.write("key.pem", &made.signing_key.serialize_pem());
    let path = |name: &str| bench.path(name).to_str().unwrap().to_owned();
    (path("cert.pem"), path("key.pem"))
}

#[test]
fn with_a_certificate_nothing_is_said_in_the_clear() {
    let bench = Bench::new();
    let (certificate, key) = certify(&bench);
    let made = [
        "token", "create", "--role", "viewer", "--kind", "person", "--name", "ada", "--json",
    ];
    let token = bench.run(&made).ends(0).json()["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let args = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ];
    let mut command = bench.command(&args);
    command.stdout(std::fs::File::create(bench.path("serve.out")).unwrap());
    command.stderr(std::fs::File::create(bench.path("serve.err")).unwrap());
    let running = Running::of(command);
    wait_until("the service", || bench.read("serve.out").ends_with('\n'));
    let said: Value = serde_json::from_str(&bench.read("serve.out")).unwrap();
    let url = said["url"].as_str().unwrap();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let client = Command::new("python3")
        .args(["-c", CLIENT, url, &certificate, &token])
        .output()
        .unwrap();
    let seen: Value =
        serde_json::from_slice(&client.stdout).unwrap_or_else(|_| panic!("{client:?}"));
    assert_eq!(seen["known"], json!([200, "ada"]), "{seen}");
    assert_eq!(seen["stranger"], json!([401]), "{seen}");
    for refused in ["unknown", "old", "plain"] {
        assert!(seen[refused][0].is_string(), "{refused}: {seen}");
    }
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait().code, 0);
}

#[test]
fn a_certificate_that_cannot_be_used_is_refused_before_anything_is_announced() {
    let bench = Bench::new();
    let (certificate, key) = certify(&bench);
    // A key that is another certificate's.
    let elsewhere = Bench::new();
    let (_, other) = certify(&elsewhere);
    bench.write("nothing.pem", "not a certificate\n");
    let nothing = bench.path("nothing.pem").to_str().unwrap().to_owned();
    let absent = bench.path("absent.pem").to_str().unwrap().to_owned();
    for (certificate, key) in [
        (&nothing, &key),
        (&certificate, &nothing),
        (&absent, &key),
        (&certificate, &absent),
        (&certificate, &other),
    ] {
        let args = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            certificate,
            "--tls-key",
            key,
        ];
        bench.run(&args).complains(2, "cannot be used");
    }
    bench
        .run(&["serve", "--listen", "0.0.0.0:0"])
        .complains(3, "would not be encrypted");
}
