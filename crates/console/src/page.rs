//! The page: files of our own, carried by the binary. Nothing is loaded from elsewhere.

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::{access::hexadecimal, console::Console, problem::Problem};

/// Each file of `page/`: where it is found, and what is in it.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A file of the page, or 404.
pub(crate) async fn serve(State(console): State<Console>, request: Request) -> Response {
    let path = match request.uri().path() {
        "/" => "/index.html",
        path => path,
    };
    let Some(content) = find(&console, path).await else {
        return Problem::not_found().into_response();
    };
    let tag = tag(&content);
    let known = request.headers().get_all(header::IF_NONE_MATCH).iter();
    let same = known.filter_map(|value| value.to_str().ok()).any(|value| value.contains(&*tag));
    let (status, body) =
        if same { (StatusCode::NOT_MODIFIED, Body::empty()) } else { (StatusCode::OK, content.into()) };
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(path)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// From the binary; or, for those who work on the page, from a folder.
async fn find(console: &Console, path: &str) -> Option<Bytes> {
    let Some(folder) = console.page_folder() else {
        let (_, content) = FILES.iter().find(|(name, _)| *name == path)?;
        return Some(Bytes::from_static(content));
    };
    let plain = path.split('/').skip(1).all(|part| {
        let ours = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(ours)
    });
    if !plain {
        return None;
    }
    let file = folder.join(path.trim_start_matches('/'));
    let read = console.store().runtime().spawn_blocking(move || std::fs::read(file));
    read.await.ok()?.ok().map(Bytes::from)
}

fn tag(content: &[u8]) -> String {
    format!("\"{}\"", hexadecimal(&Sha256::digest(content)[..12]))
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_carried_and_asks_nothing_of_anybody_else() {
        assert!(FILES.iter().any(|(name, _)| *name == "/index.html"));
        for (name, content) in FILES {
            assert_ne!(kind(name), "application/octet-stream", "{name} is of a kind that browsers know");
            let text = String::from_utf8_lossy(content);
            for (at, _) in text.match_indices("://") {
                let namespace = text[..at].ends_with("http") && text[at..].starts_with("://www.w3.org/");
                assert!(namespace, "{name} names another place: {:?}", &text[at.saturating_sub(8)..at]);
            }
        }
    }
}
