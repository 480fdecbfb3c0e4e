//! What do the bytes of an NVTX payload say? The fields that NCCL gives its ranges, where this export's tables say they are.
//!
//! Nsight writes `binaryData` as a header of 32 bytes (domain, schema, size of the payload, and one more number; little-endian) and the
//! payload. `NVTX_PAYLOAD_SCHEMA_ENTRIES` has the name and the offset of each field. A payload whose size is another one is not read.

use super::Reading;
use crate::hash::{HashMap, HashSet};

const TABLE: &str = "NVTX_PAYLOAD_SCHEMA_ENTRIES";
const HEADER: usize = 32;

/// Where the fields that matter begin in a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Fields {
    communicator: Option<usize>,
    bytes: Option<usize>,
    ranks: Option<usize>,
    root: Option<usize>,
    peer: Option<usize>,
    reduction: Option<usize>,
}

impl Fields {
    /// By the names in NCCL's nvtx_payload_schemas.h, and those of earlier versions.
    fn named(&mut self, name: &str) -> Option<&mut Option<usize>> {
        Some(match name {
            "NCCL communicator ID" => &mut self.communicator,
            "Message size [bytes]" | "Bytes" => &mut self.bytes,
            "No. of ranks" => &mut self.ranks,
            "Root" => &mut self.root,
            "Peer rank" => &mut self.peer,
            "Reduction operation" => &mut self.reduction,
            _ => return None,
        })
    }
}

/// What a call of NCCL says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Payload {
    /// The same number on all ranks of a communicator.
    pub(super) communicator: Option<u64>,
    /// Of one message, as the call counts them: what one rank sends or gets, or what it sends one peer.
    pub(super) bytes: Option<u64>,
    pub(super) ranks: Option<u32>,
    pub(super) root: Option<u32>,
    pub(super) peer: Option<u32>,
    /// The number in NCCL's `ncclRedOp_t`.
    pub(super) reduction: Option<u32>,
}

/// The fields of payloads, by domain and schema.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    /// `None` if two processes mean different fields by one number.
    by_number: HashMap<(i64, u64), Option<Fields>>,
    domains: HashSet<i64>,
}

impl Schemas {
    pub(super) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    pub(super) fn has_domain(&self, domain: i64) -> bool {
        self.domains.contains(&domain)
    }

    fn add(&mut self, domain: i64, schema: u64, name: &str, offset: usize) {
        let mut fields = Fields::default();
        if fields.named(name).is_none() {
            return;
        }
        self.domains.insert(domain);
        let known = self.by_number.entry((domain, schema)).or_insert(Some(fields));
        let is_same = known
            .as_mut()
            .and_then(|fields| fields.named(name))
            .is_some_and(|field| *field.get_or_insert(offset) == offset);
        if !is_same {
            *known = None;
        }
    }

    /// `None` for a payload of another layout; empty for one without fields that matter.
    pub(super) fn read(&self, domain: i64, data: &[u8]) -> Option<Payload> {
        let size = usize::try_from(number(data, 16)?).ok()?;
        let payload = data.get(HEADER..).filter(|payload| payload.len() == size)?;
        let Some(fields) = self.by_number.get(&(domain, number(data, 8)?)) else {
            return Some(Payload::default());
        };
        let fields = fields.as_ref()?;
        let large = |field: Option<usize>| number(payload, field?);
        let small = |field: Option<usize>| {
            let from = field?;
            let bytes: [u8; 4] = payload.get(from..from.checked_add(4)?)?.try_into().ok()?;
            u32::try_from(i32::from_le_bytes(bytes)).ok()
        };
        Some(Payload {
            communicator: large(fields.communicator),
            bytes: large(fields.bytes),
            ranks: small(fields.ranks),
            root: small(fields.root),
            peer: small(fields.peer),
            reduction: small(fields.reduction),
        })
    }
}

fn number(data: &[u8], from: usize) -> Option<u64> {
    Some(u64::from_le_bytes(data.get(from..from.checked_add(8)?)?.try_into().ok()?))
}

impl Reading<'_, '_> {
    pub(super) fn read_schemas(&mut self) -> Schemas {
        let mut schemas = Schemas::default();
        self.each(TABLE, &["domainId", "schemaId", "name", "offset"], &mut |_, row| {
            // The first field has no offset.
            let offset = if row.is_empty(3) { Some(0) } else { row.unsigned(3) };
            let offset = offset.and_then(|offset| usize::try_from(offset).ok());
            if let (Some(domain), Some(schema), Some(name), Some(offset)) =
                (row.integer(0), row.unsigned(1), row.text_ref(2), offset)
            {
                schemas.add(domain, schema, &name, offset);
            }
        });
        schemas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas() -> Schemas {
        let mut schemas = Schemas::default();
        for (name, offset) in [("NCCL communicator ID", 0), ("Message size [bytes]", 8), ("Root", 16)] {
            schemas.add(1, 6, name, offset);
        }
        schemas
    }

    fn data(size: u64, payload: &[u8]) -> Vec<u8> {
        let header = [1, 6, size, 32].map(u64::to_le_bytes).concat();
        [&header[..], payload].concat()
    }

    #[test]
    fn only_payloads_of_their_own_size_are_read() {
        let payload = [77_u64.to_le_bytes(), 4096_u64.to_le_bytes(), 3_u64.to_le_bytes()].concat();
        let read = schemas().read(1, &data(24, &payload));
        let expected =
            Payload { communicator: Some(77), bytes: Some(4096), root: Some(3), ..Payload::default() };
        assert_eq!(read, Some(expected));
        for (domain, data) in [(1, data(24, &payload[..23])), (1, data(u64::MAX, &payload)), (1, Vec::new())]
        {
            assert_eq!(schemas().read(domain, &data), None);
        }
        // Another library's.
        assert_eq!(schemas().read(2, &data(24, &payload)), Some(Payload::default()));
        // Fields beyond its end are unknown.
        let short = schemas().read(1, &data(8, &payload[..8])).unwrap();
        assert_eq!((short.communicator, short.bytes, short.root), (Some(77), None, None));
    }

    /// Two processes number their schemas on their own.
    #[test]
    fn a_number_that_means_two_layouts_is_not_read() {
        let payload = [77_u64.to_le_bytes(), 4096_u64.to_le_bytes(), 3_u64.to_le_bytes()].concat();
        let mut several = schemas();
        several.add(1, 6, "Message size [bytes]", 8);
        assert!(several.read(1, &data(24, &payload)).is_some());
        several.add(1, 6, "Message size [bytes]", 0);
        assert_eq!(several.read(1, &data(24, &payload)), None);
        // Not even if the first one comes again.
        several.add(1, 6, "Message size [bytes]", 8);
        assert_eq!(several.read(1, &data(24, &payload)), None);
    }
}
