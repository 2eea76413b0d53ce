//! Giving the space of removed entries back to the file system.

use super::fault::{failed, is_io_failure};
use super::open::{self, checkpoint};
use super::store::SqliteStore;
use planwright_engine::port::StoreError;
use rusqlite::Connection;
use std::time::Duration;

/// A larger file is left alone while a process executes runs: their commits would wait for it.
const MAX_BYTES_BESIDE_RUNS: u64 = 64 << 20;
/// The time to wait for another writer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What became of the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vacuumed {
    /// The length of the database before and after.
    pub bytes: (u64, u64),
    /// The file was written anew. If it was not, its free pages are used again by what is written
    /// next.
    pub is_done: bool,
}

impl SqliteStore {
    /// Writes the database anew without its free pages, unless that would hold up runs.
    pub async fn vacuum(&self) -> Result<Vacuumed, StoreError> {
        let options = self.options().clone();
        let owned: Vec<String> = self
            .look(|reader| reader.with(|db| owned_runs(db).map_err(|error| failed(&error))))
            .await?;
        let mut is_executing = false;
        for run in owned {
            let living = run.parse().ok().map(|run| self.reader().living_owner(&run));
            is_executing |= living.transpose()?.flatten().is_some();
        }
        self.look(move |_| {
            let connection = open::connect(&options).map_err(|error| match error {
                open::OpenStoreError::Sqlite(error) => failed(&error),
                error => StoreError::Busy(error.to_string()),
            })?;
            let sizes = || size_of(&connection).map_err(|error| failed(&error));
            let before = sizes()?;
            if is_executing && before > MAX_BYTES_BESIDE_RUNS {
                return Ok(Vacuumed {
                    bytes: (before, before),
                    is_done: false,
                });
            }
            connection
                .busy_timeout(PATIENCE)
                .map_err(|error| failed(&error))?;
            match connection.execute_batch("VACUUM") {
                Ok(()) => {}
                Err(error) if is_io_failure(&error) => return Err(failed(&error)),
                Err(error) => {
                    return match failed(&error) {
                        StoreError::Busy(_) => Ok(Vacuumed {
                            bytes: (before, before),
                            is_done: false,
                        }),
                        error => Err(error),
                    };
                }
            }
            // If another process reads at this moment, the next checkpoint shortens the file.
            drop(checkpoint(&connection, "TRUNCATE"));
            Ok(Vacuumed {
                bytes: (before, sizes()?),
                is_done: true,
            })
        })
        .await
    }
}

fn size_of(connection: &Connection) -> Result<u64, rusqlite::Error> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    Ok(number("page_count")? * number("page_size")?)
}

fn owned_runs(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = connection.prepare("SELECT run FROM leases WHERE owner IS NOT NULL")?;
    statement.query_map([], |row| row.get(0))?.collect()
}
