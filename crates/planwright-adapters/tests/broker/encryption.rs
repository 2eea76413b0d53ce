//! Connections that are encrypted, to servers with a certificate of a private authority.

use planwright_adapters::broker::{BrokerAddress, open_with};
use planwright_core::id::RunId;
use planwright_engine::port::{Broker, BrokerError, NoticeEnd, StepNotice};
use planwright_testing::brokers::{BrokerKind, BrokerServer};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::sync::Arc;

/// An authority that only the tests know.
struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self {
            certificate,
            issuer,
        }
    }

    /// A certificate for a host, and its key.
    fn certify(&self, host: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

fn notice() -> StepNotice {
    StepNotice {
        capability: "train".to_owned(),
        run: RunId::mint(7),
        step: "train".parse().unwrap(),
        attempt: 1,
        idempotency_key: "key".to_owned(),
        trace: None,
    }
}

async fn check_encryption(kind: BrokerKind) {
    let (ours, other) = (Authority::new(), Authority::new());
    let (certificate, key) = ours.certify("127.0.0.1");
    let server = BrokerServer::start_encrypted(kind, &certificate, &key);
    let folder = tempfile::tempdir().unwrap();
    let open = |host: &str, authority: &Authority| -> Arc<dyn Broker> {
        let file = folder.path().join("authority.pem");
        std::fs::write(&file, &authority.certificate).unwrap();
        let url = server.url().replace("127.0.0.1", host);
        let url = format!("{url}?sslrootcert={}", file.display());
        let address = BrokerAddress::parse(&url, None).unwrap();
        open_with(address, crate::scene::LIMITS).unwrap()
    };
    let broker = open("127.0.0.1", &ours);
    broker.publish(&notice()).await.unwrap();
    let capabilities = ["train".to_owned()];
    let mut notices = broker.receive(&capabilities, "worker", 1).await.unwrap();
    let received = crate::scene::next(&mut notices).await;
    assert_eq!(received.notice.attempt, 1);
    let done = notices.settle(&received.delivery, NoticeEnd::Done);
    done.await.unwrap();
    // Neither another name of the machine nor another authority will do.
    for (host, authority) in [("localhost", &ours), ("127.0.0.1", &other)] {
        let refused = open(host, authority).publish(&notice()).await.unwrap_err();
        let reason = refused.to_string();
        assert!(
            matches!(
                refused,
                BrokerError::Unreachable(_) | BrokerError::Refused(_)
            ),
            "{host}: {reason}"
        );
        assert!(
            reason.contains("certificate") && !reason.contains("hunter2"),
            "{reason}"
        );
    }
    // Without encryption nothing is said to it.
    let plain = server.url().replacen("s://", "://", 1);
    let plain = BrokerAddress::parse(&plain, None).unwrap();
    let plain = open_with(plain, crate::scene::LIMITS).unwrap();
    plain.publish(&notice()).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_known_by_its_certificate() {
    check_encryption(BrokerKind::Redis).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq_is_known_by_its_certificate() {
    check_encryption(BrokerKind::RabbitMq).await;
}
