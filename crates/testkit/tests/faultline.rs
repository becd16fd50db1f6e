//! The proxy breaks what it is told to, where it is told to, and nothing else.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::Duration,
};

use leasehold_testkit::faultline::{Faultline, Speech};

/// A server that counts what it is asked and answers each request with its number, and says so to the test.
fn server() -> (std::net::SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (address, (told, tells)) = (listener.local_addr().unwrap(), mpsc::channel());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (mut connection, told) = (connection.unwrap(), told.clone());
            std::thread::spawn(move || -> io::Result<()> {
                let (mut kept, mut count) = (Vec::new(), 0);
                let mut piece = [0; 1000];
                loop {
                    let length = connection.read(&mut piece)?;
                    if length == 0 {
                        return Ok(());
                    }
                    kept.extend_from_slice(&piece[..length]);
                    while let Some(end) = kept.windows(2).position(|pair| pair == b"\r\n") {
                        let line: Vec<u8> = kept.drain(..end + 2).collect();
                        count += 1;
                        drop(told.send(String::from_utf8_lossy(&line[1..end]).into_owned()));
                        connection.write_all(format!(":{count}\r\n").as_bytes())?;
                    }
                }
            });
        }
    });
    (address, tells)
}

fn ask(connection: &mut TcpStream, words: &[&str]) -> io::Result<String> {
    let text = format!("+{}\r\n", words.join("\r\n+"));
    connection.write_all(text.as_bytes())?;
    let mut answer = [0; 100];
    let length = connection.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

fn told(tells: &mpsc::Receiver<String>) -> String {
    tells.recv_timeout(Duration::from_secs(60)).unwrap()
}

#[test]
fn what_is_not_broken_arrives_unchanged() {
    let (address, tells) = server();
    let line = Faultline::before(address, Speech::Resp).unwrap();
    let mut client = TcpStream::connect(line.address()).unwrap();
    assert_eq!(ask(&mut client, &["a"]).unwrap(), ":1\r\n");
    assert_eq!(ask(&mut client, &["b"]).unwrap(), ":2\r\n");
    assert_eq!((told(&tells), told(&tells)), ("a".to_owned(), "b".to_owned()));
    assert_eq!(line.connections(), 1);
}

#[test]
fn a_swallowed_answer_was_carried_out_and_those_before_it_arrive() {
    let (address, tells) = server();
    let line = Faultline::before(address, Speech::Resp).unwrap();
    let hit = line.swallow_reply(b"lost", 1);
    let mut client = TcpStream::connect(line.address()).unwrap();
    assert_eq!(ask(&mut client, &["a"]).unwrap(), ":1\r\n");
    let error = ask(&mut client, &["b", "lost", "never"]);
    // The answer to `b` may come first; after it there is a reset and nothing else.
    let error = error.and_then(|answer| {
        assert_eq!(answer, ":2\r\n");
        client.read(&mut [0; 10])
    });
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(hit.times(), 1);
    assert_eq!([told(&tells), told(&tells), told(&tells)], ["a", "b", "lost"]);
    let mut again = TcpStream::connect(line.address()).unwrap();
    assert_eq!(ask(&mut again, &["lost"]).unwrap(), ":1\r\n");
    assert_eq!(told(&tells), "lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_request_arrives_when_it_is_let_go_though_the_client_is_gone() {
    let (address, tells) = server();
    let line = Faultline::before(address, Speech::Resp).unwrap();
    let held = line.hold_request(b"late");
    let mut client = TcpStream::connect(line.address()).unwrap();
    client.write_all(b"+late\r\n+later\r\n").unwrap();
    held.caught().await;
    drop(client);
    let mut other = TcpStream::connect(line.address()).unwrap();
    assert_eq!(ask(&mut other, &["now"]).unwrap(), ":1\r\n");
    assert_eq!(told(&tells), "now");
    held.deliver();
    assert_eq!([told(&tells), told(&tells)], ["late", "later"]);
}

#[test]
fn a_cut_resets_what_is_open_and_a_refusal_what_is_new() {
    let (address, _tells) = server();
    let line = Faultline::before(address, Speech::Resp).unwrap();
    let mut client = TcpStream::connect(line.address()).unwrap();
    assert_eq!(ask(&mut client, &["a"]).unwrap(), ":1\r\n");
    line.cut();
    assert_eq!(client.read(&mut [0; 10]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    line.refuse(true);
    let refused = TcpStream::connect(line.address()).and_then(|mut client| ask(&mut client, &["a"]));
    assert!(refused.is_err(), "{refused:?}");
    line.refuse(false);
    let mut client = TcpStream::connect(line.address()).unwrap();
    assert_eq!(ask(&mut client, &["a"]).unwrap(), ":1\r\n");
}

#[test]
fn a_stall_keeps_everything_and_loses_nothing() {
    let (address, tells) = server();
    let line = Faultline::before(address, Speech::Resp).unwrap();
    let mut client = TcpStream::connect(line.address()).unwrap();
    assert_eq!(ask(&mut client, &["a"]).unwrap(), ":1\r\n");
    line.stall(true);
    client.write_all(b"+b\r\n").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let silence = client.read(&mut [0; 10]).unwrap_err().kind();
    assert!(matches!(silence, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{silence}");
    assert_eq!(told(&tells), "a");
    assert!(tells.try_recv().is_err());
    line.stall(false);
    client.set_read_timeout(None).unwrap();
    let mut answer = [0; 10];
    let length = client.read(&mut answer).unwrap();
    assert_eq!(&answer[..length], b":2\r\n");
}

#[test]
fn after_a_half_close_requests_still_arrive() {
    let (address, tells) = server();
    let line = Faultline::before(address, Speech::Resp).unwrap();
    let mut client = TcpStream::connect(line.address()).unwrap();
    assert_eq!(ask(&mut client, &["a"]).unwrap(), ":1\r\n");
    line.half_close();
    assert_eq!(client.read(&mut [0; 10]).unwrap(), 0);
    client.write_all(b"+b\r\n").unwrap();
    assert_eq!((told(&tells), told(&tells)), ("a".to_owned(), "b".to_owned()));
}

#[test]
fn a_connection_that_was_silenced_stays_open_and_silent_while_new_ones_work() {
    let (address, tells) = server();
    let line = Faultline::before(address, Speech::Resp).unwrap();
    let mut silenced = TcpStream::connect(line.address()).unwrap();
    assert_eq!(ask(&mut silenced, &["a"]).unwrap(), ":1\r\n");
    line.silence();
    let mut fresh = TcpStream::connect(line.address()).unwrap();
    assert_eq!(ask(&mut fresh, &["b"]).unwrap(), ":1\r\n");
    silenced.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let silence = ask(&mut silenced, &["c"]).unwrap_err();
    assert_eq!(silence.kind(), io::ErrorKind::WouldBlock, "neither an answer nor an end: {silence}");
    assert_eq!((told(&tells), told(&tells)), ("a".to_owned(), "b".to_owned()));
    assert!(tells.try_recv().is_err(), "the server never heard of the third");
}
