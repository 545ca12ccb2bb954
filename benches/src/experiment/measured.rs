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
    /// How many repetitions count.
    pub(crate) repetitions: usize,
    /// How many do not.
    pub(crate) failed: usize,
    pub(crate) columns: BTreeMap<&'static str, Summary>,
}

impl Measured {
    /// The median of a column, or the value of a parameter.
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        let column = self.columns.get(name).map(|summary| summary.median);
        column.or_else(|| self.point.parameters.get(name).map(|value| *value as f64))
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
        }
    };
    plan.points.iter().map(measured).collect()
}
