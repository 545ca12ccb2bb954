//! Slots as Rust types: structs, arrays, vectors and tuples of one type, which stands for a wire
//! while the circuit is wired, for a number while it is executed, and for a variable while it is
//! synthesized.

use super::wire::Wire;
use ark_r1cs_std::fields::fp::FpVar;
use hekaton_arith::Fr;

/// A slot without a value, for the [shape](super::Part::reads) of a part's slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot;

/// The content of a slot: [`Slot`], [`Wire`], [`Fr`], or `FpVar<Fr>`.
pub trait Leaf: Slots<Self> + Clone {}

/// Slots that hold values of type `W`. Derive it for structs
/// ([`hekaton_circuit::parts::Slots`](derive@crate::parts::Slots)); arrays, vectors, tuples of up
/// to six, and `()` have it.
pub trait Slots<W>: Sized {
    /// Builds the slots in order, from a shape, which has the lengths of vectors.
    fn build(shape: &Shape, next: &mut dyn FnMut() -> W) -> Self;

    /// Visits the values of the slots in order.
    fn visit(&self, see: &mut dyn FnMut(&W));

    /// The shape of these slots.
    fn shape(&self) -> Shape;
}

/// The shape of slots: their number and their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// A shape that follows from the type. Vectors of it are empty.
    Unknown,
    Slot,
    List(Vec<Shape>),
    Fields(Vec<(&'static str, Shape)>),
}

const UNKNOWN: &Shape = &Shape(Form::Unknown);

impl Shape {
    /// The shape of slots without vectors, which follows from their type.
    pub const fn fixed() -> Self {
        Self(Form::Unknown)
    }

    /// The shape of a struct.
    pub fn fields(fields: impl IntoIterator<Item = (&'static str, Shape)>) -> Self {
        Self(Form::Fields(fields.into_iter().collect()))
    }

    /// The shape of a list.
    pub fn list(items: impl IntoIterator<Item = Shape>) -> Self {
        Self(Form::List(items.into_iter().collect()))
    }

    /// The shape of a field or an item.
    pub fn part(&self, position: usize) -> &Shape {
        match &self.0 {
            Form::Fields(fields) => fields.get(position).map_or(UNKNOWN, |(_, shape)| shape),
            Form::List(items) => items.get(position).unwrap_or(UNKNOWN),
            Form::Slot | Form::Unknown => UNKNOWN,
        }
    }

    /// The number of items of a list or fields of a struct.
    pub fn parts(&self) -> usize {
        match &self.0 {
            Form::Fields(fields) => fields.len(),
            Form::List(items) => items.len(),
            Form::Slot | Form::Unknown => 0,
        }
    }

    /// The names of the slots in order, as a Rust expression would name them: `limbs[3]`.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.push_names(&mut String::new(), &mut names);
        names
    }

    fn push_names(&self, path: &mut String, names: &mut Vec<String>) {
        let length = path.len();
        let mut part = |step: String, shape: &Shape, path: &mut String| {
            path.push_str(&step);
            shape.push_names(path, names);
            path.truncate(length);
        };
        match &self.0 {
            Form::Slot => names.push(path.clone()),
            Form::Unknown => {}
            Form::List(items) => {
                for (i, shape) in items.iter().enumerate() {
                    part(format!("[{i}]"), shape, path);
                }
            }
            Form::Fields(fields) => {
                for (name, shape) in fields {
                    let dot = if length == 0 { "" } else { "." };
                    part(format!("{dot}{name}"), shape, path);
                }
            }
        }
    }
}

macro_rules! leaf {
    ($($leaf:ty),*) => {$(
        impl Leaf for $leaf {}

        impl Slots<$leaf> for $leaf {
            fn build(_: &Shape, next: &mut dyn FnMut() -> $leaf) -> Self {
                next()
            }

            fn visit(&self, see: &mut dyn FnMut(&$leaf)) {
                see(self);
            }

            fn shape(&self) -> Shape {
                Shape(Form::Slot)
            }
        }
    )*};
}

leaf!(Slot, Wire, Fr, FpVar<Fr>);

impl<W> Slots<W> for () {
    fn build(_: &Shape, _: &mut dyn FnMut() -> W) -> Self {}

    fn visit(&self, _: &mut dyn FnMut(&W)) {}

    fn shape(&self) -> Shape {
        Shape::fields([])
    }
}

impl<W, T: Slots<W>> Slots<W> for Vec<T> {
    fn build(shape: &Shape, next: &mut dyn FnMut() -> W) -> Self {
        (0..shape.parts()).map(|i| T::build(shape.part(i), next)).collect()
    }

    fn visit(&self, see: &mut dyn FnMut(&W)) {
        self.iter().for_each(|item| item.visit(see));
    }

    fn shape(&self) -> Shape {
        Shape::list(self.iter().map(T::shape))
    }
}

impl<W, T: Slots<W>, const N: usize> Slots<W> for [T; N] {
    fn build(shape: &Shape, next: &mut dyn FnMut() -> W) -> Self {
        std::array::from_fn(|i| T::build(shape.part(i), next))
    }

    fn visit(&self, see: &mut dyn FnMut(&W)) {
        self.iter().for_each(|item| item.visit(see));
    }

    fn shape(&self) -> Shape {
        Shape::list(self.iter().map(T::shape))
    }
}

macro_rules! tuple {
    ($($part:ident $position:tt),*) => {
        impl<W, $($part: Slots<W>),*> Slots<W> for ($($part,)*) {
            fn build(shape: &Shape, next: &mut dyn FnMut() -> W) -> Self {
                ($($part::build(shape.part($position), next),)*)
            }

            fn visit(&self, see: &mut dyn FnMut(&W)) {
                $(self.$position.visit(see);)*
            }

            fn shape(&self) -> Shape {
                Shape::fields([$((stringify!($position), self.$position.shape())),*])
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, hekaton_derive::Slots)]
    struct Pair<W> {
        index: W,
        limbs: [W; 2],
    }

    #[derive(Clone, Debug, PartialEq, hekaton_derive::Slots)]
    struct Row<T> {
        pairs: Vec<Pair<T>>,
        last: T,
        nested: (T, [Pair<T>; 1]),
    }

    #[test]
    fn slots_are_built_and_visited_in_one_order() {
        let pair = Pair { index: Slot, limbs: [Slot; 2] };
        let row = Row { pairs: vec![pair.clone(); 2], last: Slot, nested: (Slot, [pair]) };
        let mut count = 0;
        let built: Row<Fr> = Slots::build(&Slots::<Slot>::shape(&row), &mut || {
            count += 1;
            Fr::from(count)
        });
        assert_eq!(count, 11);
        let mut seen = Vec::new();
        Slots::<Fr>::visit(&built, &mut |value| seen.push(*value));
        assert_eq!(seen, (1..=11).map(Fr::from).collect::<Vec<_>>());
        assert_eq!(built.pairs[1].limbs, [Fr::from(5u64), Fr::from(6u64)]);
        let names = Slots::<Fr>::shape(&built).names();
        assert_eq!(names[4], "pairs[1].limbs[0]");
        assert_eq!(names[6..8], ["last", "nested.0"]);
        assert_eq!(names[10], "nested.1[0].limbs[1]");
        assert_eq!(Slots::<Slot>::shape(&row), Slots::<Fr>::shape(&built));
    }

    #[test]
    fn only_vectors_need_a_shape() {
        let pair: Pair<Slot> = Slots::build(&Shape::fixed(), &mut || Slot);
        assert_eq!(Slots::<Slot>::shape(&pair).names().len(), 3);
        let none: Vec<Slot> = Slots::build(&Shape::fixed(), &mut || Slot);
        assert!(none.is_empty());
    }
}
