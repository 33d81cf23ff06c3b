//! QUIC with quinn: its loss detection, its pacing and its idle limits run on these
//! timers. A server answers one request, and then notices that its client is silent.
//!
//! ```text
//! cargo run -p tickwheel-await-examples --bin quinn
//! ```

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use quinn::{
    AsyncTimer, AsyncUdpSocket, ClientConfig, ConnectionError, Endpoint, EndpointConfig, Runtime,
    ServerConfig, TokioRuntime, TransportConfig,
};
use tickwheel::time::{Global, Sleep, sleep_until};

/// tokio's tasks and sockets, and timers of this crate.
#[derive(Debug)]
struct Tickwheel;

impl Runtime for Tickwheel {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(QuicTimer(sleep_until(deadline)))
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }
}

#[derive(Debug)]
struct QuicTimer(Sleep);

impl AsyncTimer for QuicTimer {
    fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        self.0.reset_at(deadline);
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<()> {
        Pin::new(&mut self.0).poll(context)
    }
}

const SILENCE: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = endpoint(Some(server_config()?))?;
    let address = server.local_addr()?;
    let serving = tokio::spawn(serve(server));

    let mut client = endpoint(None)?;
    client.set_default_client_config(client_config()?);
    let connection = client.connect(address, "localhost")?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(b"hello").await?;
    send.finish()?;
    assert_eq!(receive.read_to_end(64).await?, b"hello");
    println!("{} timers for two ends", Global.snapshot().ledger.accepted);

    let silent_from = Instant::now();
    let ended = connection.closed().await;
    println!("{ended} after {:?}", silent_from.elapsed());
    assert_eq!(ended, ConnectionError::TimedOut);
    serving.await??;
    Ok(())
}

fn endpoint(server: Option<ServerConfig>) -> io::Result<Endpoint> {
    let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(Tickwheel))
}

/// Sends the first request back, and waits for the end of its connection.
async fn serve(endpoint: Endpoint) -> io::Result<()> {
    let no_client = || io::Error::other("no client");
    let connection = endpoint.accept().await.ok_or_else(no_client)?.await?;
    let (mut send, mut receive) = connection.accept_bi().await?;
    let request = receive.read_to_end(64).await.map_err(io::Error::other)?;
    send.write_all(&request).await?;
    send.finish().map_err(io::Error::other)?;
    connection.closed().await;
    Ok(())
}

/// A certificate of the host `localhost`, for this example alone.
const CERTIFICATE: &[u8] = include_bytes!("quinn.crt.der");
const KEY: &[u8] = include_bytes!("quinn.key.der");

fn server_config() -> Result<ServerConfig, Box<dyn Error>> {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(KEY));
    let mut config = ServerConfig::with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)?;
    config.transport_config(idle_limit()?);
    Ok(config)
}

fn client_config() -> Result<ClientConfig, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(idle_limit()?);
    Ok(config)
}

fn idle_limit() -> Result<Arc<TransportConfig>, Box<dyn Error>> {
    let mut config = TransportConfig::default();
    config.max_idle_timeout(Some(SILENCE.try_into()?));
    Ok(Arc::new(config))
}
