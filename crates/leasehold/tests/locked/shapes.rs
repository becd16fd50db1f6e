//! Functions of every shape: methods, traits, generics, lifetimes, patterns.

use std::{fmt::Display, sync::Arc};

use leasehold::{Client, Error, locked};

use super::{is_held, on_each_store};

on_each_store! {
    methods_lock_by_their_own_fields
    traits_are_implemented_with_locks
    generic_functions_lock_by_what_they_are_given
    what_is_borrowed_is_returned
    patterns_can_be_part_of_a_key
    what_is_returned_may_need_coercion
}

struct Shop<T> {
    name: T,
    locks: Arc<Client>,
    sold: u32,
}

impl<T: Display + Sync> Shop<T> {
    #[locked(client = self.locks, key = "{self.name}:{item}")]
    async fn sell(&mut self, item: &str) -> Result<u32, Error>
    where
        T: Send,
    {
        assert!(is_held(&self.locks, &format!("{}:{item}", self.name)).await);
        self.sold += 1;
        Ok(self.sold)
    }

    #[locked(client = self.locks, key = "{self.name}")]
    async fn close(self) -> Result<T, Error> {
        Ok(self.name)
    }
}

async fn methods_lock_by_their_own_fields(locks: Client) {
    let mut shop = Shop { name: "corner", locks: Arc::new(locks), sold: 0 };
    assert_eq!(shop.sell("tea").await.unwrap(), 1);
    assert_eq!(shop.sell("tea").await.unwrap(), 2);
    assert_eq!(shop.close().await.unwrap(), "corner");
}

trait Till {
    async fn count(&self, coins: u32) -> Result<u32, Error>;

    #[locked(client = self.client(), key = "till")]
    async fn empty(&self) -> Result<bool, Error> {
        Ok(is_held(self.client(), "till").await)
    }

    fn client(&self) -> &Client;
}

impl Till for Client {
    #[locked(client = self, key = "till:{coins}")]
    async fn count(&self, coins: u32) -> Result<u32, Error> {
        assert!(is_held(self, &format!("till:{coins}")).await);
        Ok(coins)
    }

    fn client(&self) -> &Client {
        self
    }
}

async fn traits_are_implemented_with_locks(locks: Client) {
    assert_eq!(locks.count(3).await.unwrap(), 3);
    assert!(locks.empty().await.unwrap());
}

#[locked(client = locks, key = "{N}:{first}:{second}")]
async fn both<const N: usize, T: Display>(
    locks: &Client,
    first: T,
    second: impl Display,
) -> Result<String, Error> {
    assert!(is_held(locks, &format!("{N}:{first}:{second}")).await);
    Ok(format!("{first}{second}"))
}

async fn generic_functions_lock_by_what_they_are_given(locks: Client) {
    assert_eq!(both::<7, _>(&locks, 1, "b").await.unwrap(), "1b");
}

#[locked(client = locks, key = "{which}")]
async fn pick<'a>(locks: &Client, one: &'a str, two: &'a mut String, which: usize) -> Result<&'a str, Error> {
    if which == 0 {
        return Ok(one);
    }
    two.push('!');
    Ok(two)
}

struct Shelf {
    locks: Client,
    things: Vec<String>,
}

impl Shelf {
    #[locked(client = self.locks, key = "shelf:{at}")]
    async fn take(&mut self, at: usize) -> Result<&mut String, Error> {
        Ok(&mut self.things[at])
    }
}

async fn what_is_borrowed_is_returned(locks: Client) {
    let mut two = "two".to_owned();
    assert_eq!(pick(&locks, "one", &mut two, 0).await.unwrap(), "one");
    assert_eq!(pick(&locks, "one", &mut two, 1).await.unwrap(), "two!");
    let mut shelf = Shelf { locks, things: vec!["a".to_owned()] };
    shelf.take(0).await.unwrap().push('b');
    assert_eq!(shelf.things, ["ab"]);
}

#[locked(client = locks, key = "{left}-{right}")]
async fn pair(locks: &Client, (left, right): (u32, u32)) -> Result<bool, Error> {
    Ok(is_held(locks, "1-2").await)
}

async fn patterns_can_be_part_of_a_key(locks: Client) {
    assert!(pair(&locks, (1, 2)).await.unwrap());
}

#[locked(client = locks, key = "boxed")]
async fn boxed(
    locks: &Client,
    text: bool,
) -> Result<Box<dyn Display + Send>, Box<dyn std::error::Error + Send + Sync>> {
    if text {
        return Ok(Box::new("text"));
    }
    let number: u8 = "300".parse()?;
    Ok(Box::new(number))
}

async fn what_is_returned_may_need_coercion(locks: Client) {
    assert_eq!(boxed(&locks, true).await.unwrap().to_string(), "text");
    assert!(boxed(&locks, false).await.is_err());
}
