//! The codes of problems, as the table for people has them: the document can list no others.

use planwright_api::one_of_words;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

/// One row for each code of the engine and of the service. Tests compare it with both.
const TABLE: &str = include_str!("../../../../../docs/errors/codes.md");

/// Every code of the table, in its order.
fn codes() -> impl Iterator<Item = &'static str> {
    let rows = TABLE.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next())
}

/// The code of a problem.
#[derive(Debug)]
pub(crate) struct ProblemCodeShape;

impl PartialSchema for ProblemCodeShape {
    fn schema() -> RefOr<Schema> {
        one_of_words(
            "Why a request was not done. docs/errors/codes.md says what each means.",
            codes(),
        )
    }
}

impl ToSchema for ProblemCodeShape {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ProblemCode")
    }
}
