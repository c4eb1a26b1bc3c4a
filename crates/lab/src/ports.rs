//! Free loopback ports.

use std::net::TcpListener;

use anyhow::Result;

/// `N` ports that nothing listened on a moment ago. Another process may be quicker to take one:
/// whoever starts a server on it retries with new ones.
pub(crate) fn free<const N: usize>() -> Result<[u16; N]> {
    // All held at once, so that they differ.
    let held = (0..N).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<std::io::Result<Vec<_>>>()?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}
