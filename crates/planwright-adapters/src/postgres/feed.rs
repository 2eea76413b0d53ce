//! The order over all streams.
//!
//! Commits become visible in another order than any number that they draw before, so no number that an append takes can be
//! its place. An append notes that its entries have no place. A reader that finds such notes gives places to all of them
//! that are committed, in the order of the notes, and commits that before it reads: what becomes visible later gets a later
//! place. One process does this at a time; the row of `feed_end` is its lock, and where the places end. The notes of one
//! stream are in its order, because an append begins where the one before it was seen.

use super::commit::Value;
use super::fault::Stop;
use super::journal::MAX_ROWS;
use super::rows::{count, number, record, stream_name, unsigned};
use super::store::Shared;
use planwright_core::journal::StreamName;
use planwright_engine::port::{FeedOf, MAX_PAGE_BYTES, Placed, Position, StoreError};
use tokio_postgres::types::Type;

/// Notes that are taken at once.
const MAX_PLACED_AT_ONCE: i64 = 10_000;

const LOCK_END: &str = "SELECT position FROM planwright.feed_end FOR UPDATE";

const PLACE: &str = "WITH taken AS (\
      DELETE FROM planwright.unplaced WHERE id IN (\
        SELECT id FROM planwright.unplaced ORDER BY id LIMIT $1) \
      RETURNING id, stream, first_seq, last_seq), \
    numbered AS (\
      SELECT *, (SELECT position FROM planwright.feed_end) \
                + sum(last_seq - first_seq + 1) OVER (ORDER BY id)::bigint AS last FROM taken), \
    placed AS (\
      INSERT INTO planwright.places (last, first, stream, first_seq) \
      SELECT last, last - (last_seq - first_seq), stream, first_seq FROM numbered RETURNING last), \
    moved AS (\
      UPDATE planwright.feed_end SET position = greatest(position, (SELECT max(last) FROM placed)) RETURNING 1) \
    SELECT count(*) FROM placed";

/// The next ranges with an entry above `$1`.
const PLACES_OF_ALL: &str = "SELECT n.*, s.name FROM (\
      SELECT * FROM planwright.places WHERE last > $1 ORDER BY last LIMIT $2) AS n \
    JOIN planwright.streams AS s ON s.id = n.stream ORDER BY n.last";

/// The same of one plan and its runs, each of which has few.
const PLACES_OF_PLAN: &str = "SELECT n.*, s.name FROM (\
      SELECT id, name FROM planwright.streams WHERE name = $4 \
      UNION ALL SELECT id, name FROM planwright.streams WHERE kind = 'run' AND plan = $5) AS s \
    CROSS JOIN LATERAL (\
      SELECT * FROM planwright.places WHERE stream = s.id AND last > $1 ORDER BY last LIMIT $2) AS n \
    ORDER BY n.last LIMIT $2";

/// Gives a place to everything that is committed.
pub(super) async fn place(shared: &Shared) -> Result<(), StoreError> {
    // Not by an index, which would be read through all notes that were taken since the table was last cleaned.
    let sql = "SELECT EXISTS (SELECT 1 FROM planwright.unplaced)";
    loop {
        let row = shared.row(sql, &[]).await?;
        if !row.is_some_and(|row| row.get(0)) {
            return Ok(());
        }
        let Ok(_alone) = shared.placing.try_lock() else {
            // What another reader places meanwhile need not be placed again, which would be a commit.
            drop(shared.placing.lock().await);
            continue;
        };
        let placed: i64 = shared
            .transact_kept(&(), |client, ()| {
                Box::pin(async move {
                    // Two statements, in one exchange: the second sees what was committed until the lock was had.
                    let values: [(Value<'_>, Type); 1] = [(&MAX_PLACED_AT_ONCE, Type::INT8)];
                    let (locked, placed) =
                        futures::join!(client.query(LOCK_END, &[]), client.query(PLACE, &values),);
                    locked?;
                    Ok::<_, Stop<StoreError>>(placed?.first().map_or(0, |row| row.get(0)))
                })
            })
            .await?;
        if placed < MAX_PLACED_AT_ONCE {
            return Ok(());
        }
    }
}

/// Up to `limit` records with a position above `after`.
pub(super) async fn read(
    shared: &Shared,
    of: &FeedOf,
    after: Position,
    limit: usize,
) -> Result<Vec<Placed>, StoreError> {
    place(shared).await?;
    let (places, own, plan) = match of {
        FeedOf::All => (PLACES_OF_ALL, String::new(), String::new()),
        FeedOf::Plan(plan) => (
            PLACES_OF_PLAN,
            StreamName::Plan(plan.clone()).to_string(),
            plan.as_str().to_owned(),
        ),
    };
    // A subquery with a limit for each range: a plain join would let the database look through whole streams.
    let sql = format!(
        "SELECT position, name, seq, at, epoch, key, body, hash FROM (\
           SELECT *, sum(octet_length(body)) OVER (ORDER BY position) - octet_length(body) AS before FROM (\
             SELECT p.first + (e.seq - p.first_seq) AS position, p.name, e.seq, e.at, e.epoch, e.key, e.body, e.hash \
             FROM ({places}) AS p CROSS JOIN LATERAL (\
               SELECT * FROM planwright.entries AS e WHERE e.stream = p.stream \
               AND e.seq BETWEEN p.first_seq + greatest(0, $1 - p.first + 1) AND p.first_seq + (p.last - p.first) \
               ORDER BY e.seq LIMIT $2) AS e \
             ORDER BY p.last, e.seq LIMIT $2) AS next) AS sized \
         WHERE before < $3 ORDER BY position"
    );
    let mut placed: Vec<Placed> = Vec::new();
    let mut bytes = 0;
    while placed.len() < limit && bytes < MAX_PAGE_BYTES {
        let after = number(placed.last().map_or(after.0, |last| last.position.0));
        let wanted = (limit - placed.len()).min(MAX_ROWS);
        let wanted_rows = count(wanted);
        let room = count(MAX_PAGE_BYTES - bytes);
        let mut values: Vec<(Value<'_>, Type)> = vec![
            (&after, Type::INT8),
            (&wanted_rows, Type::INT8),
            (&room, Type::INT8),
        ];
        if matches!(of, FeedOf::Plan(_)) {
            values.extend([(&own as Value<'_>, Type::TEXT), (&plan, Type::TEXT)]);
        }
        let rows = shared.kept_rows(&sql, &values).await?;
        let mut fetched = 0;
        for row in &rows {
            let stream = stream_name(row.get(1))?;
            let record = record(&shared.cipher, row, 2, &stream)?;
            fetched += row.get::<_, &[u8]>(6).len();
            bytes += record.body.len();
            placed.push(Placed {
                position: Position(unsigned(row.get(0))),
                stream,
                record,
            });
        }
        // Sealed bodies are longer: a page that is full of them may have room for more.
        if rows.len() < wanted && count(fetched) < room {
            break;
        }
    }
    Ok(placed)
}
