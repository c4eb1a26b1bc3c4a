//! The way to the API server, which keeps one object from hiding all others of its kind.
//!
//! Kubernetes stores JSON of nearly any depth, and what reads it here stops at 128: a list in which one
//! object goes deeper could not be read at all. So whatever is deeper is cut off before it is read.

use bytes::Bytes;
use http::Response;
use http_body::Body;
use http_body_util::BodyExt;
use kube::client::{ClientBuilder, DynBody};
use kube::{Client, Config};
use tower::BoxError;
use tower::util::MapResponseLayer;

/// The depth from which on a response is cut off.
const DEEPEST: usize = 100;
/// What stands for what was cut off.
const STUMP: &[u8] = b"\"(nested too deeply to be read)\"";

/// A client of the API server.
///
/// # Errors
/// Where the configuration leads nowhere.
pub fn client(config: Config) -> kube::Result<Client> {
    Ok(ClientBuilder::try_from(config)?.with_layer(&MapResponseLayer::new(shallow)).build())
}

fn shallow(response: Response<Box<DynBody>>) -> Response<impl Body<Data = Bytes, Error = BoxError> + Send> {
    response.map(|body| {
        let mut cut = Cut::default();
        body.map_frame(move |frame| frame.map_data(|data| cut.through(data)))
    })
}

/// Where in the JSON a stream is.
#[derive(Default)]
struct Cut {
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Cut {
    /// The next bytes, without what is too deep.
    fn through(&mut self, data: Bytes) -> Bytes {
        // Almost always, all of it stays.
        let mut kept: Option<Vec<u8>> = (self.depth > DEEPEST).then(Vec::new);
        for (at, &byte) in data.iter().enumerate() {
            let before = self.depth;
            self.step(byte);
            if before == DEEPEST && self.depth > DEEPEST {
                kept.get_or_insert_with(|| data[..at].to_vec()).extend_from_slice(STUMP);
            } else if before <= DEEPEST
                && let Some(kept) = &mut kept
            {
                kept.push(byte);
            }
        }
        kept.map_or(data, Bytes::from)
    }

    fn step(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_text => self.escaped = true,
            b'"' => self.in_text = !self.in_text,
            _ if self.in_text => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!("a [\\\" b"), |inner, level| {
            if level % 2 == 0 { json!([inner, 1]) } else { json!({"a": inner}) }
        })
    }

    /// What comes through in pieces of this size.
    fn through(text: &str, size: usize) -> String {
        let mut cut = Cut::default();
        let pieces = text.as_bytes().chunks(size).map(|piece| cut.through(Bytes::copy_from_slice(piece)));
        String::from_utf8(pieces.flatten().collect()).unwrap()
    }

    #[test]
    fn what_can_be_read_stays_as_it_is() {
        for text in ["", "no JSON: [[\"", &nested(100).to_string(), &json!(["[".repeat(500)]).to_string()] {
            for size in [1, 7, 10_000] {
                assert_eq!(through(text, size), text);
            }
        }
    }

    #[test]
    fn what_is_too_deep_is_cut_off_and_the_rest_is_whole() {
        let list = json!({"items": [{"spec": nested(1_000)}, {"spec": nested(3)}]}).to_string();
        for size in [1, 7, 1_000_000] {
            let read: Value = serde_json::from_str(&through(&list, size)).unwrap();
            assert_eq!(read["items"][1]["spec"], nested(3));
            assert!(read.to_string().contains("nested too deeply"));
        }
    }
}
