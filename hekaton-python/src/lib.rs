//! The Hekaton verifier for Python: the module `hekaton_verifier`, whose types are in `hekaton_verifier.pyi`.
//!
//! A refusal is an exception, so a program cannot overlook it.

use hekaton_core::{Fr, Trust, VerifyingKey};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};
use serde_json::{Map, Value};

/// The verifier, for Python 3.10 and later.
#[pymodule]
mod hekaton_verifier {
    #[pymodule_export]
    use super::{Key, Refused, verify};
}

mod exception {
    #![allow(missing_docs, reason = "the macro takes the documentation for Python as a text")]
    use pyo3::exceptions::PyValueError;

    pyo3::create_exception!(
        hekaton_verifier,
        Refused,
        PyValueError,
        "A proof does not hold, or a key or public values cannot be read; the text says why."
    );
}
pub use exception::Refused;

fn refused(why: impl ToString) -> PyErr {
    Refused::new_err(why.to_string())
}

/// A verifying key: Key(data). Its constructor checks all that can be checked without a proof.
#[pyclass(frozen, module = "hekaton_verifier")]
#[derive(Debug)]
pub struct Key(VerifyingKey);

#[pymethods]
impl Key {
    #[new]
    fn new(data: &[u8]) -> PyResult<Self> {
        VerifyingKey::from_bytes(data).map(Self).map_err(refused)
    }

    #[getter]
    fn digest(&self) -> String {
        hex::encode(self.0.digest())
    }

    #[getter]
    fn circuit(&self) -> &str {
        &self.0.circuit
    }

    #[getter]
    fn parameters(&self) -> &str {
        &self.0.parameters
    }

    #[getter]
    fn subcircuits(&self) -> u64 {
        self.0.instances
    }

    #[getter]
    fn zero_knowledge(&self) -> bool {
        self.0.zero_knowledge
    }

    #[getter]
    fn trust(&self) -> std::borrow::Cow<'static, str> {
        self.0.trust.statement()
    }

    #[getter]
    fn is_test_key(&self) -> bool {
        self.0.trust == Trust::InsecureSeed
    }

    #[getter]
    fn public_names(&self) -> Vec<String> {
        self.0.public_names()
    }

    /// The public values as integers by name, in the key's order.
    fn public_values<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let numbers = py.import("builtins")?.getattr("int")?;
        let by_name = PyDict::new(py);
        for (name, value) in self.0.public_names().iter().zip(self.values(values)?) {
            by_name.set_item(name, numbers.call1((value.to_string(),))?)?;
        }
        Ok(by_name)
    }

    fn __repr__(&self) -> String {
        format!("<Key of circuit '{}', digest {}>", self.0.circuit, self.digest())
    }
}

impl Key {
    fn values(&self, values: &Bound<'_, PyAny>) -> PyResult<Vec<Fr>> {
        let text = match values.cast::<PyString>() {
            Ok(text) => text.to_str()?.to_owned(),
            Err(_) => json(values)?.to_string(),
        };
        self.0.values_from_json(&text).map_err(refused)
    }
}

/// Values by name, or in the key's order, as JSON.
fn json(values: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(by_name) = values.cast::<PyDict>() {
        let entries = by_name.iter().map(|(name, value)| Ok((name.extract()?, number(&value)?)));
        return Ok(Value::Object(entries.collect::<PyResult<Map<_, _>>>()?));
    }
    let list = values.try_iter()?.map(|value| number(&value?));
    Ok(Value::Array(list.collect::<PyResult<_>>()?))
}

/// A number as text, since Python's integers have any size.
fn number(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let is_number = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    if !is_number && !value.is_instance_of::<PyString>() {
        let kind = value.get_type().name()?.to_string();
        return Err(PyTypeError::new_err(format!(
            "a public value is an int or a str, not a {kind}"
        )));
    }
    Ok(Value::String(value.str()?.to_str()?.to_owned()))
}

/// Verifies a proof: returns None if it holds, and raises Refused if not.
///
/// key_digest is the digest that the key must have; None accepts any key, which is right for a key that comes with
/// the program only.
#[pyfunction]
#[pyo3(signature = (key, proof, public_values, *, key_digest, accept_test_keys = false))]
fn verify(
    py: Python<'_>,
    key: &Bound<'_, Key>,
    proof: &[u8],
    public_values: &Bound<'_, PyAny>,
    key_digest: Option<&str>,
    accept_test_keys: bool,
) -> PyResult<()> {
    let key = key.get();
    // Under another key, a valid proof is about another statement.
    if let Some(expected) = key_digest {
        let expected = expected.trim().to_ascii_lowercase();
        if hex::decode(&expected).map(|bytes| bytes.len()) != Ok(32) {
            return Err(PyValueError::new_err("key_digest: expected 64 hexadecimal digits"));
        }
        let found = key.digest();
        if expected != found {
            let why = "the verifying key is not the required one: its digest is";
            return Err(refused(format!("{why} {found}, expected {expected}")));
        }
    }
    let values = key.values(public_values)?;
    let verify = match accept_test_keys {
        true => hekaton_core::verify_with_test_keys,
        false => hekaton_core::verify,
    };
    // Other threads run meanwhile. The bytes are a copy: Python's may change.
    let proof = proof.to_vec();
    py.detach(|| verify(&key.0, &values, &proof)).map_err(refused)
}
