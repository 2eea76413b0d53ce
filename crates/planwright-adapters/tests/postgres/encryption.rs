//! Connections that are encrypted, for a server with a certificate of a private authority.

use planwright_adapters::postgres::{Location, OpenPostgresError, PostgresStore};
use planwright_testing::postgres::Server;

fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

#[test]
fn a_server_is_known_by_its_certificate() {
    let server = Server::start();
    let (known, key) = certificate();
    server.use_certificate(&known, &key);
    server.create_database("plans");
    let folder = tempfile::tempdir().unwrap();
    let open = |host: &str, authority: &str| {
        let file = folder.path().join("authority.pem");
        std::fs::write(&file, authority).unwrap();
        let url = server.url("plans").replace("127.0.0.1", host);
        let url = format!("{url}?sslmode=verify-full&sslrootcert={}", file.display());
        PostgresStore::open(Location::parse(&url, None).unwrap(), true)
    };
    let store = open("127.0.0.1", &known).unwrap();
    let encrypted = server.sql(
        "plans",
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'planwright'",
    );
    assert_eq!(encrypted, "t");
    drop(store);
    // Neither another name nor another authority will do.
    for (host, authority) in [("localhost", &known), ("127.0.0.1", &certificate().0)] {
        let refused = open(host, authority);
        assert!(
            matches!(refused, Err(OpenPostgresError::Unreachable(_))),
            "{host}: {refused:?}"
        );
    }
}
