//! Which tables and columns does this database have, and which rows can still be read?
//!
//! Exports differ by version, and files are cut and damaged. So everything is looked up, and reading continues after
//! a damaged part of a table.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

/// A value longer than this is treated as damage.
const LONGEST_VALUE: i32 = 16 << 20;

/// How far after damage to try the next row; doubles while no row is found.
const FIRST_SKIP: i64 = 16;

/// SQLite's names for the row number. A column with that name hides it, and tables `WITHOUT ROWID` have none.
const ROW_NUMBERS: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// Bytes of an empty row, including its pointer on the page.
const SMALLEST_ROW: u64 = 4;

/// Max damaged parts of one table to skip.
const MAX_DETOURS: u32 = 1_000;

pub(super) struct Database {
    connection: Connection,
    /// Tables by their uppercase name.
    tables: BTreeMap<String, Table>,
    /// Max rows that a file of this size can have. Pages that share children could return rows forever.
    most_rows: u64,
}

pub(super) struct Table {
    pub(super) name: String,
    columns: Vec<String>,
    /// The name of its row number, if its rows have one.
    row_number: Option<&'static str>,
    /// The number of its last row, which is about its row count.
    pub(super) rows: u64,
}

impl Table {
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|known| known.eq_ignore_ascii_case(column))
    }
}

/// How reading the rows of a table ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    /// Some rows could not be read: at most this many, if known.
    Damaged {
        at_most: Option<u64>,
    },
    /// The caller wanted no more rows.
    Stopped,
}

/// The rows of a table that were read, to compute how many were not.
#[derive(Debug, Default)]
struct Taken {
    count: u64,
    /// Some row number is beyond the last row's, or below one: then row numbers are not usable.
    is_odd: bool,
}

impl Taken {
    fn add(&mut self, number: i64, table: &Table) {
        self.count += 1;
        self.is_odd |= !u64::try_from(number).is_ok_and(|number| (1..=table.rows).contains(&number));
    }

    /// Row numbers ascend and are unique, so the last row number is an upper bound of the row count. Counting gaps
    /// between the rows read is not enough: a damaged row number can skip rows without leaving a gap.
    fn at_most_lost(&self, table: &Table) -> Option<u64> {
        // If the last row cannot be found either, its number is zero.
        let is_known = table.rows > 0 && !self.is_odd;
        table.rows.checked_sub(self.count).filter(|_| is_known)
    }
}

/// Whether to read further rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Row,
    Stop,
}

/// One row, with its values in the order of the requested columns. A column that the table lacks is empty.
pub(super) struct Row<'a> {
    values: &'a rusqlite::Row<'a>,
    places: &'a [Option<usize>],
}

impl Row<'_> {
    fn value(&self, column: usize) -> ValueRef<'_> {
        let place = self.places.get(column).copied().flatten();
        place.and_then(|place| self.values.get_ref(place).ok()).unwrap_or(ValueRef::Null)
    }

    pub(super) fn is_empty(&self, column: usize) -> bool {
        matches!(self.value(column), ValueRef::Null)
    }

    pub(super) fn integer(&self, column: usize) -> Option<i64> {
        match self.value(column) {
            ValueRef::Integer(number) => Some(number),
            // Some converters write integers as floats.
            ValueRef::Real(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(number as i64),
            // Others give every column the type text.
            ValueRef::Text(digits) => std::str::from_utf8(digits).ok()?.trim().parse().ok(),
            _ => None,
        }
    }

    pub(super) fn unsigned(&self, column: usize) -> Option<u64> {
        u64::try_from(self.integer(column)?).ok()
    }

    pub(super) fn text(&self, column: usize) -> Option<String> {
        self.text_ref(column).map(Cow::into_owned)
    }

    /// Without a copy, for rows that are many.
    pub(super) fn text_ref(&self, column: usize) -> Option<Cow<'_, str>> {
        match self.value(column) {
            ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes)),
            ValueRef::Integer(number) => Some(number.to_string().into()),
            _ => None,
        }
    }
}

impl Database {
    /// Opens it read-only. No other file is read and nothing is written, whatever its journal says.
    pub(super) fn open(path: &Path) -> rusqlite::Result<Self> {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri(path), flags)?;
        // Without this, a file that is shorter than its header says returns nothing at all.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
        // The file is untrusted: its schema may not call functions, and its cells are checked.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        let most_rows = std::fs::metadata(path).map_or(0, |about| about.len() / SMALLEST_ROW);
        let mut database = Self { connection, tables: BTreeMap::new(), most_rows };
        database.look_up_tables()?;
        Ok(database)
    }

    fn look_up_tables(&mut self) -> rusqlite::Result<()> {
        // Views and virtual tables are programs, not data.
        let query = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0";
        let mut statement = self.connection.prepare(query)?;
        let mut rows = statement.query([])?;
        let mut names = Vec::new();
        // Use what is left of a damaged list of tables.
        while let Ok(Some(row)) = rows.next() {
            names.extend(row.get::<_, String>(0));
        }
        drop(rows);
        drop(statement);
        for name in names {
            if let Ok(table) = self.look_up(&name) {
                self.tables.insert(name.to_ascii_uppercase(), table);
            }
        }
        Ok(())
    }

    fn look_up(&self, name: &str) -> rusqlite::Result<Table> {
        let mut columns = Vec::new();
        let mut hidden = Vec::new();
        self.connection.pragma(None, "table_xinfo", name, |row| {
            // Computed columns are programs, not data.
            let list = if row.get::<_, i64>("hidden")? == 0 { &mut columns } else { &mut hidden };
            list.push(row.get::<_, String>("name")?);
            Ok(())
        })?;
        let is_column = |name: &&str| {
            columns.iter().chain(&hidden).any(|known: &String| known.eq_ignore_ascii_case(name))
        };
        let row_number = ROW_NUMBERS.into_iter().find(|name| !is_column(name));
        let row_number = row_number.filter(|number| {
            self.connection.prepare(&format!("SELECT {number} FROM {}", quoted(name))).is_ok()
        });
        let last = match row_number {
            Some(number) => format!("SELECT max({number}) FROM {}", quoted(name)),
            None => format!(
                "SELECT count(*) FROM (SELECT 1 FROM {} NOT INDEXED LIMIT {})",
                quoted(name),
                self.most_rows
            ),
        };
        let last: rusqlite::Result<Option<i64>> = self.connection.query_row(&last, [], |row| row.get(0));
        let last = last.unwrap_or_else(|_| {
            self.forget_pages();
            None
        });
        let rows = last.and_then(|last| u64::try_from(last).ok()).unwrap_or(0);
        Ok(Table { name: name.to_owned(), columns, row_number, rows })
    }

    /// The table of this name, and its later versions: `…_MEMCPY`, `…_MEMCPY_V2`.
    pub(super) fn versions_of(&self, name: &str) -> Vec<&Table> {
        let is_version = |table: &&Table| {
            let upper = table.name.to_ascii_uppercase();
            upper.strip_prefix(name).is_some_and(|rest| {
                let number = rest.strip_prefix("_V").unwrap_or_default();
                rest.is_empty() || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        let mut found: Vec<_> = self.tables.values().filter(is_version).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    pub(super) fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(&name.to_ascii_uppercase())
    }

    /// Every table, ordered by name.
    pub(super) fn tables(&self) -> Vec<&Table> {
        let mut tables: Vec<_> = self.tables.values().collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        tables
    }

    /// SQLite treats a damaged page as intact when it finds the page in its cache again, and then reads beyond its
    /// end. So the page must be loaded again.
    fn forget_pages(&self) {
        let _ = self.connection.execute_batch("PRAGMA shrink_memory");
    }

    /// Calls back with the rows of a table, in file order, with these columns.
    pub(super) fn each_row(
        &self,
        table: &Table,
        columns: &[&str],
        take: &mut dyn FnMut(&Row<'_>) -> Next,
    ) -> End {
        let mut places = Vec::new();
        let mut selected = Vec::new();
        for column in columns {
            let known = table.columns.iter().find(|known| known.eq_ignore_ascii_case(column));
            places.push(known.map(|known| {
                selected.push(quoted(known));
                selected.len()
            }));
        }
        let selected: String = selected.iter().map(|column| format!(", {column}")).collect();
        let Some(number) = table.row_number else {
            return self.each_unnumbered_row(table, &selected, &places, take);
        };
        // By row number, so that reading can continue after a lost page.
        let query = format!(
            "SELECT {number}{selected} FROM {} NOT INDEXED WHERE {number} > ? ORDER BY {number}",
            quoted(&table.name)
        );
        let unknown = End::Damaged { at_most: None };
        let Ok(mut statement) = self.connection.prepare(&query) else { return unknown };
        let (mut last, mut skip, mut detours) = (i64::MIN, FIRST_SKIP, 0);
        let mut taken = Taken::default();
        loop {
            let mut found = false;
            let Ok(mut rows) = statement.query([last]) else { return unknown };
            loop {
                match rows.next() {
                    Ok(Some(values)) => {
                        // Pages that form a cycle return the same rows again and again.
                        let Some(number) = values.get(0).ok().filter(|number| *number > last) else { break };
                        last = number;
                        found = true;
                        taken.add(number, table);
                        if take(&Row { values, places: &places }) == Next::Stop {
                            return End::Stopped;
                        }
                    }
                    Ok(None) if detours == 0 => return End::Whole,
                    Ok(None) => return End::Damaged { at_most: taken.at_most_lost(table) },
                    Err(_) => break,
                }
            }
            drop(rows);
            self.forget_pages();
            detours += 1;
            skip = if found { FIRST_SKIP } else { skip.saturating_mul(2) };
            let next = last.max(0).checked_add(skip);
            let Some(next) = next.filter(|_| detours < MAX_DETOURS) else {
                return End::Damaged { at_most: taken.at_most_lost(table) };
            };
            last = next;
        }
    }

    /// Rows without a usable row number: everything after the first damage is lost.
    fn each_unnumbered_row(
        &self,
        table: &Table,
        selected: &str,
        places: &[Option<usize>],
        take: &mut dyn FnMut(&Row<'_>) -> Next,
    ) -> End {
        let query = format!("SELECT NULL{selected} FROM {} NOT INDEXED", quoted(&table.name));
        let damaged = End::Damaged { at_most: None };
        let Ok(mut statement) = self.connection.prepare(&query) else { return damaged };
        let Ok(mut rows) = statement.query([]) else { return damaged };
        for _ in 0..=self.most_rows {
            match rows.next() {
                Ok(Some(values)) if take(&Row { values, places }) == Next::Stop => return End::Stopped,
                Ok(Some(_)) => {}
                Ok(None) => return End::Whole,
                Err(_) => break,
            }
        }
        drop(rows);
        self.forget_pages();
        damaged
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
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
