//! Who is let in, where that depends on the command line: addresses, and tokens that are revoked
//! there.

use crate::client::Service;
use serde_json::json;
use std::io::Read as _;
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn a_public_address_is_refused_without_encryption() {
    let bench = planwright_testing::workbench::Bench::new();
    let said = bench.run(&["serve", "--listen", "0.0.0.0:0"]);
    said.complains(3, "would not be encrypted");
    bench.run(&["serve", "--listen", "nowhere"]).ends(2);
    bench
        .run(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            "nosuch.pem",
        ])
        .ends(2);
}

/// Opens an event stream with this token and waits until it has begun.
fn stream(service: &Service, token: &str) -> TcpStream {
    let request = service
        .bare("GET", "/events")
        .token(token)
        .header("Accept", "text/event-stream");
    let mut stream = request.open();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200");
    stream
}

#[test]
fn a_stream_ends_with_the_token_it_was_opened_with() {
    let service = Service::new();
    let made = |name: &str, more: &[&str]| {
        let args = [
            "token", "create", "--role", "viewer", "--kind", "person", "--name", name, "--json",
        ];
        let made = service.bench.run(&[&args, more].concat()).ends(0).json();
        (
            made["id"].as_str().unwrap().to_owned(),
            made["token"].as_str().unwrap().to_owned(),
        )
    };
    let (eve, eves) = made("eve", &[]);
    let (_, short) = made("sam", &["--expires", "2s"]);
    let mut revoked = stream(&service, &eves);
    let mut expired = stream(&service, &short);
    let mut kept = stream(&service, &service.admin);
    service.bench.run(&["token", "revoke", &eve]).ends(0);
    for ended in [&mut revoked, &mut expired] {
        ended
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        // It ends by itself: nothing else would be read within that time.
        ended.read_to_end(&mut Vec::new()).unwrap();
    }
    service
        .bare("GET", "/events")
        .token(&eves)
        .send()
        .refuses(401, "revoked");
    kept.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    service.plan("later", json!([]));
    let mut seen = String::new();
    while !seen.contains("plan.created") {
        let mut piece = [0; 4096];
        let read = kept.read(&mut piece).unwrap();
        assert_ne!(read, 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
}
