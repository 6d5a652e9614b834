// SPDX-License-Identifier: GPL-2.0-only
//! Serves metrics over HTTP: `/metrics`, and nothing else. Each scrape asks for a fresh snapshot.
//!
//! A client that connects and says nothing cannot keep others from theirs: when there are too many connections the
//! oldest is closed, and none lasts for longer than a scrape may take.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderName};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use log::{info, warn};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::metrics;
use crate::node::privileges;
use crate::scheduler::requests::Owner;
use crate::settings::limits::MetricsListen;

/// Scrapes that wait for a snapshot at the same time. More wait in line, for as long as their clients do.
const SCRAPES_MAX: usize = 2;
/// Connections at the same time. Each takes a file descriptor, of which a process may have 1,024 if nobody says more.
const CONNECTIONS_MAX: usize = 256;
/// In which a client has to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// In which it has to have taken the answer. The snapshot may be 10 s in coming.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait if there is no file descriptor for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Of what people read.
const PLAIN: (HeaderName, &str) = (CONTENT_TYPE, "text/plain; charset=utf-8");

/// An address that is ours, on which nobody is served yet.
pub struct Exporter(Option<TcpListener>);

impl Exporter {
    /// Takes the address, so that a port in use is noticed before anything is loaded.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub fn bind(listen: MetricsListen) -> Result<Exporter> {
        let MetricsListen::At(address) = listen else { return Ok(Exporter(None)) };
        let listener = TcpListener::bind(address).map_err(|e| {
            anyhow!("cannot serve metrics at {address}: {e} (choose another --metrics-listen, or 'none')")
        })?;
        listener.set_nonblocking(true).context("cannot serve metrics")?;
        Ok(Exporter(Some(listener)))
    }

    /// Where it listens, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves on a thread of its own, for as long as the process lives.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn serve(self, owner: Owner) -> Result<()> {
        let Some(address) = self.address() else { return Ok(()) };
        let Exporter(Some(listener)) = self else { return Ok(()) };
        if !address.ip().is_loopback() {
            warn!("metrics are open to everybody who can reach {address}");
        }
        let serve = move || {
            if let Err(error) = serve_forever(listener, owner) {
                warn!("metrics are no longer served: {error:#}");
            }
        };
        privileges::thread("metrics", 0, serve)?;
        info!("metrics at http://{address}/metrics");
        Ok(())
    }
}

fn serve_forever(listener: TcpListener, owner: Owner) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        accept_forever(&listener, &Source { owner, line: Arc::new(Semaphore::new(SCRAPES_MAX)) }).await;
        Ok(())
    })
}

/// Where scrapes have their snapshots from.
#[derive(Clone)]
struct Source {
    owner: Owner,
    /// A client that leaves it is forgotten. Tokio's own line of blocking work would keep what nobody waits for.
    line: Arc<Semaphore>,
}

async fn accept_forever(listener: &tokio::net::TcpListener, source: &Source) {
    let mut connections: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!("a client that wants metrics has to wait: {error}");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        connections.retain(|connection| !connection.is_finished());
        if connections.len() == CONNECTIONS_MAX
            && let Some(oldest) = connections.pop_front()
        {
            oldest.abort();
        }
        connections.push_back(tokio::spawn(answer_one(stream, source.clone())).abort_handle());
    }
}

/// Answers one request. What becomes of a client that goes away meanwhile is of no interest.
async fn answer_one(stream: TcpStream, source: Source) {
    let service = service_fn(move |request| {
        let source = source.clone();
        async move { Ok::<_, Infallible>(answer(&request, source).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT).keep_alive(false);
    let _ = timeout(CONNECTION_TIMEOUT, http.serve_connection(TokioIo::new(stream), service)).await;
}

async fn answer(request: &Request<Incoming>, source: Source) -> Response<String> {
    match (request.uri().path(), request.method()) {
        ("/metrics", &Method::GET | &Method::HEAD) => scrape(source, request.headers()).await,
        ("/metrics", _) => response(StatusCode::METHOD_NOT_ALLOWED, (ALLOW, "GET, HEAD"), String::new()),
        _ => response(StatusCode::NOT_FOUND, PLAIN, "metrics are at /metrics\n".into()),
    }
}

fn response(status: StatusCode, (name, value): (HeaderName, &'static str), text: String) -> Response<String> {
    let built = Response::builder().status(status).header(name, value).body(text);
    built.expect("a constant header is valid")
}

async fn scrape(Source { owner, line }: Source, headers: &HeaderMap) -> Response<String> {
    let wants_openmetrics = headers
        .get_all(ACCEPT)
        .iter()
        .any(|accept| accept.to_str().is_ok_and(|accept| accept.contains("application/openmetrics-text")));
    let place = line.acquire_owned().await.expect("the line is never closed");
    let answer = tokio::task::spawn_blocking(move || {
        let _until_it_is_done = place;
        let snapshot = owner.snapshot()?;
        Ok::<_, anyhow::Error>(match wants_openmetrics {
            true => (metrics::OPENMETRICS_TYPE, metrics::openmetrics(&snapshot)),
            false => (metrics::PROMETHEUS_TYPE, metrics::prometheus_text(&snapshot)),
        })
    });
    match answer.await {
        Ok(Ok((kind, text))) => response(StatusCode::OK, (CONTENT_TYPE, kind), text),
        Ok(Err(error)) => response(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("{error:#}\n")),
        Err(_) => response(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, String::new()),
    }
}
