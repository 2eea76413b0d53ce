//! Pages of lists: a cursor names the last thing that was seen, so that nothing is left out when
//! others come or go.

use super::problem::{Problem, ProblemCode};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use planwright_api::Page;
use planwright_core::id::PlanId;
use planwright_core::time::Timestamp;
use planwright_engine::port::StreamInfo;
use std::cmp::Reverse;

/// The most things on one page.
const MAX_LIMIT: usize = 200;
const DEFAULT_LIMIT: usize = 50;

/// Which page.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageParams {
    /// How many things at most.
    pub(crate) limit: Option<usize>,
    /// The `nextCursor` of the page before.
    pub(crate) cursor: Option<String>,
}

/// The last thing of a page: when its plan came to be, the plan, and which of the plan's things it is if others of
/// them follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor(Timestamp, PlanId, Option<String>);

impl Cursor {
    pub(crate) fn of(info: &StreamInfo) -> Self {
        Self(info.created_at, info.status.plan.clone(), None)
    }

    /// Returns where a store goes on.
    pub(crate) fn place(&self) -> (Timestamp, &PlanId) {
        (self.0, &self.1)
    }

    /// Names the last thing of a page.
    pub(crate) fn new(at: Timestamp, plan: PlanId) -> Self {
        Self(at, plan, None)
    }

    pub(crate) fn encode(&self) -> String {
        let thing = self.2.as_ref().map(|thing| format!(" {thing}"));
        let thing = thing.unwrap_or_default();
        BASE64_URL_SAFE_NO_PAD.encode(format!("{} {}{thing}", self.0.as_millis(), self.1))
    }

    fn decode(text: &str) -> Option<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (at, rest) = text.split_once(' ')?;
        let (id, thing) = match rest.split_once(' ') {
            Some((id, thing)) => (id, Some(thing.to_owned())),
            None => (rest, None),
        };
        Some(Self(
            Timestamp::from_millis(at.parse().ok()?),
            id.parse().ok()?,
            thing,
        ))
    }
}

/// A page that is being filled with what was made of the newest plans.
#[derive(Debug)]
pub(crate) struct PageBuilder<T> {
    limit: usize,
    items: Vec<T>,
    last: Option<Cursor>,
    /// The last thing of the page before, if it was not the last one of its plan.
    after: Option<(PlanId, String)>,
    more: bool,
}

impl<T> PageBuilder<T> {
    /// An empty page, and the last thing of the one before.
    pub(crate) fn open(params: &PageParams) -> Result<(Self, Option<Cursor>), Problem> {
        let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
        if limit == 0 || limit > MAX_LIMIT {
            return Err(Problem::of(
                ProblemCode::BadParameter,
                format!("`limit` is between 1 and {MAX_LIMIT}"),
            ));
        }
        let bad = || {
            Problem::of(
                ProblemCode::BadCursor,
                "`cursor` is not one that this service gave",
            )
        };
        let after = params
            .cursor
            .as_deref()
            .map(|text| Cursor::decode(text).ok_or_else(bad))
            .transpose()?;
        Ok((
            Self {
                limit,
                items: Vec::new(),
                last: None,
                after: None,
                more: false,
            },
            after,
        ))
    }

    /// The plans to look at, newest first, and a page to put them on.
    pub(crate) fn begin(
        params: &PageParams,
        mut plans: Vec<StreamInfo>,
    ) -> Result<(Self, Vec<StreamInfo>), Problem> {
        let (page, after) = Self::open(params)?;
        plans.sort_by_cached_key(|info| (Reverse(info.created_at), info.status.plan.to_string()));
        if let Some(Cursor(at, id, thing)) = &after {
            plans.retain(|info| {
                let plan = &info.status.plan;
                let follows = info.created_at == *at && plan.as_str() > id.as_str();
                info.created_at < *at || follows || thing.is_some() && plan == id
            });
        }
        let after = after.and_then(|Cursor(_, plan, thing)| Some((plan, thing?)));
        Ok((Self { after, ..page }, plans))
    }

    /// Returns how many things there may be on it.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns whether nothing is on the page yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Ends the page before this plan, though there is room for more things.
    pub(crate) fn break_off(&mut self) {
        self.more = true;
    }

    /// Puts what was made of a plan on the page. False once it is full: the plan is for the next
    /// one.
    pub(crate) fn put(&mut self, info: &StreamInfo, items: Vec<T>) -> bool {
        if self.items.len() >= self.limit && !items.is_empty() {
            self.more = true;
            return false;
        }
        if !items.is_empty() {
            self.last = Some(Cursor::of(info));
        }
        self.items.extend(items);
        true
    }

    /// Returns which of the things of this plan come next, given the names of all of them. If the last one that was
    /// seen is not there any more, all of them: better twice than never.
    pub(crate) fn first_of(&self, plan: &PlanId, names: &[String]) -> usize {
        let seen = self.after.as_ref().filter(|(of, _)| of == plan);
        let seen = seen.and_then(|(_, last)| names.iter().position(|name| name == last));
        seen.map_or(0, |last| last + 1)
    }

    /// Returns whether the page has as many things as were asked for.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= self.limit
    }

    /// Puts one of several things of a plan on the page, by its name.
    pub(crate) fn put_one(&mut self, info: &StreamInfo, name: String, item: T) {
        self.items.push(item);
        self.last = Some(Cursor(
            info.created_at,
            info.status.plan.clone(),
            Some(name),
        ));
    }

    /// Notes that nothing of this plan is left.
    pub(crate) fn pass(&mut self, info: &StreamInfo) {
        if self
            .last
            .as_ref()
            .is_some_and(|last| last.1 == info.status.plan)
        {
            self.last = Some(Cursor::of(info));
        }
    }

    pub(crate) fn finish(self) -> Page<T> {
        let next_cursor = self.last.filter(|_| self.more).map(|last| last.encode());
        Page {
            items: self.items,
            next_cursor,
            total: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_core::journal::StreamName;
    use planwright_engine::port::StreamStatus;

    fn plan(name: &str, at: i64) -> StreamInfo {
        let plan: PlanId = name.parse().unwrap();
        StreamInfo {
            stream: StreamName::Plan(plan.clone()),
            status: StreamStatus {
                plan,
                status: "proposed".into(),
                label: String::new(),
            },
            created_at: Timestamp::from_millis(at),
            updated_at: Timestamp::from_millis(at),
        }
    }

    fn page(params: &PageParams, plans: &[StreamInfo]) -> Page<String> {
        let (mut page, plans) = PageBuilder::begin(params, plans.to_vec()).unwrap();
        for info in &plans {
            if !page.put(info, vec![info.status.plan.to_string()]) {
                break;
            }
        }
        page.finish()
    }

    #[test]
    fn pages_hold_everything_once_also_when_plans_come_meanwhile() {
        let mut plans: Vec<StreamInfo> = (0..7).map(|n| plan(&format!("p{n}"), n / 2)).collect();
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let found = page(
                &PageParams {
                    limit: Some(2),
                    cursor,
                },
                &plans,
            );
            seen.extend(found.items);
            plans.push(plan(&format!("new{}", plans.len()), 100));
            cursor = found.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["p6", "p4", "p5", "p2", "p3", "p0", "p1"]);
    }

    #[test]
    fn a_made_up_cursor_or_limit_is_refused() {
        for (limit, cursor) in [
            (Some(0), None),
            (Some(201), None),
            (None, Some("x")),
            (None, Some("MTIz")),
        ] {
            let params = PageParams {
                limit,
                cursor: cursor.map(str::to_owned),
            };
            assert!(PageBuilder::<String>::begin(&params, Vec::new()).is_err());
        }
    }
}
