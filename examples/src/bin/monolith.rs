//! Writes an arkworks circuit in one piece as `NAME.r1cs`, and its witness as `NAME.wtns`, for
//! `hekaton import`:
//!
//! ```sh
//! monolith 100000 steps
//! hekaton import steps.r1cs --out steps.hk
//! hekaton setup steps.hk --keys steps.keys
//! hekaton prove steps.wtns --keys steps.keys
//! ```

use hekaton_circuit::Fr;
use hekaton_examples::monolith::Steps;
use hekaton_r1cs::{R1csFile, WitnessFile, system_of, witness_of};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [steps, name] = arguments.as_slice() else {
        return Err("usage: monolith STEPS NAME".into());
    };
    let mut circuit = Steps { steps: steps.parse()?, start: None };
    let system = system_of(circuit)?;
    std::fs::write(format!("{name}.r1cs"), R1csFile::bytes_of(&system, 1))?;
    circuit.start = Some(Fr::from(3u64));
    std::fs::write(format!("{name}.wtns"), WitnessFile::bytes_of(&witness_of(circuit)?))?;
    Ok(())
}
