//! The combinations of cores, sizes, variants and parameters that a scale asks for.

use super::scale::{Scale, Setting, Variant, formula};
use std::collections::BTreeMap;

/// One value for all that a scale varies.
pub(super) struct Combination<'a> {
    pub(super) cores: usize,
    pub(super) subcircuits: Option<u64>,
    variant: Option<(&'a str, &'a Variant)>,
    /// The values chosen from the lists of parameters.
    choice: BTreeMap<String, u64>,
}

impl<'a> Combination<'a> {
    /// Returns all combinations of a scale.
    pub(super) fn all(given: &'a Scale) -> Vec<Self> {
        let lists = given.parameters.iter().filter_map(|(name, setting)| match setting {
            Setting::List(values) => Some((name.as_str(), values.as_slice())),
            _ => None,
        });
        let choices = choices(&lists.collect::<Vec<_>>());
        let named = given.variants.iter().map(|(name, variant)| Some((name.as_str(), variant)));
        let variants: Vec<Option<(&str, &Variant)>> = match given.variants.is_empty() {
            true => vec![None],
            false => named.collect(),
        };
        let mut all = Vec::new();
        for &cores in &given.cores {
            for subcircuits in sizes(given, cores) {
                for &variant in &variants {
                    let each = choices.iter().cloned();
                    all.extend(each.map(|choice| Self { cores, subcircuits, variant, choice }));
                }
            }
        }
        all
    }

    /// The name of the variant.
    pub(super) fn name(&self) -> Option<&'a str> {
        self.variant.map(|(name, _)| name)
    }

    pub(super) fn variant(&self) -> Option<&'a Variant> {
        self.variant.map(|(_, variant)| variant)
    }

    /// The part of a point's name that says the number of subcircuits.
    pub(super) fn of_size(&self) -> String {
        self.subcircuits.map_or_else(String::new, |n| format!(".s{n}"))
    }

    /// The part of a point's name that says the variant and the values of lists.
    pub(super) fn of_choice(&self) -> String {
        let of_variant = self.name().map(|name| format!(".{name}"));
        let of_lists = self.choice.iter().map(|(name, value)| format!(".{name}{value}"));
        of_variant.into_iter().chain(of_lists).collect()
    }

    /// Returns the values of all parameters, with those that follow from the number of subcircuits.
    ///
    /// # Errors
    /// If a formula cannot be computed.
    pub(super) fn parameters(&self, given: &Scale) -> Result<BTreeMap<String, u64>, String> {
        let mut parameters = self.choice.clone();
        for (name, setting) in &given.parameters {
            let value = match setting {
                Setting::List(_) => continue,
                Setting::Number(value) => *value,
                Setting::Formula(text) => {
                    let missing = "\"subcircuits\" is missing, and a parameter needs it";
                    formula(text, self.subcircuits.ok_or(missing)?)?
                }
            };
            parameters.insert(name.clone(), value);
        }
        Ok(parameters)
    }
}

/// The numbers of subcircuits for some cores; `None` if the circuit has as many as it needs.
fn sizes(given: &Scale, cores: usize) -> Vec<Option<u64>> {
    match (&given.subcircuits, given.subcircuits_per_core) {
        (Some(sizes), _) => sizes.iter().copied().map(Some).collect(),
        (None, Some(each)) => vec![Some(each * cores as u64)],
        (None, None) => vec![None],
    }
}

/// All ways to choose one value per name; one empty choice if there is no name.
fn choices(lists: &[(&str, &[u64])]) -> Vec<BTreeMap<String, u64>> {
    let mut all = vec![BTreeMap::new()];
    for (name, values) in lists {
        all = (all.iter())
            .flat_map(|choice| {
                values.iter().map(|value| {
                    let mut longer = choice.clone();
                    longer.insert((*name).to_owned(), *value);
                    longer
                })
            })
            .collect();
    }
    all
}
