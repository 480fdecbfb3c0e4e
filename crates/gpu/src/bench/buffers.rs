//! Buffers that consecutive tasks share: allocating 1 GiB of pinned memory takes longer than measuring with it.

use busbound_machine::bench::{MOST_BLOCKS, Memory};

use crate::driver::{BlockTable, DeviceBuffer, HostBuffer, ManagedBuffer, Result, mix};

/// At most one buffer per side; another kind or a larger one replaces it.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    host: Option<(Memory, Filled)>,
    device: Option<DeviceBuffer>,
    managed: Option<ManagedBuffer>,
    staging: Option<Staging>,
}

/// Contiguous memory on both sides that blocks are gathered in, and the table that kernels find the blocks with.
#[derive(Debug)]
pub(super) struct Staging {
    pub(super) host: HostBuffer,
    pub(super) device: DeviceBuffer,
    pub(super) table: BlockTable,
}

/// Host memory in which word i is `mix(i + SEED)`, unless copies have overwritten it.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) buffer: HostBuffer,
    overwritten: bool,
}

/// The seed of the host memory pattern.
pub(super) const SEED: u64 = 1;

impl Filled {
    pub(super) fn new(bytes: u64, memory: Memory) -> Result<Self> {
        let mut filled = Self { buffer: HostBuffer::new(bytes, memory)?, overwritten: true };
        filled.restore();
        Ok(filled)
    }

    pub(super) fn restore(&mut self) {
        if std::mem::take(&mut self.overwritten) {
            for (i, word) in self.buffer.words_mut().iter_mut().enumerate() {
                *word = mix(i as u64 + SEED);
            }
        }
    }

    /// Call before copies to the host.
    pub(super) fn will_be_overwritten(&mut self) {
        self.overwritten = true;
    }

    /// Whether it contains, from `at` on, what the device was filled with. Reading write-combined memory is very
    /// slow, so it is checked only once per page.
    pub(super) fn holds(&self, at: u64, bytes: u64, seed: u64, memory: Memory) -> bool {
        let step = if memory == Memory::WriteCombined && bytes > 1 << 20 { 512 } else { 1 };
        let words = &self.buffer.words()[(at / 8) as usize..((at + bytes) / 8) as usize];
        words.iter().enumerate().step_by(step).all(|(i, word)| *word == mix(i as u64 + seed))
    }
}

impl Buffers {
    /// Takes the staging memory out; [`Buffers::prepare`] frees what is still inside, because few suites need it.
    pub(super) fn take_staging(&mut self, bytes: u64) -> Result<Staging> {
        match self.staging.take().filter(|staging| staging.host.bytes() >= bytes) {
            Some(staging) => Ok(staging),
            None => Ok(Staging {
                host: HostBuffer::new(bytes, Memory::Pinned)?,
                device: DeviceBuffer::new(bytes)?,
                table: BlockTable::new(MOST_BLOCKS)?,
            }),
        }
    }

    pub(super) fn give_staging(&mut self, staging: Staging) {
        self.staging = Some(staging);
    }

    /// Allocates the buffers if they do not exist or are too small.
    pub(super) fn prepare(&mut self, memory: Memory, bytes: u64) -> Result<(&mut Filled, &DeviceBuffer)> {
        self.staging = None;
        if self.device.as_ref().is_none_or(|device| device.bytes() < bytes) {
            self.device = None;
            self.device = Some(DeviceBuffer::new(bytes)?);
        }
        if self.host.as_ref().is_none_or(|(kind, filled)| *kind != memory || filled.buffer.bytes() < bytes) {
            self.host = None;
            self.host = Some((memory, Filled::new(bytes, memory)?));
        }
        match (&mut self.host, &self.device) {
            (Some((_, host)), Some(device)) => Ok((host, device)),
            _ => unreachable!("both were just made"),
        }
    }

    pub(super) fn managed(&mut self, bytes: u64) -> Result<&ManagedBuffer> {
        self.host = None;
        self.device = None;
        if self.managed.as_ref().is_none_or(|managed| managed.as_device().bytes() < bytes) {
            self.managed = None;
            self.managed = Some(ManagedBuffer::new(bytes)?);
        }
        match &self.managed {
            Some(managed) => Ok(managed),
            None => unreachable!("it was just made"),
        }
    }

    /// Frees everything, for suites with their own buffers.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pageable memory is the only kind that needs no driver.
    #[test]
    fn overwritten_memory_is_detected_and_restored() {
        let mut filled = Filled::new(4096, Memory::Pageable).unwrap();
        let all_is_there = |filled: &Filled| filled.holds(0, 4096, SEED, Memory::Pageable);
        assert!(all_is_there(&filled));
        // From the second half on, the pattern continues after the seed.
        assert!(filled.holds(2048, 1024, SEED + 256, Memory::Pageable));
        filled.buffer.words_mut()[511] ^= 1;
        assert!(!all_is_there(&filled));
        // Without a call to `will_be_overwritten` it is left as it is.
        filled.restore();
        assert!(!all_is_there(&filled));
        filled.will_be_overwritten();
        filled.restore();
        assert!(all_is_there(&filled));
    }
}
