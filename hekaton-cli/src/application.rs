//! Circuits behind one object-safe interface, so that commands work with any of them.

use hekaton_circuit::named::{
    Description, NamedCircuit, ParameterError, Parameters, complete, describe,
};
use hekaton_circuit::{CheckError, CheckReport, CircuitError, LayoutError, Masking, check};
use hekaton_core::distributed::{Endpoint, Hello, RankEngine, RankError, Serve, serve};
use hekaton_core::{
    Fr, LocalEngine, ProveError, ProveOptions, ProvenRun, ProverKeys, SetupError, SetupOptions,
    VerifyingKey, prove, setup_into,
};
use hekaton_plan::{Calibration, Estimate, EstimateError, Workers, estimate};
use hekaton_storage::{KeyStore, KeyStoreError};
use std::borrow::Borrow;
use std::marker::PhantomData;

/// A circuit that the program offers, before its parameters are known.
pub(crate) trait Application: Sync {
    /// Its name, parameters, and help texts.
    fn description(&self) -> Description;

    /// The circuit with these parameters, and all parameters: those not given have their defaults
    /// or follow from the file.
    fn open(
        &self,
        given: &Parameters,
        file: Option<&[u8]>,
    ) -> Result<(Box<dyn OpenCircuit>, Parameters), ParameterError>;

    /// Formats public values as text.
    fn show_public(&self, values: &[Fr]) -> String;

    /// Parses public values.
    fn read_public(&self, text: &str) -> Result<Vec<Fr>, CircuitError>;
}

/// Where proofs are made: on the threads of this process, or on many ranks.
#[derive(Clone, Copy)]
pub(crate) enum AnyEngine<'a> {
    Local(&'a LocalEngine),
    Ranks(&'a RankEngine),
}

/// Why an operation on a file failed: the file is not an input of the circuit, or the operation
/// itself failed.
#[derive(Debug)]
pub(crate) enum OnFile<E> {
    Input(CircuitError),
    Failed(E),
}

/// A circuit with its parameters. A `file` is the content of an input file.
pub(crate) trait OpenCircuit: Sync {
    /// Checks that a file is an input of the circuit.
    fn check_input(&self, file: &[u8]) -> Result<(), CircuitError>;

    /// Runs the setup into a key store.
    fn setup(
        &self,
        options: &SetupOptions,
        store: &mut KeyStore,
        progress: &mut dyn FnMut(&str),
    ) -> Result<VerifyingKey, SetupError<KeyStoreError>>;

    /// Proves a file.
    fn prove(
        &self,
        file: &[u8],
        keys: &ProverKeys,
        engine: AnyEngine<'_>,
        options: &ProveOptions<'_>,
    ) -> Result<ProvenRun, OnFile<ProveError>>;

    /// Runs all subcircuits on a file without proving.
    fn check(
        &self,
        file: &[u8],
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<CheckReport, OnFile<CheckError>>;

    /// Estimates a run on a file, or on a sample of the right size.
    fn estimate(
        &self,
        file: Option<&[u8]>,
        masking: Masking,
        calibration: &Calibration,
        workers: Workers,
        memory_limit: Option<u64>,
    ) -> Result<Estimate, OnFile<EstimateError>>;

    /// The public values of a file as text, computed without proving.
    fn hash(&self, file: &[u8]) -> Result<String, CircuitError>;

    /// What a rank with these keys reports about itself in the handshake.
    fn hello(&self, keys: &ProverKeys, provers: usize) -> Result<Hello, LayoutError>;

    /// Serves as a worker rank until rank 0 ends the run.
    fn serve(
        &self,
        endpoint: &Endpoint,
        keys: &ProverKeys,
        pool: &LocalEngine,
        hello: Hello,
        failed: &(dyn Fn(&RankError) + Sync),
    ) -> Result<(), RankError>;
}

/// The application for a circuit type.
pub(crate) struct OfType<C>(pub(crate) PhantomData<fn() -> C>);

impl<C: NamedCircuit + 'static> Application for OfType<C>
where
    C::Input: ToOwned,
{
    fn description(&self) -> Description {
        describe::<C>()
    }

    fn open(
        &self,
        given: &Parameters,
        file: Option<&[u8]>,
    ) -> Result<(Box<dyn OpenCircuit>, Parameters), ParameterError> {
        let all = complete::<C>(given, file)?;
        Ok((Box::new(Opened(C::with(&all)?)), all))
    }

    fn show_public(&self, values: &[Fr]) -> String {
        C::show(values)
    }

    fn read_public(&self, text: &str) -> Result<Vec<Fr>, CircuitError> {
        C::read(text)
    }
}

struct Opened<C>(C);

impl<C: NamedCircuit> OpenCircuit for Opened<C>
where
    C::Input: ToOwned,
{
    fn check_input(&self, file: &[u8]) -> Result<(), CircuitError> {
        self.0.input(file).map(drop)
    }

    fn setup(
        &self,
        options: &SetupOptions,
        store: &mut KeyStore,
        progress: &mut dyn FnMut(&str),
    ) -> Result<VerifyingKey, SetupError<KeyStoreError>> {
        setup_into(&self.0, options, store, progress)
    }

    fn prove(
        &self,
        file: &[u8],
        keys: &ProverKeys,
        engine: AnyEngine<'_>,
        options: &ProveOptions<'_>,
    ) -> Result<ProvenRun, OnFile<ProveError>> {
        let input = self.0.input(file).map_err(OnFile::Input)?;
        let run = match engine {
            AnyEngine::Local(engine) => prove(&self.0, input.borrow(), keys, engine, options),
            AnyEngine::Ranks(engine) => prove(&self.0, input.borrow(), keys, engine, options),
        };
        run.map_err(OnFile::Failed)
    }

    fn check(
        &self,
        file: &[u8],
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<CheckReport, OnFile<CheckError>> {
        let input = self.0.input(file).map_err(OnFile::Input)?;
        check(&self.0, input.borrow(), progress).map_err(OnFile::Failed)
    }

    fn estimate(
        &self,
        file: Option<&[u8]>,
        masking: Masking,
        calibration: &Calibration,
        workers: Workers,
        memory_limit: Option<u64>,
    ) -> Result<Estimate, OnFile<EstimateError>> {
        let sample;
        let file = match file {
            Some(file) => file,
            None => {
                sample = self.0.sample();
                &sample
            }
        };
        let input = self.0.input(file).map_err(OnFile::Input)?;
        estimate(&self.0, input.borrow(), masking, calibration, workers, memory_limit)
            .map_err(OnFile::Failed)
    }

    fn hash(&self, file: &[u8]) -> Result<String, CircuitError> {
        self.0.hash(file)
    }

    fn hello(&self, keys: &ProverKeys, provers: usize) -> Result<Hello, LayoutError> {
        Hello::new(&self.0, keys, provers)
    }

    fn serve(
        &self,
        endpoint: &Endpoint,
        keys: &ProverKeys,
        pool: &LocalEngine,
        hello: Hello,
        failed: &(dyn Fn(&RankError) + Sync),
    ) -> Result<(), RankError> {
        serve(endpoint, &Serve { circuit: &self.0, keys, pool, hello, failed })
    }
}
