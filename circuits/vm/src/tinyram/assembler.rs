//! Programs as text, in the assembly language of TinyRAM.

use super::decode::{Opcode, Operand, Shape, decode, encode};
use crate::address_space::MAX_IMAGE;
use crate::isa::Isa;
use crate::program::Program;
use std::collections::HashMap;

/// The maximum number of bytes of a line without its comment, and of labels.
const MAX_LINE: usize = 1024;
const MAX_LABELS: usize = 1 << 20;

/// The reason why a text is not a program: the line, from 1, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct AssemblyError {
    /// The number of the line.
    pub line: usize,
    /// A description of what is wrong.
    pub why: String,
}

impl Program {
    /// Assembles a program of TinyRAM. A line has a label such as `_loop:`, an instruction such as
    /// `add r1, r2, 7`, or both; `;` begins a comment. Operands are registers r0 to r15, numbers in decimal or
    /// with 0x, negative ones too, and labels, which stand for their addresses. A first line
    /// `; TinyRAM V=2.000 W=32 K=16`, as other assemblers want it, must have these W and K.
    ///
    /// # Errors
    /// If the text is not a program, with the line.
    pub fn from_tinyram(text: &str) -> Result<Self, AssemblyError> {
        let mut labels: HashMap<&str, u32> = HashMap::new();
        let mut lines: Vec<(usize, Vec<&str>)> = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let fail = |why: String| AssemblyError { line, why };
            let (code, comment) = content.split_once(';').unwrap_or((content, ""));
            // Programs for other parameters would assemble, and compute something else.
            if line == 1 {
                check_header(comment).map_err(fail)?;
            }
            let mut rest = code.trim();
            if rest.len() > MAX_LINE {
                return Err(fail(format!("more than {MAX_LINE} bytes before a comment")));
            }
            while let Some((before, behind)) = rest.split_once(':') {
                let label = before.trim_end();
                if !is_label(label) {
                    return Err(fail(format!("'{}' is not a label, such as _loop", shown(label))));
                }
                if labels.len() == MAX_LABELS {
                    return Err(fail(format!("more than {MAX_LABELS} labels")));
                }
                // All labels are known before the first operand is read, so a jump may go forward.
                if labels.insert(label, address(lines.len())).is_some() {
                    return Err(fail(format!("label {label} is defined twice")));
                }
                rest = behind.trim_start();
            }
            let is_space = |c: char| c.is_whitespace() || c == ',';
            let words: Vec<&str> = rest.split(is_space).filter(|word| !word.is_empty()).collect();
            if !words.is_empty() {
                lines.push((line, words));
            }
            if lines.len() > MAX_IMAGE / 2 {
                return Err(fail(format!("more than {} instructions", MAX_IMAGE / 2)));
            }
        }
        if lines.is_empty() {
            return Err(AssemblyError { line: 1, why: "the program has no instructions".into() });
        }
        let words = lines
            .iter()
            .map(|(line, words)| {
                instruction(words, &labels).map_err(|why| AssemblyError { line: *line, why })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let code = (0..).zip(&words).flat_map(|(at, words)| [Some(decode(8 * at, *words)), None]);
        let mut symbols: Vec<(u32, String)> =
            labels.into_iter().map(|(label, at)| (at, label.to_owned())).collect();
        symbols.sort_unstable();
        let image = words.as_flattened().to_vec();
        Ok(Self::of_words(Isa::TinyRam, image, code.collect(), symbols))
    }
}

impl Program {
    /// The smallest program of TinyRAM: an answer.
    pub(crate) fn smallest_tiny() -> Self {
        let words = encode(Opcode::Answer, 0, 0, Operand::Immediate(0));
        Self::of_words(Isa::TinyRam, words.to_vec(), vec![Some(decode(0, words)), None], Vec::new())
    }
}

/// A word of the text for a message: without control characters, and no longer than is useful.
fn shown(word: &str) -> String {
    const MOST: usize = 40;
    let start: String = word.chars().take(MOST).collect();
    let more = if start.len() < word.len() { "..." } else { "" };
    format!("{}{more}", start.escape_debug())
}

/// The address of an instruction.
fn address(number: usize) -> u32 {
    #[allow(clippy::cast_possible_truncation, reason = "at most 2^21 instructions")]
    {
        8 * number as u32
    }
}

fn is_label(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.len() > 1 && word.len() <= 256 && word.starts_with('_') && word.chars().all(is_part)
}

fn check_header(comment: &str) -> Result<(), String> {
    let Some(rest) = comment.trim_start().strip_prefix("TinyRAM") else { return Ok(()) };
    for field in rest.split_whitespace() {
        let expected = match field.split_once('=') {
            Some(("W", size)) if size != "32" => "words of 32 bits",
            Some(("K", number)) if number != "16" => "16 registers",
            _ => continue,
        };
        return Err(format!("{field}, but this machine has {expected}"));
    }
    Ok(())
}

fn instruction(words: &[&str], labels: &HashMap<&str, u32>) -> Result<[u32; 2], String> {
    let (name, operands) = (words[0], &words[1..]);
    let (opcode, _) = Opcode::ALL
        .into_iter()
        .find(|(_, known)| *known == name)
        .ok_or_else(|| format!("'{}' is not an instruction of TinyRAM", shown(name)))?;
    let operand = |word: &str| operand(word, labels);
    let usage = match opcode.shape() {
        Shape::Three => "ri, rj, A",
        Shape::Destination => "ri, A",
        Shape::Store => "A, ri",
        Shape::Compare => "rj, A",
        Shape::Only => "A",
    };
    let (ri, rj, a) = match (opcode.shape(), operands) {
        (Shape::Three, [ri, rj, a]) => (register(ri)?, register(rj)?, operand(a)?),
        (Shape::Destination, [ri, a]) | (Shape::Store, [a, ri]) => (register(ri)?, 0, operand(a)?),
        (Shape::Compare, [rj, a]) => (0, register(rj)?, operand(a)?),
        (Shape::Only, [a]) => (0, 0, operand(a)?),
        (_, found) => {
            return Err(format!("'{name}' has {} operands, expected {name} {usage}", found.len()));
        }
    };
    Ok(encode(opcode, ri, rj, a))
}

fn register(word: &str) -> Result<u8, String> {
    let digits = word.strip_prefix('r').filter(|digits| digits.len() <= 2);
    let number = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
    number
        .and_then(|number| number.parse().ok())
        .filter(|number| *number < 16)
        .ok_or_else(|| format!("'{}' is not a register; they are r0 to r15", shown(word)))
}

fn operand(word: &str, labels: &HashMap<&str, u32>) -> Result<Operand, String> {
    if word.starts_with('r') {
        return register(word).map(Operand::Register);
    }
    if word.starts_with('_') {
        let address =
            labels.get(word).ok_or_else(|| format!("label {} is not defined", shown(word)))?;
        return Ok(Operand::Immediate(*address));
    }
    let (digits, negative) = word.strip_prefix('-').map_or((word, false), |digits| (digits, true));
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit());
    let value = match digits.strip_prefix("0x") {
        Some(hex) if hex.starts_with(|c: char| c.is_ascii_hexdigit()) => {
            i64::from_str_radix(hex, 16).ok()
        }
        Some(_) => None,
        None => is_plain.then(|| digits.parse().ok()).flatten(),
    };
    value
        .map(|value| if negative { -value } else { value })
        .filter(|value| (i64::from(i32::MIN)..1 << 32).contains(value))
        .map(|value| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "32 bits")]
            Operand::Immediate(value as u32)
        })
        .ok_or_else(|| {
            let word = shown(word);
            format!("'{word}' is not a register, a label or a number from -2^31 to 2^32 - 1")
        })
}
