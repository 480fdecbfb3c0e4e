//! How much data is in a file, before it is read? Its size, or for gzip the uncompressed size in its last bytes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Typical compression ratio of profiler traces.
const TYPICAL_RATIO: u64 = 16;
/// No trace compresses this well: the last bytes are not the end of a complete file.
const MAX_RATIO: u64 = 64;

/// Uncompressed bytes in the file; an estimate if it has several members, is cut off, or is over 4 GiB.
///
/// # Errors
/// If the file cannot be opened or read.
pub fn unpacked_size(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut magic = [0; 2];
    if size < 18 || file.read_exact(&mut magic).is_err() || magic != [0x1f, 0x8b] {
        return Ok(size);
    }
    file.seek(SeekFrom::End(-4))?;
    let mut last = [0; 4];
    file.read_exact(&mut last)?;
    // The size modulo 2³², only of the last member.
    let recorded = u64::from(u32::from_le_bytes(last));
    Ok(if (size..size * MAX_RATIO).contains(&recorded) { recorded } else { size * TYPICAL_RATIO })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_complete_and_cut_files_have_a_size() -> io::Result<()> {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        let plain = fixture.join("hostile/damaged.json");
        assert_eq!(unpacked_size(&plain)?, std::fs::metadata(&plain)?.len());
        assert_eq!(unpacked_size(&fixture.join("launch_bound.json.gz"))?, 5_175_619);
        let cut = fixture.join("hostile/cut_in_gpu.json.gz");
        assert_eq!(unpacked_size(&cut)?, 24_586 * TYPICAL_RATIO);
        assert!(unpacked_size(Path::new("no/such/file")).is_err());
        Ok(())
    }
}
