//! Wake-ups between processes: a claim's id in a datagram, to the session that waits.
//!
//! On Linux every session that waits has an abstract Unix socket named after it: nothing in the file system, gone
//! with the process. A thread of its own listens, so that it works in every sort of runtime and outlives none of
//! the runtimes a store is used from; it costs nothing while nobody writes. Sending never waits: a full mailbox means
//! that its owner is being woken anyway. Anybody on the machine may send; a ring is a hint and no more.
//!
//! Elsewhere there is no post, and waiters look again at the store's polling pause.

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{Mailbox, Post};
#[cfg(target_os = "linux")]
pub(super) use linux::{Mailbox, Post};

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        io,
        net::Shutdown,
        os::{
            linux::net::SocketAddrExt,
            unix::net::{SocketAddr, UnixDatagram},
        },
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        thread,
    };

    use leasehold_core::{ClaimId, ClientId};

    /// A client's id, a colon and a number: no message is longer.
    const LONGEST: usize = 64;

    /// What a listening thread needs; it does nothing but receive.
    const STACK: usize = 64 * 1024;

    fn address(session: ClientId) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(format!("leasehold/{session}"))
    }

    /// Sends wake-ups.
    #[derive(Debug)]
    pub(in crate::sqlite) struct Post(UnixDatagram);

    impl Post {
        /// `None` if the machine has no sockets left to give: then waiters look for themselves.
        pub(in crate::sqlite) fn open() -> Option<Self> {
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?;
            Some(Self(socket))
        }

        /// Whether the message reached the session's mailbox.
        pub(in crate::sqlite) fn send(&self, session: ClientId, id: ClaimId) -> bool {
            let sent = address(session).and_then(|to| self.0.send_to_addr(id.to_string().as_bytes(), &to));
            sent.is_ok()
        }
    }

    /// Receives wake-ups until it is dropped.
    #[derive(Debug)]
    pub(in crate::sqlite) struct Mailbox {
        socket: UnixDatagram,
        closed: Arc<AtomicBool>,
    }

    impl Mailbox {
        /// `None` if the machine has no socket or thread left to give: then waiters look for themselves.
        pub(in crate::sqlite) fn open(
            session: ClientId,
            ring: impl Fn(ClaimId) + Send + 'static,
        ) -> Option<Self> {
            let socket = UnixDatagram::bind_addr(&address(session).ok()?).ok()?;
            let listener = socket.try_clone().ok()?;
            let closed = Arc::new(AtomicBool::new(false));
            let seen = closed.clone();
            let listen = move || listen(&listener, &seen, ring);
            thread::Builder::new().name("leasehold-bell".to_owned()).stack_size(STACK).spawn(listen).ok()?;
            Some(Self { socket, closed })
        }
    }

    impl Drop for Mailbox {
        fn drop(&mut self) {
            self.closed.store(true, Ordering::SeqCst);
            // Wakes the listener, which then ends. Nobody waits for it.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }

    fn listen(socket: &UnixDatagram, closed: &AtomicBool, ring: impl Fn(ClaimId)) {
        let mut message = [0; LONGEST];
        loop {
            let length = match socket.recv(&mut message) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
                received => received.unwrap_or(0),
            };
            if closed.load(Ordering::SeqCst) {
                return;
            }
            let text = std::str::from_utf8(&message[..length]).ok();
            if let Some(id) = text.and_then(|text| text.parse().ok()) {
                ring(id);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unused_self, reason = "as on Linux, where it is used")]
mod elsewhere {
    use leasehold_core::{ClaimId, ClientId};

    #[derive(Debug)]
    pub(in crate::sqlite) struct Post;

    impl Post {
        pub(in crate::sqlite) fn open() -> Option<Self> {
            None
        }

        pub(in crate::sqlite) fn send(&self, _session: ClientId, _id: ClaimId) -> bool {
            false
        }
    }

    #[derive(Debug)]
    pub(in crate::sqlite) struct Mailbox;

    impl Mailbox {
        pub(in crate::sqlite) fn open(
            _session: ClientId,
            _ring: impl Fn(ClaimId) + Send + 'static,
        ) -> Option<Self> {
            None
        }
    }
}
