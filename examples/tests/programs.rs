//! The programs as users run them: one circuit each, on threads and on MPI ranks.

use std::path::PathBuf;
use std::process::{Command, Output};

const MATRIX: &str = env!("CARGO_BIN_EXE_matrix");

struct Files(tempfile::TempDir);

impl Files {
    /// An input file of the matrix example, and keys for it.
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        let input = r#"{"a": [[1, 2], [3, 4], [5, 6]], "b": [[7, 8], [9, 10]]}"#;
        std::fs::write(files.path("input"), input).unwrap();
        let sizes = ["rows=3", "inner=2", "columns=2", "block=2"];
        let mut command = Command::new(MATRIX);
        // A program with one circuit does not ask for its name.
        command.args(["setup", "--insecure-seed", "1", "--keys"]).arg(files.path("keys"));
        command.args(sizes.iter().flat_map(|size| ["-p", size]));
        succeeded(&command.output().unwrap());
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Proves with a fixed seed, and returns the proof.
    fn prove(&self, mut launch: Command, proof: &str, more: &[&str]) -> Result<Vec<u8>, String> {
        let (keys, input, proof) = (self.path("keys"), self.path("input"), self.path(proof));
        launch.arg("prove").arg(input).arg("--keys").arg(keys).arg("--proof").arg(&proof);
        let output = launch.args(["--insecure-seed", "7"]).args(more).output().unwrap();
        match output.status.success() {
            true => Ok(std::fs::read(proof).unwrap()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

fn succeeded(output: &Output) -> String {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    out.into_owned()
}

/// The sum of the entries of the product is that of A times that of B, column by column:
/// (1 + 3 + 5) (7 + 9) + (2 + 4 + 6) (8 + 10).
const TOTAL: u64 = 9 * 16 + 12 * 18;

#[test]
fn one_circuit_has_a_whole_program() {
    let files = Files::new();
    files.prove(Command::new(MATRIX), "proof", &[]).unwrap();
    let verify = |public: &str| {
        let mut command = Command::new(MATRIX);
        command.arg("verify").arg(files.path("proof")).args(["--accept-test-keys", "--key"]);
        command.arg(files.path("keys/verifying.key")).args(["--public", public]);
        command.output().unwrap()
    };
    // The circuit has no text form of its own, so public values are JSON.
    let said = succeeded(&verify(&format!("{{\"total\": {TOTAL}}}")));
    assert!(said.contains(&format!("{{\"total\":\"{TOTAL}\"}}")), "{said}");
    assert_eq!(verify(&format!("{{\"total\": {}}}", TOTAL + 1)).status.code(), Some(1));
    assert_eq!(verify("{\"sum\": 1}").status.code(), Some(2));
    assert_eq!(verify("1").status.code(), Some(2));
    let check = Command::new(MATRIX)
        .arg("check")
        .arg(files.path("input"))
        .args(["-p", "rows=3", "-p", "inner=2", "-p", "columns=2", "-p", "block=2", "--unique"])
        .output()
        .unwrap();
    let text = succeeded(&check);
    assert!(text.contains("outputs") && !text.contains("undecided"), "{text}");
    let help = Command::new(MATRIX).args(["prove", "--help"]).output().unwrap();
    let help = succeeded(&help);
    assert!(help.contains("matrix prove FILE --keys"), "{help}");
}

/// On three ranks, the proof has the bytes of the local engine.
#[test]
fn three_ranks_make_the_same_proof() {
    let files = Files::new();
    let local = files.prove(Command::new(MATRIX), "local", &[]).unwrap();
    let mut launch = Command::new("mpirun");
    launch.args(["--oversubscribe", "-n", "3", MATRIX]);
    launch.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    match files.prove(launch, "ranks", &["--mpi", "--provers-per-rank", "1"]) {
        Ok(ranks) => assert_eq!(ranks, local),
        // `scripts/test` builds with MPI; a plain `cargo test` need not.
        Err(why) if why.contains("was built without MPI") => {}
        Err(why) => panic!("{why}"),
    }
}

/// A key directory, from its first label to an audit by somebody who has its parameters and the keys of its proofs.
#[test]
fn a_key_directory_is_audited() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_key-directory"));
    let output = command.args(["--keys", "2", "--changes", "1", "--steps", "1"]).output().unwrap();
    let said = succeeded(&output);
    for expected in [
        "3 epochs are signed, with 2 labels",
        "epochs 0 to 3 are audited",
        "'label 0' is 'key 0, epoch 2', version 2, after 3 values",
        "'nobody' is not in the directory",
    ] {
        assert!(said.contains(expected), "{said}");
    }
}

/// Texts of a program name its own circuit, and neither other circuits nor commands that it does not have.
#[test]
fn a_program_speaks_of_its_own_circuit() {
    let pages = tempfile::tempdir().unwrap();
    let called = |arguments: &[&str]| {
        let output = Command::new(MATRIX).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // A page has what `--help` has, for each command.
    succeeded(&Command::new(MATRIX).arg("man").arg(pages.path()).output().unwrap());
    let mut count = 0;
    for page in std::fs::read_dir(pages.path()).unwrap() {
        let page = page.unwrap();
        let text = std::fs::read_to_string(page.path()).unwrap();
        for word in ["merkle", "hekaton ", ".wtns", ".hk", "vm setup", "imported"] {
            let line = text.lines().find(|line| line.contains(word));
            assert_eq!(line, None, "{word} in {}", page.path().display());
        }
        count += 1;
    }
    assert!(count > 20, "{count} pages");
    let help = succeeded(&Command::new(MATRIX).args(["setup", "--help"]).output().unwrap());
    assert!(help.contains("matrix setup --for FILE --keys FILE.keys"), "{help}");
    assert!(help.contains("matrix setup --keys matrix.keys"), "{help}");

    for (arguments, says) in [
        (&["setup", "-p", "rows=many", "--keys", "k"][..], "parameter 'rows' of circuit 'matrix'"),
        (&["setup", "x.hk", "--keys", "k"], "matrix does not import circuits of other tools"),
        (&["prove", "Cargo.toml", "--keys", "none"], "`matrix setup`"),
        (&["vm", "run", "x"], "unrecognized subcommand 'vm'"),
    ] {
        let (code, errors) = called(arguments);
        assert!(code != Some(0) && errors.contains(says), "{arguments:?}: {errors}");
    }
    // What a layout refuses may be due to parameters.
    let powers = env!("CARGO_BIN_EXE_powers");
    let setup = ["setup", "-p", "squares=0", "--keys", "k"];
    let output = Command::new(powers).args(setup).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("layout: output 'power[0]' is already public"), "{errors}");
    assert!(errors.trim_end().ends_with("; the parameters are squares=0"), "{errors}");
}
