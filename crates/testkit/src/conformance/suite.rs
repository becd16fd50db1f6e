//! From one list of cases to the tests of a store.
//!
//! The list in `mod.rs` names every case once. This makes two things of it: the lookup from a name to the case, and the
//! macro that expands, in a store's own crate, to one test per name. A case that is not in the list is dead code, and
//! the compiler says so.

/// Turns the list of cases into the lookup and the macro.
macro_rules! suite {
    ($d:tt
        every { $($every:ident { $($case:ident $(: $($need:ident)+)?,)* })* }
        around { $($around:ident { $($round:ident,)* })* }
        paused { $($paused:ident { $($timed:ident $(: $($wants:ident)+)?,)* })* }
    ) => {
        /// The case of this name.
        fn find(subject: &str, case: &str) -> Option<Case> {
            match (subject, case) {
                $($((stringify!($every), stringify!($case)) => Some(Case {
                    needs: &[$($(Need::$need,)+)?],
                    body: Body::Within(|fixture| Box::pin($every::$case(fixture))),
                }),)*)*
                $($((stringify!($around), stringify!($round)) => Some(Case {
                    needs: &[],
                    body: Body::Around($around::$round),
                }),)*)*
                $($((stringify!($paused), stringify!($timed)) => Some(Case {
                    needs: &[$($(Need::$wants,)+)?],
                    body: Body::Within(|fixture| Box::pin($paused::$timed(fixture))),
                }),)*)*
                _ => None,
            }
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! __conformance_cases {
            (paused) => {
                $d crate::__conformance_cases!(Paused;);
                /// Where time is the test's to turn.
                mod virtual_time {
                    $(mod $paused {
                        $(#[test]
                        fn $timed() {
                            let make = super::super::make;
                            $d crate::conformance::run(
                                $d crate::conformance::Time::Paused, make, stringify!($paused), stringify!($timed),
                            );
                        })*
                    })*
                }
            };
            (real) => {
                $d crate::__conformance_cases!(Real;);
            };
            (slow) => {
                $d crate::__conformance_cases!(Slow;);
            };
            ($d time:ident;) => {
                $(mod $every {
                    $(#[test]
                    fn $case() {
                        let make = super::make;
                        $d crate::conformance::run(
                            $d crate::conformance::Time::$d time, make, stringify!($every), stringify!($case),
                        );
                    })*
                })*
                /// With a runtime of their own.
                mod own_runtime {
                    $(mod $around {
                        $(#[test]
                        fn $round() {
                            let make = super::super::make;
                            $d crate::conformance::run(
                                $d crate::conformance::Time::$d time, make, stringify!($around), stringify!($round),
                            );
                        })*
                    })*
                }
            };
        }
    };
}

/// Runs the conformance suite against a store: one test per case, in a module of the given name.
///
/// The second word says whose time the store is on: `paused` for the test's, `real` for the machine's, `slow` for the
/// machine's where every step takes long. The last part is an async expression that gives a [`Fixture`](crate::conformance::Fixture). See the
/// [module](mod@crate::conformance) for an example.
#[macro_export]
macro_rules! conformance {
    ($name:ident, $time:ident, $make:expr) => {
        async fn $name() -> $crate::conformance::Fixture {
            $make
        }

        #[cfg(test)]
        mod $name {
            use super::$name as make;

            $crate::__conformance_cases!($time);
        }
    };
}
