//! CRC-32 as in gzip. Implemented here because the injected library is compiled without dependencies.

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
}

pub fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8);
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_standard_crc32() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
