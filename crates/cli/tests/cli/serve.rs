//! `serve` and `watch`: real processes, asked over a real socket.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Place, outcome, wait_until};

const TOKEN: &str = "SECRET-operator-token-of-the-test";

/// A process whose lines are read as they come; ended when it goes out of scope.
struct Talking {
    child: Child,
    lines: BufReader<Box<dyn Read + Send>>,
}

impl Talking {
    fn on_stderr(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let pipe: Box<dyn Read + Send> = Box::new(child.stderr.take().unwrap());
        Self { child, lines: BufReader::new(pipe) }
    }

    fn on_stdout(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let pipe: Box<dyn Read + Send> = Box::new(child.stdout.take().unwrap());
        Self { child, lines: BufReader::new(pipe) }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "it goes on talking");
        line.trim_end().to_owned()
    }

    fn stop(mut self, signal: Signal) -> i32 {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
        wait_until("the end of a process", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a server answers.
fn ask(address: &str, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: &str, path: &str, token: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{token}\r\n"))
}

fn post(address: &str, path: &str, token: &str, body: &str) -> String {
    let length = body.len();
    ask(
        address,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             X-Leasehold: 1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        ),
    )
}

fn address(line: &str) -> String {
    let (_, rest) = line.split_once("http://").unwrap_or_else(|| panic!("a URL: {line}"));
    rest.trim_end_matches('/').to_owned()
}

#[test]
fn serve_says_where_and_its_token_and_stops_in_order() {
    let place = Place::new();
    let mut server = Talking::on_stderr(&mut place.leasehold(&["serve", "--listen", "127.0.0.1:0"]));
    let address = address(&server.line());
    let line = server.line();
    let (_, token) = line.split_once("operator token for this run: ").unwrap_or_else(|| panic!("{line}"));
    assert!(get(&address, "/api/v1/locks", "").starts_with("HTTP/1.1 200"));
    assert!(get(&address, "/", "").contains("<!doctype html>"));
    let refused = post(&address, "/api/v1/locks/x/acquire", "a-token-of-nobody", "{}");
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let got = post(&address, "/api/v1/locks/x/acquire", token, r#"{"ttl":"60s"}"#);
    assert!(got.starts_with("HTTP/1.1 200"), "{got}");
    assert_eq!(place.show("x")["state"], "held", "the command line sees what HTTP took");
    assert_eq!(server.line_then_stop(Signal::SIGTERM), 0);
    assert!(TcpStream::connect(&address).is_err(), "nobody listens any more");
}

impl Talking {
    /// Stops it, and sees that it says so.
    fn line_then_stop(mut self, signal: Signal) -> i32 {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
        assert_eq!(self.line(), "leasehold: stopped");
        self.stop(signal)
    }
}

#[test]
fn of_one_address_there_are_only_so_many_connections() {
    let place = Place::new();
    let args = ["serve", "--listen", "127.0.0.1:0", "--max-connections", "9", "--max-per-address", "1"];
    let mut server = Talking::on_stderr(&mut place.leasehold(&args));
    let address = address(&server.line());
    // Whoever is turned away may be so in the middle of a word.
    let answer = |socket: &mut TcpStream, path: &str, bytes: u64| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        let _ = socket.write_all(request.as_bytes());
        let _ = socket.take(bytes).read_to_string(&mut answer);
        answer
    };
    let connect = || TcpStream::connect(&address).unwrap();
    let mut first = connect();
    assert_eq!(answer(&mut first, "/api/v1/events", 12), "HTTP/1.1 200", "a stream, which stays open");
    assert_eq!(answer(&mut connect(), "/healthz", 12), "");
    drop(first);
    wait_until("a place for another", || answer(&mut connect(), "/healthz", 12) == "HTTP/1.1 200");
}

#[test]
fn what_operators_do_is_logged_and_cannot_act_on_the_terminal() {
    let place = Place::new();
    let args = ["serve", "--listen", "127.0.0.1:0"];
    let mut server = Talking::on_stderr(place.leasehold(&args).env("RUST_LOG", "info"));
    let address = address(&server.line());
    let line = server.line();
    let (_, token) = line.split_once("operator token for this run: ").unwrap_or_else(|| panic!("{line}"));
    let body = "{\"reason\":\"full\",\"by\":\"anna\\u001b[2J\\u009b\\nx\"}";
    let paused = post(&address, "/api/v1/jobs/nightly/pause", token, body);
    assert!(paused.starts_with("HTTP/1.1 200"), "{paused}");
    let logged = server.line();
    for part in ["INFO", "nightly", "anna", "full", "a job was paused by an operator"] {
        assert!(logged.contains(part), "{part}: {logged:?}");
    }
    assert!(!logged.contains(char::is_control), "{logged:?}");
    assert_eq!(server.line_then_stop(Signal::SIGTERM), 0, "nothing else was said");
}

#[test]
fn a_log_that_nobody_reads_holds_nobody_up_and_makes_no_difference() {
    let place = Place::new();
    let run = |log: &str| {
        let (reader, gone) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = place.leasehold(&["run", "x", "--", "sh", "-c", "exit 7"]);
        command.env("RUST_LOG", log).stdout(Stdio::null()).stderr(gone).status().unwrap().code()
    };
    assert_eq!((run("trace"), run("off"), run("x=[y")), (Some(7), Some(7), Some(7)));
    let listed = outcome(place.leasehold(&["ls", "-o", "json"]).env("RUST_LOG", "trace"));
    assert_eq!((listed.code, listed.stdout.as_str()), (0, "[]\n"), "what is logged is on stderr");
    let odd = outcome(place.leasehold(&["ls"]).env("RUST_LOG", "x=[y"));
    assert!(odd.code == 0 && odd.stderr.contains("RUST_LOG makes no sense"), "{odd:?}");
}

#[test]
fn a_token_file_that_is_a_pipe_is_refused_and_not_waited_for() {
    let place = Place::new();
    let pipe = place.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let refused = place.run(&["serve", "--listen", "127.0.0.1:0", "--token-file", pipe.to_str().unwrap()]);
    assert!(refused.code == 78 && refused.stderr.contains("not a regular file"), "{refused:?}");
}

#[test]
fn serve_refuses_to_be_reached_by_others_unprotected() {
    let place = Place::new();
    let refused = place.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, 78, "{refused:?}");
    assert!(refused.stderr.contains("LEASEHOLD_TOKEN"), "{refused:?}");
    let open = outcome(place.leasehold(&["serve", "--listen", "0.0.0.0:0"]).env("LEASEHOLD_TOKEN", TOKEN));
    assert_eq!(open.code, 78, "a token in plain text is not enough: {open:?}");
    assert!(open.stderr.contains("--tls-cert") && !open.stderr.contains("SECRET"), "{open:?}");
    let short =
        outcome(place.leasehold(&["serve", "--listen", "127.0.0.1:0"]).env("LEASEHOLD_TOKEN", "SECRET"));
    assert_eq!(short.code, 78, "{short:?}");
    assert!(!short.stderr.contains("SECRET"), "{short:?}");
    let ipv6 = place.run(&["serve", "--listen", "[::]:0"]);
    assert_eq!(ipv6.code, 78, "{ipv6:?}");
}

#[test]
fn a_token_comes_from_a_file_that_only_its_owner_can_read() {
    let place = Place::new();
    let file = place.path("token");
    std::fs::write(&file, format!("{TOKEN}\nanything else\n")).unwrap();
    let serve = |file: &std::path::Path| {
        place.leasehold(&["serve", "--listen", "127.0.0.1:0", "--token-file", file.to_str().unwrap()])
    };
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let loose = outcome(&mut serve(&file));
    assert!(loose.code == 78 && loose.stderr.contains("chmod 600"), "{loose:?}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let link = place.path("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let planted = outcome(&mut serve(&link));
    assert!(planted.code == 78 && !planted.stderr.contains("SECRET"), "{planted:?}");
    let both = outcome(serve(&file).env("LEASEHOLD_TOKEN", TOKEN));
    assert!(both.code == 78 && !both.stderr.contains("SECRET"), "{both:?}");

    let mut server = Talking::on_stderr(&mut serve(&file));
    let address = address(&server.line());
    assert!(get(&address, "/api/v1/locks", "").starts_with("HTTP/1.1 401"));
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    assert!(get(&address, "/api/v1/locks", &token).starts_with("HTTP/1.1 200"));
    let words = std::fs::read(format!("/proc/{}/cmdline", server.child.id())).unwrap();
    assert!(!String::from_utf8_lossy(&words).contains("SECRET"), "others can read command lines");
    assert_eq!(server.line_then_stop(Signal::SIGINT), 0);
}

#[test]
fn watch_tells_what_stands_and_then_what_happens() {
    let place = Place::new();
    assert_eq!(place.run(&["acquire", "order:1", "--label", "\u{1b}[31mred"]).code, 0);
    let args = ["watch", "order:", "--every", "50ms", "-o", "json"];
    let mut watch = Talking::on_stdout(&mut place.leasehold(&args));
    let mut next = || -> serde_json::Value { serde_json::from_str(&watch.line()).unwrap() };
    let first = next();
    assert_eq!((&first["what"], &first["name"]), (&"acquired".into(), &"order:1".into()));
    let id = first["id"].as_str().unwrap();
    assert_eq!(place.run(&["acquire", "other"]).code, 0);
    let broken = place.run(&["break", "order:1", "--id", id, "--reason", "enough", "--yes"]);
    assert_eq!(broken.code, 0, "{broken:?}");
    let ended = next();
    assert_eq!((&ended["what"], &ended["id"]), (&"ended".into(), &id.into()));
    let how = ended["how"].as_str().unwrap();
    assert!(
        how == "broken" || how == "released",
        "a look between the break and its entry sees no reason: {how}"
    );
    assert_eq!(watch.stop(Signal::SIGINT), 0);
}

#[test]
fn watch_shows_hostile_names_as_text() {
    let place = Place::new();
    assert_eq!(place.run(&["acquire", "<img src=x onerror=alert(1)>", "--label", "a\u{202e}b"]).code, 0);
    let mut watch = Talking::on_stdout(&mut place.leasehold(&["watch"]));
    let line = watch.line();
    assert!(line.contains("<img src=x onerror=alert(1)>") && line.contains("acquired"), "{line}");
    assert!(!line.contains('\u{202e}') && line.contains("\\u{202e}"), "{line:?}");
    assert_eq!(watch.stop(Signal::SIGTERM), 0);
}
