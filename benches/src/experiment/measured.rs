//! Points with the medians of their repetitions.

use super::columns::COLUMNS;
use super::plan::Plan;
use super::rows::Row;
use super::spec::Point;
use super::statistics::Summary;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One point with its repetitions.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) point: Point,
    /// The number of repetitions that count.
    pub(crate) repetitions: usize,
    /// The number of repetitions that do not count.
    pub(crate) failed: usize,
    pub(crate) columns: BTreeMap<&'static str, Summary>,
    /// The columns of each repetition that counts.
    pub(super) each: BTreeMap<usize, BTreeMap<&'static str, f64>>,
}

impl Measured {
    /// The median of a column, or the value of a parameter.
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        let column = self.columns.get(name).map(|summary| summary.median);
        column.or_else(|| self.point.parameters.get(name).map(|value| *value as f64))
    }

    /// The name of the curve that the point is on: the variant, or the value of a column or parameter.
    pub(crate) fn curve(&self, series: &str) -> String {
        match series {
            "variant" => self.point.variant.as_deref().map_or_else(String::new, str::to_owned),
            name => self.value(name).map_or_else(String::new, |value| value.to_string()),
        }
    }

    /// A column over that of another point, within repetitions of both that ran one after the other:
    /// what drifts over hours is then in neither. `None` if there is no such pair.
    pub(crate) fn ratio_to(&self, other: &Self, column: &str) -> Option<Summary> {
        if self.point.element() != other.point.element() {
            return None;
        }
        let pairs = self.each.iter().filter_map(|(repetition, row)| {
            let base = other.each.get(repetition)?.get(column).filter(|value| **value > 0.0)?;
            Some(row.get(column)? / base)
        });
        Summary::of(&pairs.collect::<Vec<f64>>())
    }

    pub(crate) fn noisy(&self) -> bool {
        self.columns.get("seconds").is_some_and(Summary::noisy)
    }

    pub(crate) fn object(&self) -> Value {
        let columns: Map<String, Value> = (self.columns.iter())
            .map(|(name, s)| ((*name).to_owned(), json!([s.median, s.low, s.high])))
            .collect();
        json!({
            "point": self.point.id, "experiment": self.point.experiment,
            "scale": self.point.scale, "parameters": self.point.parameters,
            "variant": self.point.variant, "units": self.point.units,
            "repetitions": self.repetitions, "failed": self.failed, "noisy": self.noisy(),
            "columns": columns,
        })
    }
}

/// Summarizes the rows of each planned point.
pub(crate) fn summarize(plan: &Plan, rows: &[Row]) -> Vec<Measured> {
    let measured = |point: &Point| {
        let own: Vec<&Row> = rows.iter().filter(|row| row.point.id == point.id).collect();
        let good: Vec<&&Row> = own.iter().filter(|row| row.failure.is_none()).collect();
        let columns = COLUMNS.iter().filter_map(|column| {
            let values: Vec<f64> =
                good.iter().filter_map(|row| row.numbers.get(column).copied()).collect();
            // A column that only some repetitions have is not summarized.
            let complete = values.len() == good.len();
            complete.then(|| Summary::of(&values)).flatten().map(|summary| (*column, summary))
        });
        Measured {
            point: point.clone(),
            repetitions: good.len(),
            failed: own.len() - good.len(),
            columns: columns.collect(),
            each: good.iter().map(|row| (row.repetition, row.numbers.clone())).collect(),
        }
    };
    plan.points.iter().map(measured).collect()
}

#[cfg(test)]
mod tests {
    use super::super::spec::Experiment;
    use super::*;
    use std::path::Path;

    #[test]
    fn ratios_are_formed_within_repetitions() {
        let file = "../paper-results/experiments/fig8.toml";
        let fig8 = Experiment::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
        let points = fig8.unwrap_or_else(|e| panic!("{}", e.message)).points("tiny");
        let points = points.unwrap_or_else(|e| panic!("{}", e.message));
        let point = |id: &str| points.iter().find(|p| p.id == id).unwrap().clone();
        let measured = |id: &str, seconds: &[(usize, f64)]| {
            let rows = seconds.iter().map(|(i, s)| (*i, BTreeMap::from([("aggregate_s", *s)])));
            let (point, columns) = (point(id), BTreeMap::new());
            Measured { point, repetitions: seconds.len(), failed: 0, columns, each: rows.collect() }
        };
        // The machine is twice as slow in the second repetition; the third has no partner.
        let one = measured("fig8.c1.s128", &[(1, 4.0), (2, 8.0), (3, 100.0)]);
        let two = measured("fig8.c2.s128", &[(1, 2.0), (2, 4.0), (4, 1.0)]);
        let ratio = one.ratio_to(&two, "aggregate_s").unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high), (2.0, 2.0, 2.0));
        assert_eq!(one.ratio_to(&two, "seconds"), None);
        let other = measured("fig8.c2.s256", &[(1, 2.0)]);
        assert_eq!(one.ratio_to(&other, "aggregate_s"), None, "not in one element");
    }
}
