//! Tables and JSON.

use anyhow::Result;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::io::{ErrorKind, Write};

/// A table without lines, whose columns from `numbers` on are aligned to the right.
pub fn table<const N: usize>(header: [&str; N], numbers: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header);
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if i >= numbers {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Prints a table.
pub fn print_table(table: &Table) -> Result<()> {
    print(&table.trim_fmt())
}

/// Prints `value` as JSON.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Prints a line. A reader that has seen enough (`| head`) is not an error.
pub fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}
