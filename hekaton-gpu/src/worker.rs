//! The computations of a worker for assignments of one type (spec: mirage#commit, mirage#prove), for several of them at once.
//!
//! The sums are those of the CPU's prover before the single points are added: blinding stays with the caller.

use crate::arguments::{Compare, Rows, Select};
use crate::device::{Buffer, Device, Error, launch};
use crate::kernel::Kernel;
use crate::limbs::{FrLimbs, limbs};
use crate::msm::{Bases, Curve};
use crate::transform::{Transforms, multiply};
use ark_bls12_381::Fr;
use hekaton_arith::{Domain, G1Point, G2Point};
use hekaton_core::mirage::{SparseQuery, Sums, Unsatisfied};
use std::ops::Range;
use std::sync::Arc;

/// A sparse matrix, as keys have it.
#[derive(Clone, Copy, Debug)]
pub struct MatrixParts<'a> {
    /// The index in `entries` at which each row starts, and the end of the last row.
    pub starts: &'a [u32],
    /// The variable and the index of the coefficient of each entry.
    pub entries: &'a [[u32; 2]],
}

/// A type's keys.
#[derive(Clone, Copy, Debug)]
pub struct TypeParts<'a> {
    /// The number of variables.
    pub variables: usize,
    /// The matrices A, B and C.
    pub matrices: [MatrixParts<'a>; 3],
    /// The coefficients of their entries; 1 and -1 first.
    pub coefficients: &'a [Fr],
    /// The domain of the type.
    pub domain: &'a Domain,
    /// The query of A.
    pub a: SparseQuery<'a, G1Point>,
    /// The query of B.
    pub b: SparseQuery<'a, G2Point>,
    /// The query of C over the public, committed and sum variables.
    pub x: SparseQuery<'a, G1Point>,
    /// The query of C over the last variables: a point for each.
    pub l: &'a [G1Point],
    /// The query of the quotient: a point for each element of the domain.
    pub h: &'a [G1Point],
    /// The query of D: a point for each committed value.
    pub d: &'a [G1Point],
}

#[derive(Debug)]
struct OnDevice {
    starts: Buffer<u32>,
    entries: Buffer<[u32; 2]>,
}

#[derive(Debug)]
struct Selected<P> {
    /// None for the last variables.
    variables: Option<Buffer<u32>>,
    first: usize,
    bases: Bases<P>,
}

/// The keys of a type in a device's memory.
#[derive(Debug)]
pub struct TypeOnDevice {
    variables: usize,
    rows: usize,
    matrices: [OnDevice; 3],
    coefficients: Buffer<FrLimbs>,
    transforms: Transforms,
    a: Selected<G1Point>,
    b: Selected<G2Point>,
    x: Selected<G1Point>,
    l: Selected<G1Point>,
    h: Bases<G1Point>,
    d: Bases<G1Point>,
    device: Arc<dyn Device>,
}

impl TypeOnDevice {
    /// Copies the keys of a type to a device, for batches of `vectors` assignments. With `multiples`, the multiples
    /// of all points are computed, too, which takes about twenty times the memory and makes proofs of small
    /// types faster.
    ///
    /// # Errors
    /// If a length or an index does not fit the others, or the memory does not suffice.
    pub fn new(
        device: &Arc<dyn Device>,
        parts: &TypeParts<'_>,
        vectors: usize,
        multiples: bool,
    ) -> Result<Self, Error> {
        let rows = check(parts)?;
        let select = |query: SparseQuery<'_, G1Point>| -> Result<_, Error> {
            Ok(Selected {
                variables: Some(Buffer::of(device, query.variables)?),
                first: 0,
                bases: Bases::new(device, query.points, vectors, multiples)?,
            })
        };
        let upload = |matrix: &MatrixParts<'_>| -> Result<_, Error> {
            Ok(OnDevice {
                starts: Buffer::of(device, matrix.starts)?,
                entries: Buffer::of(device, matrix.entries)?,
            })
        };
        let [a, b, c] = &parts.matrices;
        Ok(Self {
            variables: parts.variables,
            rows,
            matrices: [upload(a)?, upload(b)?, upload(c)?],
            coefficients: Buffer::of(device, &limbs(parts.coefficients))?,
            transforms: Transforms::new(device, parts.domain)?,
            a: select(parts.a)?,
            b: Selected {
                variables: Some(Buffer::of(device, parts.b.variables)?),
                first: 0,
                bases: Bases::new(device, parts.b.points, vectors, multiples)?,
            },
            x: select(parts.x)?,
            l: Selected {
                variables: None,
                first: parts.variables - parts.l.len(),
                bases: Bases::new(device, parts.l, vectors, multiples)?,
            },
            h: Bases::new(device, parts.h, vectors, multiples)?,
            d: Bases::new(device, parts.d, vectors, multiples)?,
            device: Arc::clone(device),
        })
    }

    /// Computes the sum of the committed values of each vector with their query (spec: mirage#commit).
    ///
    /// # Errors
    /// If the number of values is not a multiple of that of the query's points, or the device fails.
    pub fn commit(&self, values: &Buffer<FrLimbs>) -> Result<Vec<G1Point>, Error> {
        self.d.multiply(values)
    }

    /// Computes the sums of each assignment (spec: mirage#prove); with `check`, returns the first row that an
    /// assignment does not satisfy instead.
    ///
    /// # Errors
    /// If the number of values is not a multiple of that of variables, or the device fails.
    pub fn prove(
        &self,
        assignments: &Buffer<FrLimbs>,
        check: bool,
    ) -> Result<Vec<Result<Sums, Unsatisfied>>, Error> {
        let found = assignments.len();
        let vectors = found / self.variables;
        let size = self.h.len();
        let (Ok(count), true) =
            (u32::try_from(vectors * size), found.is_multiple_of(self.variables))
        else {
            return Err(Error::Size {
                what: "the number of values of assignments",
                expected: format!("a multiple of {}, for fewer than 2^32 rows", self.variables),
                found,
            });
        };
        if vectors == 0 {
            return Ok(Vec::new());
        }
        let a = self.products(0, assignments, count)?;
        let b = self.products(1, assignments, count)?;
        let unsatisfied = match check {
            true => self.unsatisfied(assignments, &a, &b, count)?,
            false => vec![u32::MAX; vectors],
        };
        self.transforms.to_coset(&a)?;
        self.transforms.to_coset(&b)?;
        multiply(&a, &b)?;
        drop(b);
        let h = self.h.multiply(&a)?;
        drop(a);
        let l = self.sums(&self.l, assignments, vectors)?;
        let x = self.sums(&self.x, assignments, vectors)?;
        let a = self.sums(&self.a, assignments, vectors)?;
        let b = self.sums(&self.b, assignments, vectors)?;
        let sums = (0..vectors).map(|i| match unsatisfied[i] {
            u32::MAX => Ok(Sums { a: a[i], b: b[i], x: x[i], l: l[i], h: h[i] }),
            row => Err(Unsatisfied { constraint: row as usize }),
        });
        Ok(sums.collect())
    }

    fn sizes(&self) -> [u32; 3] {
        [self.rows, self.variables, self.h.len()]
            .map(|size| u32::try_from(size).expect("checked in `new`"))
    }

    /// The products of all rows of a matrix with each assignment.
    fn products(
        &self,
        matrix: usize,
        assignments: &Buffer<FrLimbs>,
        count: u32,
    ) -> Result<Buffer<FrLimbs>, Error> {
        let products = Buffer::new(&self.device, count as usize)?;
        let (matrix, [rows, variables, size]) = (&self.matrices[matrix], self.sizes());
        let arguments = Rows {
            starts: matrix.starts.address(),
            entries: matrix.entries.address(),
            coefficients: self.coefficients.address(),
            assignments: assignments.address(),
            products: products.address(),
            rows,
            variables,
            size,
            count,
        };
        // SAFETY: `new` has checked all indices, and `prove` the number of values.
        unsafe { launch(&*self.device, Kernel::Rows, count, &arguments) }?;
        Ok(products)
    }

    fn unsatisfied(
        &self,
        assignments: &Buffer<FrLimbs>,
        a: &Buffer<FrLimbs>,
        b: &Buffer<FrLimbs>,
        count: u32,
    ) -> Result<Vec<u32>, Error> {
        let (matrix, [rows, variables, size]) = (&self.matrices[2], self.sizes());
        let unsatisfied = Buffer::of(&self.device, &vec![u32::MAX; (count / size) as usize])?;
        let arguments = Compare {
            starts: matrix.starts.address(),
            entries: matrix.entries.address(),
            coefficients: self.coefficients.address(),
            assignments: assignments.address(),
            a: a.address(),
            b: b.address(),
            unsatisfied: unsatisfied.address(),
            rows,
            variables,
            size,
            count,
        };
        // SAFETY: as in `products`; there is a place for each assignment.
        unsafe { launch(&*self.device, Kernel::Compare, count, &arguments) }?;
        unsatisfied.read()
    }

    /// The sums of a query with each assignment.
    fn sums<P: Curve>(
        &self,
        query: &Selected<P>,
        assignments: &Buffer<FrLimbs>,
        vectors: usize,
    ) -> Result<Vec<P>, Error> {
        if query.bases.is_empty() {
            return Ok(vec![P::zeroed(); vectors]);
        }
        let number = |n: usize| {
            u32::try_from(n).map_err(|_| Error::Size {
                what: "the number of values of a batch",
                expected: "below 2^32".into(),
                found: n,
            })
        };
        let values = Buffer::new(&self.device, vectors * query.bases.len())?;
        let count = number(values.len())?;
        let arguments = Select {
            assignments: assignments.address(),
            indices: query.variables.as_ref().map_or(0, Buffer::address),
            values: values.address(),
            variables: number(self.variables)?,
            first: number(query.first)?,
            each: number(query.bases.len())?,
            count,
        };
        // SAFETY: `new` has checked that all variables of the query exist.
        unsafe { launch(&*self.device, Kernel::Select, count, &arguments) }?;
        query.bases.multiply(&values)
    }
}

/// Checks all lengths and indices, since kernels do not. Returns the number of rows.
fn check(parts: &TypeParts<'_>) -> Result<usize, Error> {
    let require = |is_right: bool, what, expected: &str, found| match is_right {
        true => Ok(()),
        false => Err(Error::Size { what, expected: expected.into(), found }),
    };
    let (variables, size) = (parts.variables, parts.domain.size());
    require((1..1 << 31).contains(&variables), "the number of variables", "1 to 2^31", variables)?;
    let rows = parts.matrices[0].starts.len().saturating_sub(1);
    require(rows <= size, "the number of rows", "at most the domain's", rows)?;
    for matrix in &parts.matrices {
        let MatrixParts { starts, entries } = matrix;
        let is_right = starts.len() == rows + 1
            && starts[0] == 0
            && starts.is_sorted()
            && starts[rows] as usize == entries.len();
        require(is_right, "the rows of a matrix", "ascending, as many in each", starts.len())?;
        let is_right = entries.iter().all(|[variable, coefficient]| {
            (*variable as usize) < variables && (*coefficient as usize) < parts.coefficients.len()
        });
        require(is_right, "the entries of a matrix", "of variables that exist", entries.len())?;
    }
    let queries: [(&[u32], usize); 3] = [
        (parts.a.variables, parts.a.points.len()),
        (parts.b.variables, parts.b.points.len()),
        (parts.x.variables, parts.x.points.len()),
    ];
    for (query, points) in queries {
        let is_right = query.len() == points && query.iter().all(|i| (*i as usize) < variables);
        require(is_right, "a query", "a point for each of its variables, which exist", points)?;
    }
    let (l, h) = (parts.l.len(), parts.h.len());
    require(l <= variables, "the query L", "of at most all variables", l)?;
    require(h == size, "the query H", "a point for each element of the domain", h)?;
    Ok(rows)
}

impl TypeParts<'_> {
    /// Returns the last variables, whose query is L.
    pub fn last(&self) -> Range<usize> {
        self.variables - self.l.len()..self.variables
    }
}
