//! The little HTTP that it takes to ask an etcd how it is.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
};

use super::ANSWER;

/// What is at this path.
pub(super) fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    talk(address, &format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n"))
}

/// The answer to this JSON.
pub(super) fn ask(address: SocketAddr, path: &str, body: &str) -> io::Result<String> {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n");
    talk(address, &format!("{head}{body}"))
}

fn talk(address: SocketAddr, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| io::Error::other("no answer"))?;
    if head.lines().next().is_some_and(|line| line.contains(" 200 ")) {
        Ok(body.to_owned())
    } else {
        Err(io::Error::other(format!("{head}\n{body}")))
    }
}
