//! Which tables and columns does this database have, and which rows can still be read?
//!
//! Exports differ by version, and files are cut and damaged. So everything is looked up, and reading continues after
//! a damaged part of a table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::ahead::Ahead;
use super::connection::connect;
use super::rows::{Next, Row, Rows, Stored};

/// How far after damage to try the next row; doubles while no row is found.
const FIRST_SKIP: i64 = 16;

/// SQLite's names for the row number. A column with that name hides it, and tables `WITHOUT ROWID` have none.
const ROW_NUMBERS: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// Bytes of an empty row, including its pointer on the page.
const SMALLEST_ROW: u64 = 4;

/// Max damaged parts of one table to skip.
const MAX_DETOURS: u32 = 1_000;

pub(super) struct Database {
    path: PathBuf,
    connection: Connection,
    threads: usize,
    /// Tables by their uppercase name.
    tables: BTreeMap<String, Table>,
    /// Max rows that a file of this size can have. Pages that share children could return rows forever.
    most_rows: u64,
}

pub(super) struct Table {
    pub(super) name: String,
    columns: Vec<Column>,
    /// Its first page, and whether its rows are stored with exactly these columns.
    root: u32,
    is_plain: bool,
    /// The name of its row number, if its rows have one.
    row_number: Option<&'static str>,
    /// The number of its last row, which is about its row count.
    pub(super) rows: u64,
}

struct Column {
    name: String,
    /// Whether its values are stored as they are: numbers of the row are not, and some whole numbers of other columns are
    /// stored as integers.
    is_plain: bool,
}

impl Column {
    fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let is_key = row.get::<_, i64>("pk")? != 0;
        let kind = row.get::<_, String>("type").unwrap_or_default().to_ascii_uppercase();
        let is_real = ["REAL", "FLOA", "DOUB"].iter().any(|part| kind.contains(part));
        Ok(Self { name: row.get("name")?, is_plain: !is_key && !is_real })
    }

    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl Table {
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|known| known.is(column))
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

impl Database {
    /// Opens it, to be read on this many threads.
    pub(super) fn open(path: &Path, threads: usize) -> rusqlite::Result<Self> {
        let connection = connect(path)?;
        let most_rows = std::fs::metadata(path).map_or(0, |about| about.len() / SMALLEST_ROW);
        let mut database =
            Self { path: path.to_owned(), connection, threads, tables: BTreeMap::new(), most_rows };
        database.look_up_tables()?;
        Ok(database)
    }

    fn look_up_tables(&mut self) -> rusqlite::Result<()> {
        // Views and virtual tables are programs, not data.
        let query = "SELECT name, rootpage FROM sqlite_master WHERE type = 'table' AND rootpage > 0";
        let mut statement = self.connection.prepare(query)?;
        let mut rows = statement.query([])?;
        let mut names = Vec::new();
        // Use what is left of a damaged list of tables.
        while let Ok(Some(row)) = rows.next() {
            let root = row.get::<_, u32>(1).unwrap_or(0);
            names.extend(row.get::<_, String>(0).map(|name| (name, root)));
        }
        drop(rows);
        drop(statement);
        for (name, root) in names {
            if let Ok(table) = self.look_up(&name, root) {
                self.tables.insert(name.to_ascii_uppercase(), table);
            }
        }
        Ok(())
    }

    fn look_up(&self, name: &str, root: u32) -> rusqlite::Result<Table> {
        let mut columns = Vec::new();
        let mut hidden = Vec::new();
        self.connection.pragma(None, "table_xinfo", name, |row| {
            // Computed columns are programs, not data.
            let list = if row.get::<_, i64>("hidden")? == 0 { &mut columns } else { &mut hidden };
            list.push(Column::of(row)?);
            Ok(())
        })?;
        let is_column = |name: &&str| columns.iter().chain(&hidden).any(|known: &Column| known.is(name));
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
        Ok(Table { name: name.to_owned(), is_plain: hidden.is_empty(), columns, root, row_number, rows })
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
        let wanted = Wanted::of(table, columns);
        let Some(number) = table.row_number else {
            return self.each_unnumbered_row(table, &wanted, take);
        };
        // By row number, so that reading can continue after a lost page.
        let (selected, name) = (&wanted.selected, quoted(&table.name));
        let query =
            format!("SELECT {number}{selected} FROM {name} NOT INDEXED WHERE {number} > ? ORDER BY {number}");
        let mut taken = Taken::default();
        let mut take_part = |rows: &Rows| {
            for row in rows.iter() {
                taken.count += 1;
                if take(&row) == Next::Stop {
                    return Next::Stop;
                }
            }
            Next::Row
        };
        let stopped = match wanted.is_plain {
            false => Next::Row,
            true => {
                let (path, threads, columns) = (self.path.as_path(), self.threads, wanted.count);
                let (stored, rows) = (wanted.stored.as_slice(), table.rows);
                Ahead { path, threads, root: table.root, stored, columns, rows }.each_part(&mut take_part)
            }
        };
        match stopped {
            Next::Stop => End::Stopped,
            Next::Row => self.each_row_after(taken, table, &query, &wanted, take),
        }
    }

    /// The rows after those taken, which have the first numbers.
    fn each_row_after(
        &self,
        mut taken: Taken,
        table: &Table,
        query: &str,
        wanted: &Wanted,
        take: &mut dyn FnMut(&Row<'_>) -> Next,
    ) -> End {
        let unknown = End::Damaged { at_most: None };
        let Ok(mut statement) = self.connection.prepare(query) else { return unknown };
        let (mut skip, mut detours) = (FIRST_SKIP, 0);
        let mut last = i64::try_from(taken.count).ok().filter(|last| *last > 0).unwrap_or(i64::MIN);
        let mut row = Rows::of(wanted.count);
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
                        if row.take_only(values, &wanted.stored, take) == Next::Stop {
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
        wanted: &Wanted,
        take: &mut dyn FnMut(&Row<'_>) -> Next,
    ) -> End {
        let query = format!("SELECT NULL{} FROM {} NOT INDEXED", wanted.selected, quoted(&table.name));
        let damaged = End::Damaged { at_most: None };
        let Ok(mut statement) = self.connection.prepare(&query) else { return damaged };
        let Ok(mut rows) = statement.query([]) else { return damaged };
        let mut row = Rows::of(wanted.count);
        for _ in 0..=self.most_rows {
            match rows.next() {
                Ok(Some(values)) if row.take_only(values, &wanted.stored, take) == Next::Stop => {
                    return End::Stopped;
                }
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

/// The columns to read from a table.
struct Wanted {
    /// In SQL, in the order of the table, with a comma before each.
    selected: String,
    /// How many columns are asked for, also those that the table lacks.
    count: usize,
    /// Those that it has, in its order.
    stored: Vec<Stored>,
    /// Whether they are stored as they are; otherwise only SQLite can read them.
    is_plain: bool,
}

impl Wanted {
    fn of(table: &Table, columns: &[&str]) -> Self {
        let position = |column: &&str| table.columns.iter().position(|known| known.is(column));
        let placed = columns.iter().enumerate();
        let mut stored: Vec<Stored> = placed
            .filter_map(|(place, column)| Some(Stored { position: position(column)?, place }))
            .collect();
        stored.sort_by_key(|column| column.position);
        let of = |column: &Stored| &table.columns[column.position];
        let selected = stored.iter().map(|column| format!(", {}", quoted(&of(column).name))).collect();
        let is_plain = table.is_plain && stored.iter().all(|column| of(column).is_plain);
        Self { selected, count: columns.len(), stored, is_plain }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
