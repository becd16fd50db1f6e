//! How a type gets its blocking front: a list of what it passes on, so that nothing is said twice.
//!
//! `options` take the value and give it back, `looks` answer at once, `waits` wait for a future, `ends` do so and take
//! the value with them. What comes back is turned by `[name: expression]` where it needs a front itself.

macro_rules! front {
    (
        $(#[$meta:meta])*
        $name:ident $(<$life:lifetime>)? ($inner:ty) like $twin:ident
        $(options { $($option:ident ($($o_arg:ident: $o_type:ty),*);)* })?
        $(looks { $($look:ident ($($l_arg:ident: $l_type:ty),*) -> $seen:ty $([$l_got:ident: $l_turn:expr])?;)* })?
        $(waits { $($wait:ident ($($w_arg:ident: $w_type:ty),*) -> $done:ty $([$w_got:ident: $w_turn:expr])?;)* })?
        $(ends { $($end:ident () -> $ended:ty;)* })?
    ) => {
        $(#[$meta])*
        pub struct $name $(<$life>)? (pub(crate) $inner);

        impl $(<$life>)? $name $(<$life>)? {
            $($(
                #[doc = concat!("As [`", stringify!($option), "`](crate::", stringify!($twin), "::", stringify!($option), ").")]
                pub fn $option(self, $($o_arg: $o_type),*) -> Self {
                    Self(self.0.$option($($o_arg),*))
                }
            )*)?
            $($(
                #[doc = concat!("As [`", stringify!($look), "`](crate::", stringify!($twin), "::", stringify!($look), ").")]
                #[track_caller]
                pub fn $look(&self, $($l_arg: $l_type),*) -> $seen {
                    let got = self.0.$look($($l_arg),*);
                    front!(@turn got $($l_got $l_turn)?)
                }
            )*)?
            $($(
                #[doc = concat!("Waits for [`", stringify!($wait), "`](crate::", stringify!($twin), "::", stringify!($wait), ").")]
                pub fn $wait(&self, $($w_arg: $w_type),*) -> $done {
                    let got = $crate::blocking::wait(self.0.$wait($($w_arg),*));
                    front!(@turn got $($w_got $w_turn)?)
                }
            )*)?
            $($(
                #[doc = concat!("Waits for [`", stringify!($end), "`](crate::", stringify!($twin), "::", stringify!($end), ").")]
                pub fn $end(self) -> $ended {
                    $crate::blocking::wait(self.0.$end())
                }
            )*)?
        }
    };
    (@turn $value:ident) => { $value };
    (@turn $value:ident $got:ident $turn:expr) => {{
        let $got = $value;
        $turn
    }};
}
