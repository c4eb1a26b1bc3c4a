//! What both proxies share: the listener, the way to the upstream, the hook and the log.

use std::convert::Infallible;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, header};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The request has arrived and nothing has been forwarded.
    Before,
    /// The upstream has answered: the effect is there, the answer has not been sent on.
    After,
}

/// What a hook wants done with the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Continue,
    /// Close the caller's connection without an answer.
    Drop,
}

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("connection cut")]
pub(crate) struct Cut;

pub(crate) type Body = UnsyncBoxBody<Bytes, hyper::Error>;
pub(crate) type Reply = Result<Response<Body>, Cut>;

/// A body that is at hand as a whole.
pub(crate) fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// What answers the requests that a [`Listener`] takes.
pub(crate) trait Serve: Send + Sync + 'static {
    fn serve(self: Arc<Self>, request: Request<Incoming>) -> impl Future<Output = Reply> + Send;
}

/// A plain HTTP/1.1 server on a free loopback port, with a runtime of its own.
pub(crate) struct Listener {
    pub address: SocketAddr,
    cut: watch::Sender<bool>,
    runtime: Option<Runtime>,
}

impl Listener {
    pub fn start<S: Serve>(service: Arc<S>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("lab-proxy")
            .enable_all()
            .build()
            .expect("a runtime for the proxy");
        let socket = TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        socket.set_nonblocking(true).expect("a non-blocking socket");
        let address = socket.local_addr().expect("a bound address");
        let (cut, cuts) = watch::channel(false);
        runtime.spawn(async move {
            let socket = tokio::net::TcpListener::from_std(socket).expect("a tokio listener");
            accept(socket, service, cuts).await;
        });
        Self { address, cut, runtime: Some(runtime) }
    }

    /// Closes every connection and refuses new ones, or takes them again.
    pub fn set_cut(&self, cut: bool) {
        self.cut.send_replace(cut);
    }

    /// Takes connections again after a while.
    pub fn cut_for(&self, time: std::time::Duration) {
        self.set_cut(true);
        let cut = self.cut.clone();
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                tokio::time::sleep(time).await;
                cut.send_replace(false);
            });
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // A plain drop would wait for the threads, which a caller inside a runtime may not.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept<S: Serve>(socket: tokio::net::TcpListener, service: Arc<S>, cuts: watch::Receiver<bool>) {
    while let Ok((stream, _)) = socket.accept().await {
        if *cuts.borrow() {
            continue;
        }
        // Without this the last chunk of a watch waits for the reader's acknowledgement.
        let _ = stream.set_nodelay(true);
        let service = service.clone();
        let mut cuts = cuts.clone();
        tokio::spawn(async move {
            let serve = service_fn(move |request| service.clone().serve(request));
            let connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), serve);
            tokio::select! {
                _ = connection => {}
                _ = cuts.wait_for(|cut| *cut) => {}
            }
        });
    }
}

/// The way to what stands behind the proxy.
pub(crate) struct Upstream {
    base: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Upstream {
    /// `base` is `http://…` or `https://…`; `ca` the PEM certificates trusted for the latter.
    pub fn new(base: &str, ca: &[u8]) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca) {
            roots.add(certificate.expect("a PEM certificate")).expect("a usable certificate");
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        // A kept connection that the upstream has closed meanwhile would look like a fault.
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .retry_canceled_requests(false)
            .build(connector);
        Self { base: base.trim_end_matches('/').to_owned(), client }
    }

    /// Sends a request on. The caller's `Host` is kept: it is signed, and names buckets.
    pub async fn send(&self, parts: &http::request::Parts, body: Bytes) -> Result<Response<Incoming>, Cut> {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder()
            .method(parts.method.clone())
            .uri(format!("{}{path}", self.base))
            .body(Full::new(body))
            .map_err(|_| Cut)?;
        *request.headers_mut() = end_to_end(&parts.headers);
        self.client.request(request).await.map_err(|_| Cut)
    }
}

/// The headers that are not about one connection, nor about the length of the old body.
pub(crate) fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    for name in [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::CONTENT_LENGTH,
        header::EXPECT,
        header::TE,
        header::TRAILER,
        header::UPGRADE,
    ] {
        kept.remove(name);
    }
    kept.remove("keep-alive");
    kept
}

type HookFn<T> = dyn Fn(Stage, T) -> Pin<Box<dyn Future<Output = Verdict> + Send>> + Send + Sync;

/// The test's say at both stages of each call.
pub(crate) struct Hook<T>(Mutex<Option<Arc<HookFn<T>>>>);

impl<T> Default for Hook<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Hook<T> {
    pub fn set<F, Fut>(&self, hook: F)
    where
        F: Fn(Stage, T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Verdict> + Send + 'static,
    {
        *self.0.lock() = Some(Arc::new(move |stage, call| Box::pin(hook(stage, call))));
    }

    pub fn clear(&self) {
        *self.0.lock() = None;
    }

    pub async fn ask(&self, stage: Stage, call: impl FnOnce() -> Option<T>) -> Result<(), Cut> {
        let Some(hook) = self.0.lock().clone() else {
            return Ok(());
        };
        let Some(call) = call() else { return Ok(()) };
        match hook(stage, call).await {
            Verdict::Continue => Ok(()),
            Verdict::Drop => Err(Cut),
        }
    }
}

/// What has passed, in order of arrival. Numbers go on rising when it is cleared.
pub(crate) struct Log<T>(Mutex<Entries<T>>);

struct Entries<T> {
    first: u64,
    entries: Vec<T>,
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self(Mutex::new(Entries { first: 0, entries: Vec::new() }))
    }
}

impl<T: Clone> Log<T> {
    /// Adds what `entry` makes of its number, and gives the number.
    pub fn push(&self, entry: impl FnOnce(u64) -> T) -> u64 {
        let mut log = self.0.lock();
        let seq = log.first + log.entries.len() as u64;
        log.entries.push(entry(seq));
        seq
    }

    pub fn edit(&self, seq: u64, change: impl FnOnce(&mut T)) {
        let mut log = self.0.lock();
        let at = seq.checked_sub(log.first);
        if let Some(entry) = at.and_then(|at| log.entries.get_mut(at as usize)) {
            change(entry);
        }
    }

    pub fn get(&self, seq: u64) -> Option<T> {
        self.since(seq).into_iter().next()
    }

    pub fn since(&self, mark: u64) -> Vec<T> {
        let log = self.0.lock();
        let skip = mark.saturating_sub(log.first) as usize;
        log.entries.iter().skip(skip).cloned().collect()
    }

    pub fn mark(&self) -> u64 {
        let log = self.0.lock();
        log.first + log.entries.len() as u64
    }

    pub fn clear(&self) {
        let mut log = self.0.lock();
        log.first += log.entries.len() as u64;
        log.entries.clear();
    }
}
