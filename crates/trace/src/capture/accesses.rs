//! What does a recording say about the memory of copies?

use busbound_capture::format::streams;

use crate::model::access::{Access, StreamKind};

pub(super) fn access(stream: u8, to: u64, from: u64) -> Access {
    let stream = match stream {
        streams::LEGACY => StreamKind::Legacy,
        streams::BLOCKING => StreamKind::Blocking,
        streams::NON_BLOCKING => StreamKind::NonBlocking,
        _ => StreamKind::Unknown,
    };
    Access { to, from: (from != 0).then_some(from), stream }
}
