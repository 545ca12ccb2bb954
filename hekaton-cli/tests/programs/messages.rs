//! Errors name the cause: a good file is not called damaged, keys are not blamed for a proof, and numbers are the user's.

use crate::common::{fails, ok};
use crate::{Files, files, paths, proof, verify};
use hekaton_testing::{elf, elf_of};

/// li a7, 93; ecall
const EXIT: [u32; 2] = [0x05d0_0893, 0x0000_0073];

/// The number of bytes of magic, version and length in front of the claim of a proof.
const HEADER: usize = 14;

/// The proof with a changed claim.
fn changed(f: &Files, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let bytes = std::fs::read(proof()).unwrap();
    let length = u32::from_le_bytes(bytes[10..HEADER].try_into().unwrap()) as usize;
    let (claim, proof) = bytes[HEADER..].split_at(length);
    let mut claim = claim.to_vec();
    change(&mut claim);
    let length = u32::try_from(claim.len()).unwrap().to_le_bytes();
    f.write(name, &[&bytes[..10], &length, &claim, proof].concat())
}

/// Places in a claim: the number of chips, their counts, and those of refreshes, zero memory, input and public words.
const CHIPS: usize = 32;
const ZERO: usize = CHIPS + 1 + 24 + 1;
const EXIT_CODE: usize = ZERO + 3;

#[test]
fn programs_stop_for_the_reason_that_is_said() {
    let f = files();
    // lui s0, 0x30000; a JAL whose target is not a multiple of 4
    let jump = f.write("jump", &elf(&[0x3000_0437, 0x0020_006f, EXIT[0], EXIT[1]]));
    let says = "trap at pc 0x10004 in cycle 2: jump to 0x10006, which is not a multiple of 4";
    fails(4, says, &["vm", "run", &jump]);
    let stop = f.write("stop", &elf(&[0xc000_1073]));
    fails(4, "cycle 1: the program stopped with unimp", &["vm", "run", &stop]);
    let float = f.write("float", &elf(&[0x0005_2507]));
    let says = "0x00052507 is an instruction for floating point, which this machine does not support: \
                compile for rv32im";
    fails(4, says, &["vm", "run", &float]);
    // sw x0, 0(x5) behind lui x5, 0x10
    let store = f.write("store", &elf(&[0x0001_02b7, 0x0002_a023, EXIT[0], EXIT[1]]));
    let says = "store at 0x10000, in the segment at 0x10000..0x10010, which is not writable";
    fails(4, says, &["vm", "run", &store]);
    // lui sp, 0x10; sw x0, -4(sp)
    let stack = f.write("stack", &elf(&[0x0001_0137, 0xfe01_2e23, EXIT[0], EXIT[1]]));
    fails(4, "access at 0xfffc, where there is no memory", &["vm", "run", &stack]);
    // addi sp, sp, -16 between
    let stack = f.write("stack", &elf(&[0x0001_0137, 0xff01_0113, 0x0001_2023, EXIT[0], EXIT[1]]));
    let says =
        "stack overflow: access at 0xfff0, below the program's memory, which begins at 0x10000";
    fails(4, says, &["vm", "run", &stack]);
    // j .
    let forever = f.write("forever", &elf(&[0x0000_006f]));
    let says = "has not ended after 7 cycles; --max-cycles allows more";
    fails(4, says, &["vm", "run", &forever, "--max-cycles", "7"]);
}

#[test]
fn files_of_programs_are_called_what_they_are() {
    let f = files();
    let code = (0x1_0000, &EXIT[..], 8, 5);
    let far = f.write("far", &elf_of(0x1_0000, &[code, (0x800_0000, &[1], 4, 6)]));
    let output = crate::common::hekaton(&["vm", "run", &far]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    let says = "segment 1, at 0x8000000..0x8000004: its contents end 134152196 bytes behind the first \
                segment, which begins at 0x10000, and 16777216 (16 MiB) is the most";
    assert!(error.contains(says) && !error.contains("not an ELF"), "{error}");
    // The memory of a segment without contents below the code.
    // lui sp, 0x11; sw x0, -4(sp); lw a0, -4(sp)
    let stack = [0x0001_1137, 0xfe01_2e23, 0xffc1_2503, EXIT[0], EXIT[1]];
    let below = elf_of(0x1_1000, &[(0x1_0000, &[], 0x1000, 6), (0x1_1000, &stack, 20, 5)]);
    let below = f.write("below", &below);
    assert!(ok(&["vm", "run", &below]).contains("exit code 0"));
    assert!(ok(&["vm", "inspect", &below]).contains("1,029 words from 0x10000"));
    let says = "text: not an ELF file: it does not begin with \\x7fELF, nor, as a program for TinyRAM, with";
    fails(3, says, &["vm", "run", &f.write("text", b"int main")]);
    let latin = f.write("latin", b"; TinyRAM V=2.000 W=32 K=16 \xe9\n");
    fails(
        3,
        "latin: a program for TinyRAM, but byte 28 is not text in UTF-8",
        &["vm", "run", &latin],
    );
    let zero_size = elf_of(0x1_0000, &[code, (0x2_0000, &[1], 0, 6)]);
    let says = "segment 1, at 0x20000..0x20000: more bytes in the file than in memory";
    fails(3, says, &["vm", "run", &f.write("zero-size", &zero_size)]);
}

/// A proof that keys cannot have made is a proof of other keys, or damaged: the keys are not to blame, and nothing is cut off.
#[test]
fn proofs_of_other_keys_are_called_that() {
    let (f, own) = (files(), paths());
    let good = std::fs::read(proof()).unwrap();
    // One round less, as with half the number of subcircuits: six elements of 192 bytes.
    let shorter = f.write("shorter.proof", &good[..good.len() - 6 * 192]);
    let says = "bytes, expected 17322: it was made with keys of another family than";
    let says = says.replace("17322", &proof_bytes(&good).to_string());
    fails(3, &says, &verify(&shorter, &own, &[]));
    let many = changed(f, "many.proof", |claim| claim[CHIPS + 1] = 127);
    let says = "many.proof: it is about a run of";
    fails(3, says, &verify(&many, &own, &[]));
    fails(3, "subcircuits, but", &verify(&many, &own, &[]));
    fails(3, "has keys for at most 128: it was made with other keys", &verify(&many, &own, &[]));
}

fn proof_bytes(file: &[u8]) -> usize {
    file.len() - HEADER - u32::from_le_bytes(file[10..HEADER].try_into().unwrap()) as usize
}

#[test]
fn damaged_claims_name_file_and_field() {
    let (f, own) = (files(), paths());
    let zero = changed(f, "zero.proof", |claim| claim[ZERO] = 0);
    let says = "zero.proof: damaged: counts: no subcircuits of zero memory, expected at least one";
    fails(3, says, &verify(&zero, &own, &[]));
    let large = [0xff, 0xff, 0xff, 0xff, 0x7f];
    let code = changed(f, "code.proof", |claim| {
        claim.splice(EXIT_CODE..EXIT_CODE + 2, large);
    });
    let says = "code.proof: damaged: a number in the exit code has more than 32 bits";
    fails(3, says, &verify(&code, &own, &[]));
    let output = changed(f, "output.proof", |claim| {
        claim.splice(EXIT_CODE + 2..EXIT_CODE + 4, large);
    });
    let says = "output.proof: damaged: a number in the output has more than 32 bits";
    fails(3, says, &verify(&output, &own, &[]));
    fails(3, says, &["vm", "inspect", &output]);
    let short = changed(f, "short-claim.proof", |claim| claim.truncate(EXIT_CODE));
    let says = "short-claim.proof: damaged: its header ends in the exit code";
    fails(3, says, &verify(&short, &own, &[]));
    let long = changed(f, "long-claim.proof", |claim| claim.extend([0, 0]));
    let says = "long-claim.proof: damaged: 2 bytes follow the output in its header";
    fails(3, says, &verify(&long, &own, &[]));
    let padded = changed(f, "padded.proof", |claim| {
        claim.splice(ZERO..=ZERO, [claim[ZERO] | 0x80, 0]);
    });
    let says = "padded.proof: damaged: a number in its header has more bytes than it needs";
    fails(3, says, &verify(&padded, &own, &[]));
    let chips = changed(f, "chips.proof", |claim| {
        claim[CHIPS] = 23;
        claim.remove(CHIPS + 1);
    });
    let says = "for 23 kinds of instructions, expected 24 of rv32im";
    fails(3, says, &verify(&chips, &own, &[]));
}

/// Files with more bytes than there is room for, before anything is executed.
#[test]
fn what_is_too_large_says_how_much_it_may_be() {
    let (f, [program, keys, _]) = (files(), paths());
    let sparse = |name: &str, length: u64| {
        let path = f.path(name);
        std::fs::File::create(&path).unwrap().set_len(length).unwrap();
        path
    };
    let huge = sparse("huge", (256 << 20) + 1);
    let says = "huge: has more than 268435456 bytes (256 MiB), which is the most for an input";
    fails(3, says, &["vm", "run", &program, "--input", &huge]);
    let says = "huge: has more than 268435456 bytes (256 MiB), which is the most for the file of a program";
    fails(3, says, &["vm", "run", &huge]);
    // All of memory behind the word with the length: subcircuits do not end there.
    let nearly = sparse("nearly", 268_435_452);
    let says = "nearly: 268435452 bytes of private input: with 0 public words and subcircuits of 131072 \
                constraints, there is room for 268419068";
    fails(3, says, &["vm", "run", &program, "--input", &nearly]);
    let public = sparse("much", (4 << 20) + 1);
    let says =
        "much: the public input has 4194305 bytes in 1048577 words, expected at most 1048576 words";
    fails(3, says, &["vm", "run", &program, "--public-input", &public]);
    let output = sparse("outputs", 65);
    let own = paths();
    fails(1, "another output than expected", &verify(proof(), &own, &["--output", &output]));
    for command in ["run", "prove"] {
        let much = ["vm", command, &program, "--max-cycles", "5000000000", "--keys", &keys];
        fails(2, "5000000000 is not in 1..=4294967287", &much);
        assert!(ok(&["vm", command, "--help"]).contains("at most 4294967287 (2^32 - 9)"));
    }
    for rows in ["2^11", "8", "2^29"] {
        fails(2, "expected a number in 2^12..=2^28", &["vm", "run", &program, "--rows", rows]);
        fails(2, "expected a number in 2^12..=2^28", &["vm", "setup", "--rows", rows]);
    }
    for path in [huge, nearly, public] {
        std::fs::remove_file(path).unwrap();
    }
}

/// A shape that no run could need is the fault of the shape.
#[test]
fn shapes_that_have_no_room_are_named() {
    let (f, [program, keys, public]) = (files(), paths());
    let private = f.path("private");
    let input = ["--public-input", &public, "--input", &private];
    let found = ok(&[&["vm", "run", &program, "--json"], &input[..], &["--keys", &keys]].concat());
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    for (kind, count, says) in [
        ("zero", 1u64 << 40, "words of zero memory, at most"),
        ("input", 1 << 40, "reaches the output: at most"),
        ("addi", 1 << 40, "operations, refreshes included, at most"),
    ] {
        let mut counts = found["counts"].clone();
        counts[kind] = count.into();
        let shape = f.write("no-room", counts.to_string().as_bytes());
        let run = [&["vm", "run", &program, "--shape", &shape], &input[..]].concat();
        fails(4, says, &run);
        fails(4, "no-room: ", &run);
    }
}
