//! `serve`: the HTTP API and the page, until it is told to stop.
//!
//! It listens to this machine only, unless there is a token and TLS, or somebody says outright that something else
//! takes care of that. Tokens come from a file or a variable, never from the command line: others can read that.

use std::{
    fs::OpenOptions,
    io::Read,
    net::SocketAddr,
    num::NonZeroU32,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use leasehold::Client;
use leasehold_console::{Access, Console, Limits, Server, Tls};
use tokio::signal::unix::{SignalKind, signal};

use super::close;
use crate::{
    config::{Settings, variable},
    exit::{Exit, Failure},
    print::{self, Volume},
};

/// The longest token file that makes sense.
const LONGEST: u64 = 4096;

/// Serve the HTTP API and the management page
///
/// Shows who holds what, who waits, and lets an operator take a stuck lock away; other programs can lock over HTTP. It
/// listens to this machine only unless there is a token and TLS. Without a token whoever reaches it may look; to change
/// anything takes the token that is printed once at the start.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// Where to listen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,

    /// The operator's token is the first line of this file [env: LEASEHOLD_TOKEN is the token itself]
    #[arg(long, value_name = "F")]
    token_file: Option<PathBuf>,

    /// The token of those who may look and change nothing [env: LEASEHOLD_VIEWER_TOKEN is the token itself]
    #[arg(long, value_name = "F")]
    viewer_token_file: Option<PathBuf>,

    /// The certificate chain, as PEM
    #[arg(long, value_name = "F", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The certificate's key, as PEM
    #[arg(long, value_name = "F", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Listen beyond this machine without TLS: something before us takes care of that
    #[arg(long)]
    allow_plaintext: bool,

    /// Another name by which the server is reached; give it once for each name
    #[arg(long, value_parser = host_name, value_name = "HOST")]
    allow_host: Vec<String>,

    /// The most event streams at a time
    #[arg(long, value_name = "N", default_value_t = 1024)]
    max_streams: usize,

    /// The most connections at a time; every stream is one
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections)]
    max_connections: usize,

    /// The most connections of one address at a time; behind a proxy all have the same
    #[arg(long, value_name = "N", default_value_t = Limits::default().per_peer)]
    max_per_address: usize,

    /// The most requests a second of one token, and of one address that sends none; a stream is one
    #[arg(long, value_name = "N", default_value = "2000")]
    max_rate: NonZeroU32,

    /// Serve the page from this folder, for work on the page
    #[arg(long, value_name = "DIR", hide = true)]
    page: Option<PathBuf>,
}

const AFTER: &str = "\
Examples:
  leasehold serve
  LEASEHOLD_TOKEN=$(openssl rand -hex 32) leasehold serve --listen 0.0.0.0:7878 \\
      --tls-cert cert.pem --tls-key key.pem --allow-host locks.example.com
  curl -H \"Authorization: Bearer $TOKEN\" -H 'X-Leasehold: 1' -H 'Content-Type: application/json' \\
      -d '{\"ttl\":\"60s\",\"wait\":\"10s\"}' http://127.0.0.1:7878/api/v1/locks/deploy/acquire";

/// The tokens, if there are any.
struct Tokens {
    operator: Option<String>,
    viewer: Option<String>,
}

/// Serves until a signal comes.
pub(crate) fn run(args: &Args, settings: &Settings, volume: Volume) -> Result<Exit, Failure> {
    let tokens = Tokens::find(args)?;
    tokens.suffice(args)?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificates), Some(key)) => {
            warn_if_others_can_read(key);
            Some(Tls::load(certificates, key).map_err(Failure::config)?)
        }
        _ => None,
    };
    // Many connections at a time: one thread is not enough here.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal("cannot start", error))?;
    let ended = runtime.block_on(async {
        let client = settings.connect().await?;
        let served = serve(args, tokens, tls, &client, volume).await;
        close(&client).await;
        served
    });
    runtime.shutdown_background();
    ended
}

async fn serve(
    args: &Args,
    tokens: Tokens,
    tls: Option<Tls>,
    client: &Client,
    volume: Volume,
) -> Result<Exit, Failure> {
    let (access, made) = tokens.access()?;
    let mut builder =
        Console::builder(client.clone(), access).max_streams(args.max_streams).max_rate(args.max_rate);
    builder = args.allow_host.iter().fold(builder, |builder, host| builder.host(host));
    if let Some(folder) = &args.page {
        builder = builder.page(folder.clone());
    }
    let refused =
        |error| Failure::new(Exit::Unavailable, format!("cannot listen on {}: {error}", args.listen));
    let mut server = Server::bind(args.listen).await.map_err(refused)?.limits(args.limits());
    let address = server.address().map_err(refused)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    if let Some(tls) = tls {
        server = server.tls(tls);
    }
    let asked = stop()?;
    print::note(volume, Volume::Normal, &format!("serving on {scheme}://{address}/"));
    if let Some(token) = made {
        // Said at any volume: it is said once, and nothing can be changed without it.
        print::note(Volume::Normal, Volume::Normal, &format!("operator token for this run: {token}"));
    }
    server.run(builder.build(), asked).await;
    print::note(volume, Volume::Normal, "stopped");
    Ok(Exit::Success)
}

impl Args {
    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        (limits.connections, limits.per_peer) = (self.max_connections, self.max_per_address);
        limits
    }
}

/// Completes when somebody wants us to stop. Armed at once, so that no signal comes too early.
fn stop() -> Result<impl Future<Output = ()>, Failure> {
    let arm = |kind| signal(kind).map_err(|error| Failure::internal("cannot listen for signals", error));
    let (mut terminate, mut interrupt) = (arm(SignalKind::terminate())?, arm(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

impl Tokens {
    fn find(args: &Args) -> Result<Self, Failure> {
        let operator = token(args.token_file.as_deref(), "--token-file", "LEASEHOLD_TOKEN")?;
        let viewer =
            token(args.viewer_token_file.as_deref(), "--viewer-token-file", "LEASEHOLD_VIEWER_TOKEN")?;
        Ok(Self { operator, viewer })
    }

    /// Refuses to be reached from elsewhere without what that takes.
    fn suffice(&self, args: &Args) -> Result<(), Failure> {
        if args.listen.ip().is_loopback() {
            return Ok(());
        }
        let others = format!("{} can be reached by others", args.listen);
        if self.operator.is_none() && self.viewer.is_none() {
            return Err(Failure::config(format!(
                "{others}: set a token by LEASEHOLD_TOKEN or --token-file, or listen on 127.0.0.1"
            )));
        }
        if args.tls_cert.is_none() && !args.allow_plaintext {
            return Err(Failure::config(format!(
                "{others}, who could read the tokens: give --tls-cert and --tls-key, or say --allow-plaintext if something before us speaks TLS"
            )));
        }
        Ok(())
    }

    /// Who may do what, and the token that was made for want of one.
    fn access(&self) -> Result<(Access, Option<String>), Failure> {
        if self.operator.is_none() && self.viewer.is_none() {
            let (access, token) = Access::open();
            return Ok((access, Some(token)));
        }
        let access = Access::with_tokens(self.operator.as_deref(), self.viewer.as_deref());
        access.map(|access| (access, None)).map_err(Failure::config)
    }
}

/// A name as a request's `Host` has it, without the port: with one it would never be asked for.
fn host_name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if !text.is_empty() && text.bytes().all(fits) {
        return Ok(text.to_owned());
    }
    Err("give the name alone, without scheme or port, like locks.example.com".to_owned())
}

/// A token from a file or a variable, not from both.
fn token(file: Option<&Path>, option: &str, named: &str) -> Result<Option<String>, Failure> {
    match (file, variable(named).transpose()?) {
        (Some(_), Some(_)) => Err(Failure::config(format!("{option} and {named} are both set; keep one"))),
        (Some(file), None) => read(file).map(Some),
        (None, said) => Ok(said),
    }
}

/// Keys are often a group's, or put there by what starts us: not ours to refuse.
fn warn_if_others_can_read(key: &Path) {
    if std::fs::metadata(key).is_ok_and(|about| about.mode() & 0o077 != 0) {
        print::warn(&format!("others can read {}; chmod 600 unless that is meant", key.display()));
    }
}

/// The first line of a file that nobody else can read or has put there.
fn read(file: &Path) -> Result<String, Failure> {
    let bad = |why: &str| Failure::config(format!("cannot take a token from {}: {why}", file.display()));
    // A link could lead to what somebody else wrote; a pipe that nobody writes to would be waited for.
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file);
    let opened = opened.map_err(|error| match error.raw_os_error() {
        Some(nix::libc::ELOOP) => {
            bad("it is a link, and links are not followed; name the file that `readlink -f` says it leads to")
        }
        _ => bad(&error.to_string()),
    })?;
    let about = opened.metadata().map_err(|error| bad(&error.to_string()))?;
    if !about.is_file() {
        return Err(bad("it is not a regular file"));
    }
    let us = rustix::process::geteuid().as_raw();
    if about.uid() != us && about.uid() != 0 {
        return Err(bad("it belongs to another user; make it yours"));
    }
    if about.mode() & 0o077 != 0 {
        return Err(bad("others can read it; chmod 600"));
    }
    let mut text = String::new();
    let read = opened.take(LONGEST).read_to_string(&mut text);
    read.map_err(|error| bad(&error.to_string()))?;
    match text.lines().next().map(str::trim) {
        Some(token) if !token.is_empty() => Ok(token.to_owned()),
        _ => Err(bad("its first line is empty")),
    }
}
