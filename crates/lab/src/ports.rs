//! Free loopback ports.

use std::net::TcpListener;
use std::ops::Range;

use anyhow::{Result, ensure};

/// Below the range from which the kernel gives ports to clients: those come and go by the thousand,
/// and one of them would sit on a server's port before it starts.
const RANGE: Range<u16> = 10_000..30_000;
const TRIES: usize = 1000;

/// `N` ports that nothing listened on a moment ago. Another process may be quicker to take one:
/// whoever starts a server on it retries with new ones.
pub(crate) fn free<const N: usize>() -> Result<[u16; N]> {
    // All held at once, so that they differ.
    let tries = std::iter::repeat_with(|| rand::random_range(RANGE)).take(TRIES);
    let held = tries.filter_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()).take(N);
    let held: Vec<_> = held.collect();
    ensure!(held.len() == N, "no free ports between {} and {}", RANGE.start, RANGE.end);
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}
