//! Parts of large answers: one range of bytes, as RFC 9110 has them.

use super::problem::Problem;
use http::header::RANGE;
use http::{HeaderMap, StatusCode};
use std::ops::Range;

/// The range that a request asks for, of an answer with so many bytes; nothing if it asks for all of
/// it. What is no single range of bytes is ignored, as the standard wants it.
pub(crate) fn wanted_range(
    headers: &HeaderMap,
    length: usize,
) -> Result<Option<Range<usize>>, Problem> {
    let mut given = headers.get_all(RANGE).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return Ok(None);
    };
    let Some(text) = value
        .to_str()
        .ok()
        .and_then(|text| text.strip_prefix("bytes="))
    else {
        return Ok(None);
    };
    let Some((first, last)) = text.split_once('-') else {
        return Ok(None);
    };
    let range = match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
        (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(length),
        (Ok(first), Err(_)) if last.trim().is_empty() => first..length,
        (Err(_), Ok(count)) if first.trim().is_empty() && count > 0 => {
            length.saturating_sub(count)..length
        }
        _ => return Ok(None),
    };
    if range.start >= range.end {
        return Err(Problem::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            format!("there are {length} bytes"),
        ));
    }
    Ok(Some(range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn range(text: &'static str) -> Result<Option<Range<usize>>, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, HeaderValue::from_static(text));
        wanted_range(&headers, 100)
    }

    #[test]
    fn a_range_is_within_the_answer() {
        assert_eq!(range("bytes=0-9").unwrap(), Some(0..10));
        assert_eq!(range("bytes=90-").unwrap(), Some(90..100));
        assert_eq!(range("bytes=-5").unwrap(), Some(95..100));
        assert_eq!(range("bytes=90-900").unwrap(), Some(90..100));
        assert_eq!(range("bytes=0-18446744073709551615").unwrap(), Some(0..100));
        for ignored in [
            "bytes=5-2",
            "bytes=1-2,4-5",
            "lines=1-2",
            "bytes=x-",
            "bytes=-0",
            "bytes=-",
        ] {
            assert_eq!(range(ignored).unwrap(), None, "{ignored}");
        }
        assert_eq!(range("bytes=100-").unwrap_err().status, 416);
    }
}
