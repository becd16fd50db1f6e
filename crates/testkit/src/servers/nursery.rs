//! Where children are started: one thread that lives as long as the process.
//!
//! The kernel's parent-death signal follows the *thread* that started a child, not the process. A server started by a
//! test's own thread, or by a worker of a runtime, would be killed when that thread ends although the test process
//! lives on; so one thread starts them all and never ends.

use std::{
    io,
    process::{Child, Command},
    sync::{Mutex, OnceLock, PoisonError, mpsc},
    thread,
};

struct Order {
    command: Command,
    reply: mpsc::Sender<io::Result<Child>>,
}

/// Starts a child, to be killed by the kernel when this process dies (see [`mortal`]).
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    static NURSERY: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    let gone = || io::Error::other("the thread that starts servers is gone");
    let (reply, answer) = mpsc::channel();
    let nursery = NURSERY.get_or_init(|| Mutex::new(open()));
    let sender = nursery.lock().unwrap_or_else(PoisonError::into_inner).clone();
    sender.send(Order { command, reply }).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

fn open() -> mpsc::Sender<Order> {
    let (sender, orders) = mpsc::channel::<Order>();
    thread::Builder::new()
        .name("servers".to_owned())
        .spawn(move || {
            for Order { mut command, reply } in orders {
                drop(reply.send(command.spawn()));
            }
        })
        .expect("a test process can start a thread");
    sender
}

/// The command for a program that is to die with us. Without `setpriv` it is the program itself.
pub(super) fn mortal(program: &str) -> Command {
    static HAS_SETPRIV: OnceLock<bool> = OnceLock::new();
    let has_setpriv = *HAS_SETPRIV.get_or_init(|| {
        let tried = Command::new("setpriv").args(["--pdeathsig", "KILL", "--", "true"]).output();
        tried.is_ok_and(|output| output.status.success())
    });
    if !has_setpriv {
        return Command::new(program);
    }
    // setpriv becomes the program, so the child's process id is the server's.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}
