//! An HTTP server that answers as told and counts what it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What to answer.
pub struct Reply {
    head: String,
    body: String,
}

impl Reply {
    pub fn new(status: u16, body: impl Into<String>) -> Self {
        Self { head: format!("HTTP/1.1 {status} Status\r\nconnection: close\r\n"), body: body.into() }
    }

    pub fn header(mut self, line: &str) -> Self {
        self.head += &format!("{line}\r\n");
        self
    }

    /// No answer at all: the connection breaks once the request is read.
    pub fn hang_up() -> Self {
        Self { head: String::new(), body: String::new() }
    }
}

type Script = dyn Fn(&str) -> Reply + Send + Sync;

pub struct Server {
    pub endpoint: String,
    actions: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves what the script answers to each action of a query API.
    pub async fn start(script: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let actions = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(serve(listener, Arc::new(script), actions.clone()));
        Self { endpoint, actions, task }
    }

    /// How often an action was asked for.
    pub fn count(&self, action: &str) -> usize {
        self.actions.lock().unwrap().iter().filter(|seen| *seen == action).count()
    }

    /// Closes the port.
    pub async fn stop(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

async fn serve(listener: TcpListener, script: Arc<Script>, actions: Arc<Mutex<Vec<String>>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        // A pooled connection that is opened and never used sends nothing.
        let Some(body) = read(&mut stream).await else {
            continue;
        };
        let action = body.split('&').find_map(|pair| pair.strip_prefix("Action=")).unwrap_or_default();
        actions.lock().unwrap().push(action.to_owned());
        let reply = script(action);
        if reply.head.is_empty() {
            continue;
        }
        let length = reply.body.len();
        let text = format!("{}content-length: {length}\r\n\r\n{}", reply.head, reply.body);
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    String::from_utf8(body).ok()
}
