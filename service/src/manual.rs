//! Completions for shells and man pages, generated from the definition of a command line.

use crate::program::{Failure, exit, failure};
use clap::Subcommand;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// The commands for completions and man pages, to be flattened into those of a program.
#[derive(Debug, Subcommand)]
pub enum Manual {
    /// Print completions for a shell
    Completions {
        /// The shell; bash reads completions from files in /etc/bash_completion.d
        shell: Shell,
    },
    /// Write the man pages into a directory
    Man {
        /// The directory, made if it does not exist; for example /usr/local/share/man/man1
        directory: PathBuf,
    },
}

impl Manual {
    /// Runs the command for a program, and returns the text to print.
    ///
    /// # Errors
    /// Fails if the directory cannot be made, or a page cannot be written.
    pub fn run(&self, program: clap::Command) -> Result<String, Failure> {
        match self {
            Self::Completions { shell } => Ok(completions(*shell, program)),
            Self::Man { directory } => write_pages(directory, program),
        }
    }
}

/// Returns the completions of a program for a shell.
pub fn completions(shell: Shell, mut program: clap::Command) -> String {
    let name = program.get_name().to_owned();
    // Into memory first: the generator panics if its output is a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut script);
    String::from_utf8_lossy(&script).trim_end().to_owned()
}

/// Writes a page for a program and one for each of its commands, and returns the text to print.
///
/// # Errors
/// Fails if the directory cannot be made, or a page cannot be written.
pub fn write_pages(directory: &Path, program: clap::Command) -> Result<String, Failure> {
    let bad = |why| failure(exit::BAD_FILE, format!("{}: {why}", directory.display()));
    std::fs::create_dir_all(directory).map_err(bad)?;
    let page = directory.join(format!("{}.1", program.get_name()));
    clap_mangen::generate_to(program, directory).map_err(bad)?;
    let (directory, page) = (directory.display(), page.display());
    Ok(format!("wrote the man pages into {directory}; read them with: man {page}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    /// A program
    #[derive(Debug, Parser)]
    #[command(name = "tool", bin_name = "parent tool")]
    struct Tool {
        #[command(subcommand)]
        command: Manual,
    }

    #[test]
    fn completions_have_the_name_of_the_file() {
        let shells = [
            (Shell::Bash, "complete -F _tool -o nosort -o bashdefault -o default tool"),
            (Shell::Zsh, "#compdef tool"),
            (Shell::Fish, "complete -c tool"),
        ];
        for (shell, line) in shells {
            let script = Manual::Completions { shell }.run(Tool::command()).unwrap();
            assert!(script.contains(line) && script.contains("completions"), "{script}");
        }
    }

    #[test]
    fn pages_are_written_into_a_directory() {
        let folder = std::env::temp_dir().join(format!("hekaton-manual-{}", std::process::id()));
        let man = |directory: PathBuf| Manual::Man { directory }.run(Tool::command());
        std::fs::write(&folder, "").unwrap();
        assert_eq!(man(folder.clone()).unwrap_err().code, exit::BAD_FILE);
        std::fs::remove_file(&folder).unwrap();
        let text = man(folder.clone()).unwrap();
        assert!(text.ends_with("tool.1"), "{text}");
        for page in ["tool.1", "tool-man.1", "tool-completions.1"] {
            assert!(std::fs::read_to_string(folder.join(page)).unwrap().contains(".TH"), "{page}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
