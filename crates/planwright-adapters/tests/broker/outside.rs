//! Other programs that use the same server.

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeleteOptions};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use planwright_testing::brokers::BrokerServer;

fn is_rabbitmq(server: &BrokerServer) -> bool {
    server.url().starts_with("amqp")
}

pub(crate) async fn inject(server: &BrokerServer, capability: &str, body: &[u8]) {
    if !is_rabbitmq(server) {
        let mut add = redis::cmd("XADD");
        add.arg(format!("planwright:steps:{{{capability}}}"));
        add.arg("*").arg(b"\xff\xfe").arg(b"\xfd").arg("notice");
        return run(server, add.arg(body));
    }
    let connection = connect(server).await;
    let channel = connection.create_channel().await.unwrap();
    let confirms = ConfirmSelectOptions::default();
    channel.confirm_select(confirms).await.unwrap();
    let queue = format!("planwright.steps.{capability}");
    let options = BasicPublishOptions::default();
    let properties = BasicProperties::default();
    let sent = channel.basic_publish("".into(), queue.into(), options, body, properties);
    assert!(sent.await.unwrap().await.unwrap().is_ack());
}

/// Removes the queue of a capability while the server runs: on Redis, with all the others.
pub(crate) async fn remove_queue(server: &BrokerServer, capability: &str) {
    if !is_rabbitmq(server) {
        return run(server, &redis::cmd("FLUSHALL"));
    }
    let connection = connect(server).await;
    let channel = connection.create_channel().await.unwrap();
    let queue = format!("planwright.steps.{capability}");
    let options = QueueDeleteOptions::default();
    channel.queue_delete(queue.into(), options).await.unwrap();
}

async fn connect(server: &BrokerServer) -> Connection {
    let properties = ConnectionProperties::default();
    Connection::connect(&server.url(), properties)
        .await
        .unwrap()
}

fn run(server: &BrokerServer, command: &redis::Cmd) {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    command.exec(&mut connection).unwrap();
}
