#![doc = include_str!("../../../README.md")]
//!
//! # Where to start
//!
//! [`connect`] opens a store by its URL and gives a [`Client`]; the client makes everything else. [`Lock`] has the
//! options and the ways to ask; [`Guard`] is what you get. Those who write a store read [`backend`].

mod connect;
mod url;

pub use leasehold_core::*;

pub use crate::connect::{Settings, connect, connect_with};
