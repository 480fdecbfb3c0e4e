//! Files below /sys and /proc from a `.tree` of fixtures/topology: one line per file, its path and its content.

use std::fs;
use std::path::Path;

/// Bytes of a device's configuration that Linux shows to root.
const CONFIGURATION: usize = 4096;

/// Writes a tree as files, as the kernel does. The content of a `config` file is bytes at offsets, in hexadecimal: `100=0d000100 106=1d00`.
pub(crate) fn plant(tree: &str, below: &Path) {
    for line in tree.lines().filter(|line| !line.starts_with('#')) {
        let (path, content) = line.split_once(' ').unwrap();
        let path = below.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if path.ends_with("config") {
            fs::write(path, configuration(content)).unwrap();
        } else {
            fs::write(path, format!("{content}\n")).unwrap();
        }
    }
}

fn configuration(text: &str) -> Vec<u8> {
    let hexadecimal = |text: &str| usize::from_str_radix(text, 16).unwrap();
    let mut bytes = vec![0; CONFIGURATION];
    for part in text.split_whitespace() {
        let (offset, digits) = part.split_once('=').unwrap();
        for (i, at) in (0..digits.len()).step_by(2).zip(hexadecimal(offset)..) {
            bytes[at] = hexadecimal(&digits[i..i + 2]) as u8;
        }
    }
    bytes
}
