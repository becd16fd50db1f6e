//! What is told as it happens, to one and to many, and how it ends.

use leasehold_console::{Access, Limits};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

use crate::client::{LIMIT, OPERATOR, Served};

/// One who listens.
struct Listener(BufReader<TcpStream>);

impl Listener {
    async fn start(served: &Served, query: &str) -> Self {
        let mut socket = TcpStream::connect(served.address).await.unwrap();
        let request = format!(
            "GET /api/v1/events{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {OPERATOR}\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        Self(BufReader::new(socket))
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(LIMIT, self.0.read_line(&mut line)).await.expect("a line in time");
        (read.unwrap_or(0) > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event; `None` when the stream is over.
    async fn next(&mut self) -> Option<(String, Value)> {
        let mut event = String::new();
        loop {
            let line = self.line().await?;
            if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut event);
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((event, serde_json::from_str(data).unwrap()));
            }
        }
    }

    /// The next change.
    async fn change(&mut self) -> Value {
        loop {
            let (event, data) = self.next().await.expect("the stream goes on");
            if event == "change" {
                return data;
            }
        }
    }
}

#[tokio::test]
async fn a_stream_tells_what_happens_to_a_lock() {
    let served = Served::start().await;
    let mut listener = Listener::start(&served, "?prefix=order:").await;
    let (event, hello) = listener.next().await.unwrap();
    assert_eq!((&*event, &hello["every_ms"]), ("hello", &1000.into()));
    let (event, overview) = listener.next().await.unwrap();
    assert_eq!(
        (&*event, &overview["up"]),
        ("overview", &true.into()),
        "it has looked, so changes are seen from here"
    );

    let _unwanted = served.client.lock("other").acquire().await.unwrap();
    let guard = served.client.lock("order:1").label("\u{202e}<b>").acquire().await.unwrap();
    let change = listener.change().await;
    assert_eq!((&change["what"], &change["name"]), (&"acquired".into(), &"order:1".into()));
    assert_eq!(
        (&change["holder"]["label"], &change["lock"]["state"]),
        (&"\u{202e}<b>".into(), &"held".into())
    );

    let lock = served.client.lock("order:1");
    let (waiting, change) = (lock.acquire(), async {
        let change = listener.change().await;
        let id = guard.id();
        let _broken = served.client.break_hold("order:1", id, "enough").await.unwrap();
        (change, id)
    });
    let (next, (change, id)) = tokio::join!(waiting, change);
    assert_eq!(change["what"], "waiting");
    let next = next.unwrap();
    let change = listener.change().await;
    assert_eq!(
        (&change["what"], &change["how"], &change["why"]),
        (&"ended".into(), &"broken".into(), &"enough".into())
    );
    assert_eq!(change["id"], id.to_string());
    assert_eq!(listener.change().await["what"], "left");
    assert_eq!(listener.change().await["what"], "acquired");
    next.release().await.unwrap();
    let change = listener.change().await;
    assert_eq!(
        (&change["what"], &change["how"], &change["lock"]),
        (&"ended".into(), &"released".into(), &Value::Null)
    );
}

#[tokio::test]
async fn there_are_only_so_many_streams() {
    let access = Access::with_tokens(Some(OPERATOR), None).unwrap();
    let served = Served::with(access, |builder| builder.max_streams(2)).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut listener = Listener::start(&served, "").await;
        listener.next().await.unwrap();
        open.push(listener);
    }
    let refused = served.get("/api/v1/events").await;
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (429, true));
    open.pop();
    let mut again = loop {
        let mut listener = Listener::start(&served, "").await;
        if listener.line().await.unwrap().contains("200") {
            break listener;
        }
    };
    assert_eq!(again.next().await.unwrap().0, "hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams_hear_of_one_lock() {
    let access = Access::with_tokens(Some(OPERATOR), None).unwrap();
    let served = Served::with(access, |builder| builder).await;
    let mut listeners = Vec::new();
    for _ in 0..1000 {
        listeners.push(Listener::start(&served, "").await);
    }
    for listener in &mut listeners {
        assert_eq!(listener.next().await.unwrap().0, "hello");
        assert_eq!(listener.next().await.unwrap().0, "overview");
    }
    assert_eq!(served.get("/api/v1/overview").await.json()["server"]["streams"], 1000);
    let _guard = served.client.lock("x").acquire().await.unwrap();
    for listener in &mut listeners {
        assert_eq!(listener.change().await["name"], "x");
    }
}

#[tokio::test]
async fn a_stop_ends_streams_and_waits_in_order() {
    let mut limits = Limits::default();
    limits.goodbye = LIMIT;
    let access = Access::with_tokens(Some(OPERATOR), None).unwrap();
    let served = Served::limited(access, |builder| builder, limits).await;
    let mut listener = Listener::start(&served, "").await;
    listener.next().await.unwrap();
    let _guard = served.client.lock("x").acquire().await.unwrap();
    let client = served.client.clone();
    let waiting = async {
        let answer = served.post("/api/v1/locks/x/acquire", r#"{"wait":"60s"}"#).await;
        (answer.status, answer.json()["kind"].clone())
    };
    let waits = async {
        while client.stats().waiting == 0 {
            tokio::task::yield_now().await;
        }
    };
    let ((status, kind), ()) = tokio::join!(waiting, async {
        tokio::time::timeout(LIMIT, waits).await.expect("the request waits");
        served.ask_to_stop();
    });
    assert_eq!((status, kind), (503, "closed".into()));
    while listener.next().await.is_some() {}
    served.stop().await;
}
