//! How is a database opened so that it is neither changed nor trusted?

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

/// A value longer than this is treated as damage.
const LONGEST_VALUE: i32 = 16 << 20;

/// Opens a database read-only. No other file is read and nothing is written, whatever its journal says.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri(path), flags)?;
    // Without this, a file that is shorter than its header says returns nothing at all.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    // The file is untrusted: its schema may not call functions, and its cells are checked.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(connection)
}

/// The path as an SQLite URI. All but plain characters are escaped, so that no file name is parsed as an option.
fn uri(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = "file:".to_owned();
    let bytes = absolute.as_os_str().as_encoded_bytes();
    if !bytes.starts_with(b"/") {
        uri.push('/');
    }
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(byte.into())
            }
            b'\\' if std::path::MAIN_SEPARATOR == '\\' => uri.push('/'),
            b':' if std::path::MAIN_SEPARATOR == '\\' => uri.push(':'),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(windows, ignore = "absolute paths begin with a drive there")]
    fn file_names_are_never_parsed_as_options() {
        assert_eq!(uri(Path::new("/a/run.sqlite")), "file:/a/run.sqlite?mode=ro&immutable=1");
        assert_eq!(
            uri(Path::new("/a b/50%?mode=rw#x é.sqlite")),
            "file:/a%20b/50%25%3Fmode%3Drw%23x%20%C3%A9.sqlite?mode=ro&immutable=1"
        );
    }
}
