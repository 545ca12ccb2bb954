//! The record that was signed last, and the file outside of the folder that keeps it.

use crate::folder::{Folder, NOWHERE, start_head};
use crate::options::DirectoryHead;
use hekaton_directory_server::{Head, read_head};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use serde_json::json;
use std::path::Path;

pub(crate) fn run(command: &DirectoryHead, json: bool) -> Result<(), Failure> {
    let mut folder = Folder::read(&command.folder)?;
    if let Some(path) = &command.file {
        start_head(&mut folder, path, command.expect_head.as_deref())?;
    }
    let read = |path: &Path| read_head(path).or_fail(exit::BAD_FILE);
    let inner = read(&folder.inner_head())?;
    let outer = folder.head().map(|path| read(path).map(|head| (path, head))).transpose()?;
    let Head { commit, epoch, record } = inner;
    let mut lines = format!("epoch    {epoch}, commit {commit}\nrecord   {}", hex::encode(record));
    lines += &match outer {
        None => format!("\nhead     {NOWHERE}"),
        Some((path, head)) if head == inner => format!("\nhead     {}", path.display()),
        Some((path, head)) => format!(
            "\nhead     {} names epoch {}, commit {}; `hekaton directory serve` tells what that means",
            path.display(),
            head.epoch,
            head.commit
        ),
    };
    let object = json!({
        "ok": true, "epoch": epoch, "commit": commit, "record": hex::encode(record), "head": folder.head(),
        "head_epoch": outer.map(|(_, head)| head.epoch), "is_current": outer.map(|(_, head)| head == inner),
    });
    output::result(json, &object, &lines)
}
