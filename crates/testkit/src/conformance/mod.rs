//! The conformance suite: what every store passes, or refuses by capability.
//!
//! A store runs it with a few lines, and gets one named test per case:
//!
//! ```
//! use leasehold_core::{backend::Memory, time::Clock};
//! use leasehold_testkit::conformance::Fixture;
//!
//! // Virtual time, for a store that can be on the test's clock; `real` for all others.
//! leasehold_testkit::conformance!(memory, paused, {
//!     let clock = Clock::test();
//!     let store = Memory::with_clock(clock.clone());
//!     Fixture::records(move || std::future::ready(store.clone())).clock(clock)
//! });
//! ```
//!
//! The last part is an async expression that sets up a store of its own for a case and gives a [`Fixture`], which opens
//! sessions of it. Cases are isolated by the names they use, so they may share a server.
//!
//! What a store lacks (by its `Capabilities`) it must refuse with the kind `Unsupported`, before anything is sent: that is
//! what a case asserts then. No case is skipped.
//!
//! Cases never assert how long something takes on a real clock: they wait for it, and a watchdog ends a case that waits
//! for what never comes. Stores on virtual time run more cases than others: those about belief to the millisecond, which
//! prove the engine once for all stores.
//!
//! # Reading order
//! `mutex` is the promise everything stands on and the simplest file; `contract` asks the store itself, rule by rule.

#![expect(clippy::unwrap_used, reason = "a case fails by panicking, with the error it got")]

#[macro_use]
mod suite;

mod fixture;
mod need;
mod probe;
mod stage;

mod aftermath;
mod belief;
mod breaking;
mod cancel;
mod cells;
mod chaos;
mod closing;
mod cohort;
mod cohort_end;
mod contract;
mod dropping;
mod election;
mod errors;
mod fair;
mod fence;
mod ids;
mod jobs;
mod kinds;
mod latch;
mod limits;
mod loss;
mod mutex;
mod permits;
mod presence;
mod rate;
mod reentry;
mod set;
mod shared;
mod tickets;

pub use self::{
    fixture::Fixture,
    stage::{Time, run},
};
use self::{
    need::Need,
    stage::{Body, Case},
};

suite! { $
    // On every store.
    every {
        mutex {
            eight_tasks_lose_no_increment,
            a_held_lock_is_not_given_twice,
            a_wait_that_is_over_ends_as_it_was_asked,
            a_wait_ends_when_the_lock_is_free,
            names_do_not_exclude_each_other,
            prefixes_keep_clients_apart,
            two_thousand_hand_overs_lose_no_wake_up,
            a_task_that_never_waits_lets_others_run,
            a_scope_releases_whatever_becomes_of_the_work,
        }
        shared {
            readers_share_and_writers_do_not: Shared,
            a_waiting_writer_gets_in_after_the_last_reader: Shared,
            waiting_readers_get_in_together: Shared,
            readers_and_writers_keep_a_sound_history: Shared,
            readers_do_not_overtake_a_writer_in_line: Shared Fair,
        }
        permits {
            permits_are_all_that_is_given: Permits,
            impossible_numbers_are_refused: Permits,
            a_waiter_for_several_is_woken_when_enough_are_back: Permits,
            a_dead_holders_permits_come_back: Permits,
            permits_are_conserved: Permits,
        }
        fair {
            ten_are_served_in_the_order_they_came: Fair,
            those_who_gave_up_are_skipped: Fair,
            the_dead_in_line_are_skipped: Fair,
            others_let_the_line_pass: Fair,
        }
        latch {
            a_latch_counts_down_to_zero: Latch,
            the_last_count_wakes_all_who_wait: Latch,
            a_repeated_count_counts_once: Latch,
            a_latch_outlives_who_armed_it: Latch,
        }
        rate {
            a_rate_is_all_that_is_given: Rate,
            a_rate_is_set_once_unless_it_is_set_anew: Rate,
            who_waits_gets_permits_when_they_are_back: Rate,
            what_cannot_come_in_time_is_refused_at_once: Rate,
            each_client_has_a_share_of_its_own: Rate,
            a_repeated_taking_takes_once: Rate,
            one_who_waits_for_a_rate_bears_with_the_store: Rate,
            waiters_of_one_client_are_one_to_the_store: Rate,
            a_limiter_is_kept_as_long_as_it_is_used: Rate,
            rates_without_sense_are_refused: Rate,
            limiters_and_locks_conflict: Rate Permits Latch,
            a_closed_client_tells_those_who_wait_for_a_rate: Rate,
        }
        set {
            opposite_orders_do_not_deadlock,
            one_that_is_busy_gives_back_the_others,
            one_that_is_refused_gives_back_the_others: Permits,
            duplicates_collapse: Shared,
            kinds_and_clients_mix: Shared Permits,
            the_loss_of_one_is_the_loss_of_the_set,
            sets_without_sense_are_refused: Permits,
        }
        reentry {
            an_owner_enters_again_with_the_same_fence,
            tasks_of_one_owner_enter_together,
            a_lost_lock_is_not_entered_again,
            a_writer_may_become_a_reader: Shared,
            a_reader_cannot_become_a_writer: Shared,
            an_owner_belongs_to_one_client,
            an_owner_that_waits_does_not_hold_up_its_other_tasks,
        }
        cancel {
            acquiring_a_lock,
            acquiring_in_line: Fair,
            acquiring_to_read: Shared,
            acquiring_to_write: Shared,
            acquiring_permits: Permits,
            acquiring_for_an_owner,
            acquiring_a_set,
            acquiring_a_ticket: Detached,
            acquiring_in_a_cohort: Cohort,
            trying,
            waiting_for_a_latch: Latch,
            releasing,
            extending,
            entering_again,
            working_in_a_scope,
            losing_a_race_a_hundred_times,
        }
        cohort {
            a_lock_passes_on_without_a_request: Cohort,
            a_lone_member_keeps_nobody_out: Cohort,
            eight_tasks_of_two_cohorts_lose_no_increment: Cohort,
            cohorts_take_turns: Cohort Fair,
            only_equals_are_of_one_cohort: Cohort,
            what_cannot_be_a_cohort_is_refused: Cohort Shared Permits Fair Detached,
            a_repeated_attempt_finds_its_first_fence: Cohort,
        }
        cohort_end {
            half_a_lease_is_not_passed_on: Cohort,
            a_loss_is_told_to_whoever_has_it: Cohort,
            what_is_lost_is_not_passed_on: Cohort,
            a_store_that_fails_at_the_end_of_a_block_costs_time_only: Cohort,
            guards_dropped_on_plain_threads_pass_on: Cohort,
            shutdown_ends_a_cohort_and_tells_its_waiters: Cohort,
            cut_anywhere_it_is_passed_on_or_given_back: Cohort,
        }
        dropping {
            a_dropped_guard_is_released,
            a_guard_dropped_on_a_plain_thread_is_released,
            a_guard_dropped_by_a_panic_is_released,
            a_guard_keeps_its_client_alive,
            many_guards_dropped_at_once_are_released,
            an_aborted_task_gives_back_what_it_held,
        }
        closing {
            shutdown_releases_all_and_tells_holders,
            shutdown_tells_those_who_wait,
            a_closed_client_refuses_new_requests,
            a_dropped_shutdown_goes_on,
        }
        loss {
            a_lock_outlives_its_lease_while_it_is_renewed,
            an_unrenewed_lock_expires,
            max_hold_ends_a_lock,
            a_lock_gone_from_the_store_is_told,
            releasing_what_is_gone_says_so,
            extend_and_ensure_prolong_a_lease,
            a_loss_cancels_the_work_of_a_scope,
        }
        fence {
            fences_grow_whatever_ends_a_hold,
            readers_have_fences_of_their_own: Shared,
            permits_have_fences_of_their_own: Permits,
            the_store_shows_the_fence_it_gave,
        }
        errors {
            an_error_says_what_was_done_to_what,
            a_lost_answer_leaves_no_lock_behind,
            one_who_waits_bears_with_the_store,
            a_bad_bell_costs_time_only,
            a_release_is_tried_until_the_store_takes_it,
            a_late_renewal_makes_no_lock,
            a_failed_re_entry_leaves_the_lock_as_it_was,
        }
        limits {
            leases_beyond_reason_are_refused,
            waits_that_are_none_are_refused,
            names_that_are_none_are_refused,
            labels_beyond_reason_are_refused,
            more_than_may_wait_are_refused,
        }
        kinds {
            locks_and_read_write_locks_are_one: Shared,
            locks_and_semaphores_conflict: Shared Permits,
            locks_and_latches_conflict: Shared Latch,
            semaphores_and_latches_conflict: Permits Latch,
            a_conflict_is_told_at_once_however_patient: Shared Latch,
        }
        presence {
            a_busy_answer_says_who,
            a_busy_answer_names_all_holders: Shared,
            inspect_shows_holders_and_waiters,
            a_busy_answer_says_our_place_in_line: Fair,
            list_shows_the_names_in_use,
            list_is_of_the_clients_own_names,
            no_name_reaches_into_another_prefix,
            the_dead_are_not_shown,
        }
        aftermath {
            the_line_of_code_is_shown,
            a_hold_that_lasted_is_in_the_history: Cells,
            a_tickets_hold_is_in_the_history: Detached Cells,
            a_break_is_in_the_audit_and_in_the_history: Cells,
            pausing_a_job_is_in_the_audit: Cells,
        }
        breaking {
            a_broken_lock_is_told_and_passes_on,
            a_release_learns_of_the_break,
            only_the_named_acquisition_is_broken,
            one_who_waits_is_not_broken,
            one_reader_is_broken_and_the_others_go_on: Shared,
            broken_permits_come_back_at_once: Permits,
            a_hold_entered_twice_is_broken_as_a_whole,
        }
        tickets {
            a_ticket_passes_from_client_to_client: Detached,
            a_ticket_that_is_over_is_lost: Detached,
            tickets_and_guards_exclude_each_other: Detached,
            what_is_no_ticket_is_refused: Detached,
        }
        cells {
            a_cell_changes_only_as_expected: Cells,
            a_cell_holds_any_bytes: Cells,
            a_cell_expires: Cells,
            cells_are_listed_by_name: Cells,
            compare_and_set_loses_no_update: Cells,
        }
        election {
            one_leads_until_it_resigns: Cells,
            observers_are_told: Cells,
            a_deposed_leader_proclaims_nothing: Cells,
            work_ends_with_the_lead: Cells,
            values_go_with_their_leader: Cells,
            what_is_taken_back_is_not_an_empty_value: Cells,
        }
        jobs {
            the_clock_is_told_by_those_who_have_one,
            one_of_many_runs_a_job: Cells,
            every_slot_falls_to_one: Cells,
            a_paused_job_is_not_run: Cells,
            a_slot_taken_by_a_lost_answer_is_run_once: Cells,
            a_run_that_a_shutdown_cuts_off_is_written_down: Cells,
        }
        ids {
            ids_of_many_are_unique: Cells,
            a_number_passes_on_above_all_before: Cells,
            a_lost_number_makes_no_more_ids: Cells,
            a_lost_answer_costs_no_id: Cells,
            spaces_without_sense_are_refused: Cells,
        }
        contract {
            claiming_is_silent,
            attempting_is_idempotent_by_id,
            a_repeated_attempt_is_not_granted_what_is_over,
            a_repeated_attempt_takes_no_more_permits: Permits,
            only_an_answered_attempt_grants,
            the_bell_remembers,
            a_dropped_wait_loses_no_ring,
            a_release_defeats_a_late_request,
            a_release_removes_what_arrived_late,
            a_grant_ends_by_the_stores_clock,
            a_renewal_touches_only_its_own,
            a_release_touches_only_its_own,
            a_count_is_written_absolutely,
            fences_grow_at_the_store,
        }
    }
    // With a runtime of their own, on every store.
    around {
        dropping {
            what_outlives_its_runtime_does_not_panic,
            a_runtime_ends_with_everything_under_way,
        }
    }
    // Where time is the test's to turn.
    paused {
        belief {
            failing_renewals_bring_doubt_then_loss,
            a_renewal_that_succeeds_again_ends_doubt,
            a_late_answer_does_not_revive_a_lost_lock,
            belief_counts_from_before_the_request,
            a_suspend_is_noticed_at_once,
            a_short_suspend_loses_nothing,
            a_scope_ends_at_the_first_await_after_a_suspend,
            work_that_ends_after_the_loss_has_failed,
            a_wait_survives_a_suspend,
            one_hanging_renewal_holds_up_no_other,
            a_thousand_losses_at_once_are_all_told,
        }
        closing {
            shutdown_keeps_to_its_time,
        }
        errors {
            one_fault_after_a_long_wait_is_borne,
            who_waits_with_a_deaf_bell_ends_at_once,
        }
        ids {
            ids_grow_through_steps_of_the_clock: Cells,
            what_is_reserved_is_never_given_back: Cells,
            a_spoilt_number_is_passed_over: Cells,
            one_who_slept_beyond_the_lease_makes_no_id: Cells,
            nothing_is_made_beyond_what_was_reserved: Cells,
            numbers_are_given_to_all_and_no_more: Cells,
        }
        cohort_end {
            a_lock_lost_on_its_way_is_not_held: Cohort,
        }
        chaos {
            a_faulty_store_keeps_a_sound_history: Shared Permits Fair,
        }
    }
}
