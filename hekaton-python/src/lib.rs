//! The Hekaton verifier for Python: the module `hekaton_verifier`, whose types are in `hekaton_verifier.pyi`.
//!
//! A refusal is an exception, so a program cannot overlook it.

use hekaton_core::{Fr, Trust, VerifyingKey, VerifyingKeyError};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyMapping, PyString, PyTuple};
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
pub struct Key {
    key: VerifyingKey,
    digest: String,
}

#[pymethods]
impl Key {
    #[new]
    fn new(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        py.detach(|| {
            let key = VerifyingKey::from_bytes(data)?;
            let digest = hex::encode(key.digest());
            Ok(Self { key, digest })
        })
        .map_err(|error: VerifyingKeyError| refused(error))
    }

    #[getter]
    fn digest(&self) -> &str {
        &self.digest
    }

    #[getter]
    fn circuit(&self) -> &str {
        &self.key.circuit
    }

    #[getter]
    fn parameters(&self) -> &str {
        &self.key.parameters
    }

    #[getter]
    fn subcircuits(&self) -> u64 {
        self.key.instances
    }

    #[getter]
    fn zero_knowledge(&self) -> bool {
        self.key.zero_knowledge
    }

    #[getter]
    fn trust(&self) -> std::borrow::Cow<'static, str> {
        self.key.trust.statement()
    }

    #[getter]
    fn is_test_key(&self) -> bool {
        self.key.trust == Trust::InsecureSeed
    }

    #[getter]
    fn public_names(&self) -> Vec<String> {
        self.key.public_names()
    }

    /// The public values as integers by name, in the key's order.
    fn public_values<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let numbers = py.import("builtins")?.getattr("int")?;
        let by_name = PyDict::new(py);
        for (name, value) in self.key.public_names().iter().zip(self.values(values)?) {
            by_name.set_item(name, numbers.call1((value.to_string(),))?)?;
        }
        Ok(by_name)
    }

    fn __repr__(&self) -> String {
        format!("<Key of circuit '{}', digest {}>", self.key.circuit, self.digest)
    }
}

impl Key {
    fn values(&self, values: &Bound<'_, PyAny>) -> PyResult<Vec<Fr>> {
        let text = match values.cast::<PyString>() {
            Ok(text) => unicode(text)?,
            Err(_) => json(values)?.to_string(),
        };
        self.key.values_from_json(&text).map_err(refused)
    }
}

/// Values by name, or in the key's order, as JSON. Other iterables are refused: bytes would be numbers, a set has no order.
fn json(values: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(by_name) = values.cast::<PyMapping>() {
        let mut entries = Map::new();
        for item in by_name.items()?.iter() {
            let (name, value): (Bound<'_, PyString>, Bound<'_, PyAny>) = item.extract()?;
            entries.insert(unicode(&name)?, number(&value)?);
        }
        return Ok(Value::Object(entries));
    }
    if !values.is_instance_of::<PyList>() && !values.is_instance_of::<PyTuple>() {
        let expected = "public values are JSON text, a mapping, a list or a tuple";
        return Err(wrong_type(expected, values));
    }
    let list = values.try_iter()?.map(|value| number(&value?));
    Ok(Value::Array(list.collect::<PyResult<_>>()?))
}

/// A number as text, since Python's integers have any size; in hexadecimal, which Python writes at any length.
fn number(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(unicode(text)?));
    }
    if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
        return Err(wrong_type("a public value is an int or a str", value));
    }
    let hexadecimal = value.py().import("builtins")?.getattr("hex")?.call1((value,))?;
    Ok(Value::String(hexadecimal.extract()?))
}

/// A text, which may have surrogates that no encoding has.
fn unicode(text: &Bound<'_, PyString>) -> PyResult<String> {
    text.to_str().map(str::to_owned).map_err(refused)
}

fn wrong_type(expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    match found.get_type().name() {
        Ok(name) => PyTypeError::new_err(format!("{expected}, not a {name}")),
        Err(error) => error,
    }
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
            return Err(refused("key_digest is not 64 hexadecimal digits"));
        }
        let found = &key.digest;
        if expected != *found {
            let why = "the verifying key is not the required one: its digest is";
            return Err(refused(format!("{why} {found}, expected {expected}")));
        }
    }
    let values = key.values(public_values)?;
    let verify = match accept_test_keys {
        true => hekaton_core::verify_with_test_keys,
        false => hekaton_core::verify,
    };
    // Other threads run meanwhile.
    py.detach(|| verify(&key.key, &values, proof)).map_err(refused)
}
