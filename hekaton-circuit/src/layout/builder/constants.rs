//! Parameters and pairs: constants that a layout gives each instance (spec: buses#preprocessed).

use super::LayoutBuilder;
use crate::layout::error::LayoutError;
use crate::layout::ids::{InstanceId, TypeId};
use crate::layout::{Constants, OfInstances, TypeSpec};
use hekaton_arith::Fr;

impl LayoutBuilder {
    /// Declares that the instances of a type have parameters: constants of which each instance has
    /// its own, fixed by the verifying key. [`set_parameter`](Self::set_parameter) sets
    /// their values. The default is none.
    pub fn parameters(&mut self, kind: TypeId, count: usize) {
        if let Some(spec) = self.declared(kind) {
            spec.parameters = count;
        }
    }

    /// Declares that the instances of a type have pairs of a key and a value: entries of a bus that
    /// the verifying key fixes. [`set_pair`](Self::set_pair) sets them. The default is none.
    pub fn pairs(&mut self, kind: TypeId, count: usize) {
        if let Some(spec) = self.declared(kind) {
            spec.pairs = count;
        }
    }

    /// Sets the value of a parameter of an instance.
    pub fn set_parameter(&mut self, instance: InstanceId, index: usize, value: Fr) {
        if let Some(given) = self.constants_of(instance, "parameter", index, |t| t.parameters) {
            place(&mut given.parameters, index, value);
        }
    }

    /// Sets the key and the value of a pair of an instance.
    pub fn set_pair(&mut self, instance: InstanceId, index: usize, key: Fr, value: Fr) {
        if let Some(given) = self.constants_of(instance, "pair", index, |t| t.pairs) {
            place(&mut given.pairs, index, [key, value]);
        }
    }

    /// The constants of an instance whose type has one at this index.
    fn constants_of(
        &mut self,
        instance: InstanceId,
        what: &'static str,
        index: usize,
        count: impl Fn(&TypeSpec) -> usize,
    ) -> Option<&mut Constants> {
        let Some(kind) = self.instances.get(instance.index()) else {
            self.fail(LayoutError::Foreign { what: "instance", index: instance.index() });
            return None;
        };
        let spec = &self.types[*kind as usize];
        let (count, type_name) = (count(spec), spec.name.clone());
        if index >= count {
            self.fail(LayoutError::NoSuchConstant {
                instance: instance.index(),
                type_name,
                what,
                count,
                index,
            });
            return None;
        }
        Some(self.given.entry(instance.0).or_default())
    }

    /// The parameters and pairs of all instances.
    pub(super) fn take_constants(
        &self,
    ) -> Result<(OfInstances<Fr>, OfInstances<[Fr; 2]>), LayoutError> {
        let (mut parameters, mut pairs) = (OfInstances::default(), OfInstances::default());
        if self.types.iter().all(|spec| (spec.parameters, spec.pairs) == (0, 0)) {
            return Ok((parameters, pairs));
        }
        let none = Constants::default();
        for (instance, kind) in (0..).zip(&self.instances) {
            let spec = &self.types[*kind as usize];
            let given = self.given.get(&instance).unwrap_or(&none);
            let missing = |what, index| LayoutError::MissingConstant {
                instance: instance as usize,
                type_name: spec.name.clone(),
                what,
                index,
            };
            take(&mut parameters, instance, &given.parameters, spec.parameters)
                .map_err(|index| missing("parameter", index))?;
            take(&mut pairs, instance, &given.pairs, spec.pairs)
                .map_err(|index| missing("pair", index))?;
        }
        Ok((parameters, pairs))
    }
}

/// Puts a value in its place of a list.
fn place<T: Clone>(list: &mut Vec<Option<T>>, index: usize, value: T) {
    if list.len() <= index {
        list.resize(index + 1, None);
    }
    list[index] = Some(value);
}

/// Appends an instance's constants, or returns the first one that is missing.
fn take<T: Copy>(
    (places, list): &mut OfInstances<T>,
    instance: u32,
    given: &[Option<T>],
    count: usize,
) -> Result<(), usize> {
    if count == 0 {
        return Ok(());
    }
    places.insert(instance, list.len());
    for index in 0..count {
        // A default in place of a missing constant would be part of the keys, unnoticed.
        list.push(given.get(index).copied().flatten().ok_or(index)?);
    }
    Ok(())
}
