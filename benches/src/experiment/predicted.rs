//! Predictions of the model for one point: times with the ends of their bands.

use super::statistics::Summary;
use serde_json::Value;
use std::collections::BTreeMap;

/// The columns of figures that a prediction has, with their names in `model.csv`.
pub(crate) const PREDICTED: [(&str, [&str; 3]); 2] = [
    ("seconds", ["seconds", "lo_s", "hi_s"]),
    ("aggregate_s", ["aggregate_s", "aggregate_lo_s", "aggregate_hi_s"]),
];
/// The phases that the column `seconds` of a measured run consists of. A run lays out its circuit
/// while it loads keys, and computes the digest of the layout while it executes.
const PHASES: [&str; 5] = ["layout", "execute", "commit", "prove", "aggregate"];

/// The prediction next to a repetition: what `hekaton estimate --cores --json` printed.
pub(crate) const PREDICTION: &str = "model.json";

/// A predicted time: the middle and the ends of the band, in seconds.
pub(crate) type Band = [f64; 3];

/// The prediction for one point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Predicted {
    pub(crate) bands: BTreeMap<&'static str, Band>,
}

impl Predicted {
    /// The column by which a point is compared, and its band: the aggregation where the figure shows
    /// that, otherwise the whole run.
    pub(crate) fn compared(&self, shown: &[String]) -> Option<(&'static str, Band)> {
        let columns = PREDICTED.iter().rev().map(|(column, _)| *column);
        let mut candidates = columns.filter(|c| *c == "seconds" || shown.iter().any(|y| y == c));
        candidates.find_map(|c| Some((c, *self.bands.get(c)?)))
    }

    /// The median of several predictions, and the ends of all their bands; `None` without
    /// predictions.
    pub(crate) fn of(all: &[Self]) -> Option<Self> {
        let band = |column: &'static str| {
            let bands: Vec<Band> =
                all.iter().filter_map(|p| p.bands.get(column)).copied().collect();
            let middles: Vec<f64> = bands.iter().map(|band| band[0]).collect();
            let low = bands.iter().map(|band| band[1]).fold(f64::INFINITY, f64::min);
            let high = bands.iter().map(|band| band[2]).fold(0.0, f64::max);
            Some((column, [Summary::of(&middles)?.median, low, high]))
        };
        let bands: Option<BTreeMap<_, _>> = PREDICTED.iter().map(|(c, _)| band(c)).collect();
        bands.map(|bands| Self { bands })
    }

    /// The predicted time of a column, in seconds.
    pub(crate) fn seconds(&self, column: &str) -> Option<f64> {
        self.bands.get(column).map(|band| band[0])
    }

    /// The bands in an answer of `hekaton estimate --cores --json`.
    pub(crate) fn from_answer(answer: &Value) -> Option<Self> {
        let phases = answer["prediction"]["phases"].as_array()?;
        let band = |name: &str| -> Option<Band> {
            let phase = phases.iter().find(|p| p["phase"] == name)?;
            let end = |i: usize| phase["interval"][i].as_f64();
            Some([phase["seconds"].as_f64()?, end(0)?, end(1)?])
        };
        let add = |a: Band, b: Band| [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
        let all: Option<Vec<Band>> = PHASES.iter().map(|name| band(name)).collect();
        let seconds = all?.into_iter().fold([0.0; 3], add);
        let bands = [("seconds", seconds), ("aggregate_s", band("aggregate")?)];
        Some(Self { bands: BTreeMap::from(bands) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_aggregation_is_compared_where_it_is_shown() {
        let bands = BTreeMap::from([("seconds", [2.0; 3]), ("aggregate_s", [1.0; 3])]);
        let predicted = Predicted { bands };
        let column = |shown: &[&str]| {
            let columns: Vec<String> = shown.iter().map(|y| (*y).to_owned()).collect();
            predicted.compared(&columns).map(|(column, _)| column)
        };
        assert_eq!(column(&["aggregate_s"]), Some("aggregate_s"));
        assert_eq!(column(&["seconds", "constraints_per_core_second"]), Some("seconds"));
        assert_eq!(column(&["constraints_per_core_second"]), Some("seconds"));
    }

    #[test]
    fn several_predictions_have_one_band() {
        let one = |seconds: f64, spread: f64| {
            let band = [seconds, seconds - spread, seconds + spread];
            Predicted { bands: BTreeMap::from([("seconds", band), ("aggregate_s", band)]) }
        };
        let found = Predicted::of(&[one(3.0, 0.1), one(5.0, 0.5), one(4.0, 2.0)]).unwrap();
        assert_eq!(found.bands["seconds"], [4.0, 2.0, 6.0]);
        assert!(Predicted::of(&[]).is_none());
    }

    #[test]
    fn a_band_is_the_sum_of_its_phases() {
        let phase = |name: &str, seconds: f64| json!({ "phase": name, "seconds": seconds, "interval": [seconds / 2.0, seconds * 2.0] });
        let names = ["load_keys", "layout", "execute", "commit", "prove", "aggregate"];
        let phases: Vec<Value> = names.iter().map(|name| phase(name, 1.0)).collect();
        let found = Predicted::from_answer(&json!({ "prediction": { "phases": phases } })).unwrap();
        assert_eq!(found.bands["seconds"], [5.0, 2.5, 10.0], "without loading keys");
        assert_eq!(found.bands["aggregate_s"], [1.0, 0.5, 2.0]);
        assert!(
            Predicted::from_answer(&json!({ "prediction": { "phases": [phases[0]] } })).is_none()
        );
        let no_interval = json!({ "phase": "layout", "seconds": 1.0 });
        assert!(
            Predicted::from_answer(&json!({ "prediction": { "phases": [no_interval] } })).is_none()
        );
    }
}
