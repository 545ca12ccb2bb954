//! The circom templates that repeat in a circuit, from the names in its `.sym` file.

use crate::error::{FileError, FilePosition, Problem};
use crate::numbers::count;
use crate::partition::Occurrences;
use crate::symbols;
use crate::system::System;
use std::collections::HashMap;
use std::path::Path;

/// A template, with the same parameters, of which a circuit has several components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The name of its first component.
    pub example: String,
    /// The number of its components.
    pub components: u64,
    /// The mean number of constraints of a component, those of components inside it included. A
    /// constraint is counted where its largest wire is.
    pub rows: u64,
    /// The mean number of wires that these constraints share with others, or with the public: the
    /// slots that a component would need as a part.
    pub interface: u64,
}

/// A component.
struct Component {
    /// The number of its template in the file, once a signal of its own is found.
    template: Option<u64>,
    name: String,
    /// The component around it.
    outer: Option<u32>,
    rows: u64,
    interface: u64,
}

/// The components of a circuit.
#[derive(Default)]
struct Components {
    list: Vec<Component>,
    by_name: HashMap<String, u32>,
}

impl Components {
    /// The component with a name, which is added with all around it if it is new.
    fn get(&mut self, name: &str) -> u32 {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let outer = name.rsplit_once('.').map(|(outer, _)| self.get(outer));
        let id = count(self.list.len());
        self.by_name.insert(name.to_owned(), id);
        let own = name.to_owned();
        self.list.push(Component { template: None, name: own, outer, rows: 0, interface: 0 });
        id
    }

    /// Calls `f` for a component and all around it.
    fn around(&mut self, component: u32, mut f: impl FnMut(u32, &mut Component)) {
        let mut next = Some(component);
        while let Some(id) = next {
            let component = &mut self.list[id as usize];
            f(id, component);
            next = component.outer;
        }
    }

    /// Adds the components of a `.sym` file. Returns the component of each wire, by its first name.
    fn read(&mut self, path: &Path, system: &System) -> Result<Vec<u32>, FileError> {
        let mut of_wire = vec![NOWHERE; system.wires() as usize];
        symbols::lines(path, |number, wire, template, name| {
            let fail = |problem| {
                let place = FilePosition { line: Some(number), ..FilePosition::default() };
                FileError::new(path, place, problem)
            };
            let Some((own, _)) = name.rsplit_once('.') else { return Ok(()) };
            if own.bytes().filter(|byte| *byte == b'.').count() > DEEPEST {
                return Err(fail(Problem::Line));
            }
            let id = self.get(own);
            // Components of no template say nothing about one: they must not count as components of the same.
            self.list[id as usize].template = template;
            let Some(wire) = wire else { return Ok(()) };
            match of_wire.get_mut(wire as usize) {
                Some(place) if *place == NOWHERE => *place = id,
                Some(_) => {}
                None => {
                    let wires = system.wires();
                    return Err(fail(crate::RowError::NoSuchWire { wire, wires }.into()));
                }
            }
            Ok(())
        })?;
        Ok(of_wire)
    }

    /// Counts the constraints of each component. Returns the component of each constraint.
    fn count_rows(&mut self, system: &System, of_wire: &[u32]) -> Vec<u32> {
        let mut of_row = vec![NOWHERE; system.rows()];
        for (row, place) in of_row.iter_mut().enumerate() {
            let [a, b, c] = system.row(row).map(|side| side.last().map_or(0, |term| term.wire));
            *place = of_wire[a.max(b).max(c) as usize];
            if *place != NOWHERE {
                self.around(*place, |_, component| component.rows += 1);
            }
        }
        of_row
    }

    /// Counts the wires that each component shares with others, or with the public.
    fn count_interfaces(&mut self, system: &System, occurrences: &Occurrences, of_row: &[u32]) {
        // How many rows of a wire are in each component; all 0 in between.
        let (mut counts, mut touched) = (vec![0u32; self.list.len()], Vec::new());
        for wire in 1..system.wires() {
            let rows = occurrences.rows(wire);
            for component in rows.iter().map(|row| of_row[*row as usize]).filter(|c| *c != NOWHERE)
            {
                self.around(component, |id, _| {
                    if counts[id as usize] == 0 {
                        touched.push(id);
                    }
                    counts[id as usize] += 1;
                });
            }
            for id in touched.drain(..) {
                let count = std::mem::take(&mut counts[id as usize]) as usize;
                // Some of the wire's rows are outside of the component, so it is an input or output of it.
                if count < rows.len() || wire <= system.public() {
                    self.list[id as usize].interface += 1;
                }
            }
        }
    }
}

/// The component of wires without a name.
const NOWHERE: u32 = u32::MAX;
/// The deepest nesting of components in a name.
// Names nest by recursion here, and a file may claim any depth.
const DEEPEST: usize = 200;

/// The templates with at least two components that have constraints, those with the most constraints
/// in all components first.
///
/// # Errors
/// If a line is not one of a `.sym` file, or names a wire that does not exist.
pub(crate) fn templates(
    path: &Path,
    system: &System,
    occurrences: &Occurrences,
) -> Result<Vec<Template>, FileError> {
    let mut components = Components::default();
    let of_wire = components.read(path, system)?;
    let of_row = components.count_rows(system, &of_wire);
    components.count_interfaces(system, occurrences, &of_row);
    Ok(summed(&components.list))
}

/// The means over the components of each template.
fn summed(components: &[Component]) -> Vec<Template> {
    // By template: its first component, the number of components, and the sums.
    let mut found: HashMap<u64, (usize, u64, u64, u64)> = HashMap::new();
    for (id, component) in components.iter().enumerate() {
        if let Some(template) = component.template {
            let sums = found.entry(template).or_insert((id, 0, 0, 0));
            sums.1 += 1;
            sums.2 += component.rows;
            sums.3 += component.interface;
        }
    }
    let repeats = found.into_values().filter(|(_, count, rows, _)| *count > 1 && *rows > 0);
    let mut all: Vec<(usize, u64, u64, u64)> = repeats.collect();
    all.sort_by_key(|(first, _, rows, _)| (std::cmp::Reverse(*rows), *first));
    let template = |(first, count, rows, interface): (usize, u64, u64, u64)| Template {
        example: components[first].name.clone(),
        components: count,
        rows: rows.div_ceil(count),
        interface: interface.div_ceil(count),
    };
    all.into_iter().map(template).collect()
}
