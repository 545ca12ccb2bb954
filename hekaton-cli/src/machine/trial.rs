//! The program with which a ceremony tries its keys.

use hekaton_circuit::named::ParameterMap;

/// A program that exits with code 0 at once.
pub(super) fn does_nothing(parameters: &ParameterMap) -> Vec<u8> {
    if parameters.get("isa").is_some_and(|isa| isa == "tinyram") {
        return b"; TinyRAM V=2.000 W=32 K=16\nanswer 0\n".to_vec();
    }
    const BASE: u32 = 0x1_0000;
    const HEADERS: u32 = 52 + 32;
    // li a7, 93; li a0, 0; ecall
    let code = [0x05d0_0893u32, 0x0000_0513, 0x0000_0073];
    let length = 12;
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    let half = |file: &mut Vec<u8>, x: u16| file.extend_from_slice(&x.to_le_bytes());
    let word = |file: &mut Vec<u8>, x: u32| file.extend_from_slice(&x.to_le_bytes());
    // An executable for RISC-V with one program header.
    [2, 243].into_iter().for_each(|x| half(&mut file, x));
    [1, BASE + HEADERS, 52, 0, 0].into_iter().for_each(|x| word(&mut file, x));
    [52, 32, 1, 0, 0, 0].into_iter().for_each(|x| half(&mut file, x));
    // It is loaded where the code is, to be read and executed.
    let place = BASE + HEADERS;
    [1, HEADERS, place, place, length, length, 5, 4].into_iter().for_each(|x| word(&mut file, x));
    code.into_iter().for_each(|x| word(&mut file, x));
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_vm::Program;

    #[test]
    fn programs_that_do_nothing_are_programs() {
        let mut parameters = ParameterMap::new();
        Program::from_elf(&does_nothing(&parameters)).unwrap();
        parameters.insert("isa".to_owned(), "tinyram".into());
        let text = String::from_utf8(does_nothing(&parameters)).unwrap();
        Program::from_tinyram(&text).unwrap();
    }
}
