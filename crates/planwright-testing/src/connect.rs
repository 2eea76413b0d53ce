//! Connections that only sit there, from any address of this machine.

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

/// Opens a connection to a service from this address of the machine.
pub fn connect_from(host: &str, source: Ipv4Addr) -> TcpStream {
    let address: SocketAddr = host.parse().unwrap();
    let opened = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&opened, &SocketAddr::from((source, 0))).unwrap();
    connect(&opened, &address).unwrap();
    TcpStream::from(opened)
}

/// Begins a sign-in whose body does not come; nothing if the service does not take it.
pub fn begin_sign_in(host: &str, source: Ipv4Addr) -> Option<TcpStream> {
    let mut stream = connect_from(host, source);
    let head = format!(
        "POST /sign-in HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).ok()?;
    Some(stream)
}
