//! A module whose items have the names that the attributes could think of.

use leasehold::blocking;

mod named {
    #![expect(non_upper_case_globals, reason = "that is what is tested")]

    use leasehold::{Client, Error, blocking, locked, scheduled};

    static answer: u32 = 1;
    static held: u32 = 2;
    static wanted: u32 = 3;
    const error: u32 = 4;
    const never: u32 = 5;
    static body: u32 = 6;
    static client: u32 = 7;
    const run: u32 = 8;

    #[locked(client = locks, key = "a", on_busy = skip)]
    pub(super) async fn sees_them(locks: &Client, _: u32) -> Result<Option<u32>, Error> {
        Ok(Some(answer + held + wanted + error + never))
    }

    #[locked(client = locks, key = "a")]
    pub(super) fn sees_them_here(locks: &blocking::Client) -> Result<u32, Error> {
        Ok(answer + held + wanted + error + never)
    }

    #[scheduled(cron = "* * * * * *", name = "tick", at_most = "1s")]
    pub(super) async fn sees_them_at_times(_this: &leasehold::Run) -> Result<(), Error> {
        assert_eq!(body + client + run, 21);
        Ok(())
    }
}

#[tokio::test]
async fn the_items_of_a_module_are_its_own() {
    let locks = leasehold::connect("memory:").await.unwrap();
    assert_eq!(named::sees_them(&locks, 0).await.unwrap(), Some(15));
    let locks = blocking::connect("memory:").unwrap();
    assert_eq!(named::sees_them_here(&locks).unwrap(), 15);
    drop(named::sees_them_at_times());
}
