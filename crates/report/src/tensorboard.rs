//! For TensorBoard: the figures of a diagnosis as one point of each curve, in an event file.
//!
//! An event file is a sequence of records (length, checksum, bytes, checksum), each of which is an `Event` of TensorFlow's
//! `event.proto`. The curves have the names that the Python package's `log_scalars` writes; one of its tests compares both.

use busbound_diagnosis::Diagnosis;

/// Before the name of each curve.
const PREFIX: &str = "busbound/";

/// Where a point is on the axes of TensorBoard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointAt {
    /// The step of the training.
    pub step: u64,
    /// Seconds since 1970.
    pub time: f64,
}

/// The figures in milliseconds per step, as an event file.
pub fn tensorboard_events(diagnosis: &Diagnosis, at: PointAt) -> Vec<u8> {
    let mut file = record(&event(at, VERSION, |out| text(out, 3, "brain.Event:2")));
    file.extend(record(&event(at, at.step, |out| message(out, 5, &summary(diagnosis)))));
    file
}

/// The first event says the version of the format, at step 0.
const VERSION: u64 = 0;

/// Names and values of the curves.
fn curves(diagnosis: &Diagnosis) -> Vec<(&'static str, f64)> {
    let (time, count) = (&diagnosis.time, diagnosis.window.step_count);
    let headroom = diagnosis.verdict.headroom.as_ref().map(|headroom| headroom.step_if_free_ms);
    let fixed = diagnosis.prize.as_ref().map(|prize| prize.fixed_ms);
    let all = [
        ("compute_ms", Some(time.compute_ms / count)),
        ("copying_only_ms", Some(time.exposed_bus_copy_ms / count)),
        ("communication_only_ms", Some(time.exposed_comm_ms / count)),
        ("idle_ms", Some(time.idle_ms / count)),
        ("step_ms", Some(diagnosis.window.baseline_ms)),
        ("step_without_its_bound_ms", headroom),
        ("step_if_fixed_ms", fixed),
    ];
    all.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .filter(|(_, value)| value.is_finite())
        .collect()
}

fn summary(diagnosis: &Diagnosis) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in curves(diagnosis) {
        let mut point = Vec::new();
        text(&mut point, 1, &format!("{PREFIX}{name}"));
        key(&mut point, 2, Wire::Four);
        point.extend((value as f32).to_le_bytes());
        message(&mut out, 1, &point);
    }
    out
}

fn event(at: PointAt, step: u64, what: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    key(&mut out, 1, Wire::Eight);
    out.extend(at.time.to_le_bytes());
    key(&mut out, 2, Wire::Number);
    number(&mut out, step);
    what(&mut out);
    out
}

/// How protobuf writes a field.
#[derive(Clone, Copy)]
enum Wire {
    Number = 0,
    Eight = 1,
    Bytes = 2,
    Four = 5,
}

fn key(out: &mut Vec<u8>, field: u64, wire: Wire) {
    number(out, field << 3 | wire as u64);
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn message(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    key(out, field, Wire::Bytes);
    number(out, bytes.len() as u64);
    out.extend(bytes);
}

fn text(out: &mut Vec<u8>, field: u64, text: &str) {
    message(out, field, text.as_bytes());
}

/// A record of TensorFlow's files.
fn record(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), bytes, &masked(bytes)].concat()
}

/// Rotated and moved, because a checksum of bytes that contain checksums is weak.
fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// CRC-32C (Castagnoli), bit by bit: an event file has less than a kilobyte.
fn crc32c(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::{crc32c, masked, number, record};

    /// The check value of the polynomial, and one of RFC 3720's test vectors.
    #[test]
    fn the_checksum_is_castagnolis() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn a_record_has_its_length_and_two_checksums() {
        let bytes = record(b"abc");
        assert_eq!(bytes.len(), 8 + 4 + 3 + 4);
        assert_eq!(bytes[..8], [3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[8..12], masked(&bytes[..8]));
        assert_eq!(bytes[15..], masked(b"abc"));
    }

    #[test]
    fn numbers_have_seven_bits_per_byte() {
        let mut out = Vec::new();
        number(&mut out, 300);
        assert_eq!(out, [0xac, 0x02]);
    }
}
