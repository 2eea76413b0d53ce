//! The laws every [`Store`](crate::port::Store) must pass, one module per group of laws.
//!
//! A law takes a fresh, empty store and panics where it is broken. An adapter's tests call
//! [`store_laws!`](crate::store_laws) with a function that makes such a store and something that keeps it alive (a
//! temporary directory, say):
//!
//! ```ignore
//! fn make() -> (Arc<dyn Store>, ()) { (Arc::new(MemoryStore::new()), ()) }
//! planwright_engine::store_laws!(make);
//! ```

#![expect(
    clippy::unwrap_used,
    reason = "a law is a test: it fails where it is broken"
)]

pub mod answer;
pub mod append;
pub mod artifact;
pub mod atomic;
pub mod bytes;
pub mod call;
pub mod change;
pub mod concurrency;
pub mod conflict;
pub mod feed;
pub mod fence;
mod fixture;
pub mod forward;
pub mod key;
pub mod lease;
pub mod list;
pub mod message;
pub mod note;
pub mod offer;
pub mod outbox;
pub mod pass;
pub mod passkey;
pub mod retention;
pub mod token;

/// Makes one test of every law.
#[macro_export]
macro_rules! store_laws {
    ($make:ident) => {
        $crate::store_laws! { @tests $make;
            append: [
                a_stream_that_was_never_written_is_empty,
                what_was_appended_is_read_back,
                the_head_is_the_last_record,
                several_records_keep_their_order,
                an_append_continues_where_the_last_one_ended,
                the_chain_of_what_is_read_checks,
                an_append_without_records_moves_no_head,
                an_append_without_anything_creates_no_stream,
                an_empty_list_of_appends_is_accepted,
                a_plan_and_a_run_of_the_same_id_are_two_streams,
                a_stream_is_read_page_by_page,
                reading_past_the_end_or_nothing_is_empty,
                two_appends_to_one_stream_follow_each_other,
            ],
            conflict: [
                a_head_with_another_number_conflicts,
                a_head_with_another_hash_conflicts,
                beginning_a_stream_twice_conflicts,
                expecting_records_in_an_empty_stream_conflicts,
                a_conflict_says_what_was_found,
                a_stale_append_without_records_conflicts,
                records_that_do_not_follow_the_head_are_refused,
                a_refused_append_can_be_repeated_with_the_right_head,
                the_second_of_two_appends_sees_the_first,
            ],
            atomic: [
                a_run_is_opened_and_ended_in_one_call,
                a_plan_and_a_run_are_written_together,
                a_conflict_in_the_second_append_takes_the_first_back,
                a_duplicate_in_the_second_append_takes_the_first_back,
                a_fenced_second_append_takes_the_first_back,
                a_refused_append_changes_no_status,
                a_refused_append_answers_no_message,
                a_refused_append_opens_no_lease,
                a_refused_append_gives_no_lease_back,
                a_refused_append_claims_no_key,
            ],
            key: [
                a_key_is_taken_once_in_its_stream,
                a_duplicate_names_the_key,
                the_same_key_is_free_in_other_streams,
                a_key_twice_in_one_append_is_refused,
                a_key_twice_in_one_call_is_refused,
                records_without_keys_never_collide,
            ],
            lease: [
                opening_a_run_takes_epoch_one,
                a_run_is_opened_once,
                an_unknown_run_has_no_lease,
                the_holder_appends_with_its_epoch,
                another_epoch_is_fenced,
                holding_needs_a_lease,
                a_plan_has_no_lease,
                a_lease_is_given_back_with_an_append,
                nothing_is_appended_after_the_lease_was_given_back,
                a_released_run_is_acquired_with_the_next_epoch,
                a_held_run_is_not_acquired,
                not_even_its_own_owner_acquires_a_held_run,
                an_unknown_run_is_not_acquired,
                a_run_without_a_lease_is_acquired_with_epoch_one,
                an_expired_lease_is_taken_over,
                an_expired_lease_is_not_shown,
                an_expired_lease_that_nobody_took_still_writes,
                an_expired_lease_that_nobody_took_is_renewed,
                a_stale_owner_is_fenced_even_if_it_expects_the_wrong_head,
                epochs_grow_by_one_with_every_owner,
                renewing_moves_the_end,
                renewing_after_a_takeover_is_fenced,
                renewing_after_a_release_is_fenced,
                releasing_what_is_no_longer_ours_changes_nothing,
                releasing_frees_the_run,
                a_lease_lasts_from_when_it_was_asked_for,
                an_owner_that_holds_a_lease_is_not_dead,
                a_run_that_was_let_go_has_no_living_owner,
                a_living_owner_is_the_one_of_the_lease,
            ],
            fence: [
                no_call_is_made_while_the_store_does_not_answer,
                no_call_is_made_while_leases_cannot_be_renewed,
            ],
            message: [
                messages_come_in_the_order_they_were_sent,
                messages_of_other_runs_are_not_seen,
                an_unanswered_message_has_no_answer,
                an_answered_message_is_not_seen_again,
                a_refusal_keeps_its_words,
                an_empty_refusal_is_a_refusal,
                a_message_is_answered_once,
                a_message_is_answered_once_in_one_append,
                an_unknown_message_cannot_be_answered,
                an_unknown_message_has_no_answer,
                a_message_keeps_its_bytes,
                a_message_can_be_answered_without_records,
            ],
            list: [
                a_stream_without_status_is_not_listed,
                the_status_is_shown,
                the_status_is_replaced,
                the_status_stays_when_none_is_given,
                times_come_from_the_journal,
                the_same_status_again_is_no_update,
                plans_come_most_recently_updated_first,
                plans_of_one_instant_come_latest_first,
                runs_come_oldest_first,
                runs_belong_to_their_plan,
                a_status_without_records_is_kept,
                a_word_alone_changes_no_time,
                plans_are_found_by_where_they_stand,
                plans_are_found_by_how_long_nothing_happened,
                runs_of_all_plans_are_found_by_where_they_stand,
                plans_are_paged_by_age,
                streams_are_counted_by_where_they_stand,
                what_principals_brought_is_summed,
            ],
            bytes: [
                nul_and_invalid_utf8_are_kept,
                a_mebibyte_is_kept,
                large_records_come_in_pages_of_a_bounded_size,
                an_empty_body_is_kept,
                every_byte_value_is_kept,
                odd_keys_are_kept,
                extreme_times_and_epochs_are_kept,
            ],
            concurrency: [
                one_of_many_appenders_wins,
                many_streams_grow_at_once,
                one_of_many_acquirers_wins,
                messages_sent_at_once_are_all_kept,
                a_refused_append_does_not_spoil_the_others,
                readers_see_only_whole_appends,
            ],
            feed: [
                a_new_store_has_an_empty_feed,
                records_come_in_the_order_of_their_commits,
                the_order_is_that_of_commits_and_not_of_times,
                the_records_are_those_of_their_streams,
                a_plan_has_its_own_records_and_those_of_its_runs,
                a_feed_is_read_page_by_page,
                pages_of_a_feed_have_a_bounded_size,
                reading_goes_on_after_any_position,
                a_refused_append_takes_no_place,
                whoever_follows_many_writers_misses_nothing,
            ],
            change: [
                an_append_is_noticed,
                a_message_is_noticed,
                an_answer_is_noticed,
                a_takeover_is_noticed,
                what_is_written_about_a_plan_is_counted_when_it_is_acknowledged,
            ],
        }
    };
    (@tests $make:ident; $($group:ident: [$($law:ident),* $(,)?]),* $(,)?) => {
        $(mod $group {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $law() {
                let (store, _keep) = super::$make();
                $crate::conformance::$group::$law(store).await;
            })*
        })*
    };
}
