//! Who is asking, and what of.

use axum::{Extension, extract::State};
use serde_json::json;

use super::{Answer, answer};
use crate::{access::Role, console::Console};

pub(super) async fn show(State(console): State<Console>, Extension(role): Extension<Role>) -> Answer {
    let (asked, open) = (console.store(), console.access().is_open());
    let info = asked.info();
    let sees = open || role >= Role::Viewer;
    let store = sees.then(|| {
        json!({ "scheme": info.scheme, "address": info.address, "level": info.guarantee.level.to_string() })
    });
    let role = match role {
        Role::Nobody => "none",
        Role::Viewer => "viewer",
        Role::Operator => "operator",
    };
    answer(
        json!({ "version": env!("CARGO_PKG_VERSION"), "role": role, "reads": if open { "open" } else { "token" },
        "prefix": if sees { asked.prefix() } else { "" }, "store": store }),
    )
}
