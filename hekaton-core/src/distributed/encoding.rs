//! The items that messages between ranks consist of (docs/formats.md, "Messages between ranks"). Decoding
//! checks them: numbers, texts, and curve and subgroup of points.

use crate::encoding::{DecodeError, Reader, put_string};
use hekaton_arith::{Fr, Group, MillerLoop, fr_from_bytes};

/// The maximum length of a text in a message, in bytes.
const TEXT: usize = 4096;

/// Builds the content of a message.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u32(mut self, x: u32) -> Self {
        self.0.extend(x.to_le_bytes());
        self
    }

    /// A number of items, or the index of an instance.
    #[allow(clippy::cast_possible_truncation, reason = "layouts have at most 2^31 instances")]
    pub(crate) fn count(self, n: usize) -> Self {
        self.u32(n as u32)
    }

    /// [`Self::count`] of each item of a list, for a fold.
    pub(crate) fn of_count(self, n: &usize) -> Self {
        self.count(*n)
    }

    pub(crate) fn u64(mut self, x: u64) -> Self {
        self.0.extend(x.to_le_bytes());
        self
    }

    pub(crate) fn f64(self, x: f64) -> Self {
        self.u64(x.to_bits())
    }

    /// A text, truncated to [`TEXT`] bytes; control characters become spaces, because texts of
    /// ranks are printed.
    pub(crate) fn text(mut self, text: &str) -> Self {
        let end =
            text.char_indices().map(|(at, _)| at).take_while(|at| *at <= TEXT).last().unwrap_or(0);
        let text = if text.len() <= TEXT { text } else { &text[..end] };
        put_string(&mut self.0, &text.replace(char::is_control, " "));
        self
    }

    pub(crate) fn scalar(mut self, x: &Fr) -> Self {
        self.0.extend(hekaton_arith::fr_to_bytes(x));
        self
    }

    pub(crate) fn scalars(self, x: &[Fr]) -> Self {
        x.iter().fold(self, |out, x| out.scalar(x))
    }

    /// Points in memory form.
    pub(crate) fn points<G: Group>(mut self, points: &[G]) -> Self {
        self.0.extend_from_slice(bytemuck::cast_slice(points));
        self
    }

    pub(crate) fn miller(mut self, value: &MillerLoop) -> Self {
        self.0.extend(value.to_bytes());
        self
    }

    /// Bytes with their length: one byte below 255, otherwise 255 and a u32. They are below 4 GiB.
    #[allow(clippy::cast_possible_truncation, reason = "the caller checks the length")]
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        match u8::try_from(bytes.len()) {
            Ok(length) if length < u8::MAX => self.0.push(length),
            _ => {
                self.0.push(u8::MAX);
                self.0.extend((bytes.len() as u32).to_le_bytes());
            }
        }
        self.0.extend_from_slice(bytes);
        self
    }
}

impl Reader<'_> {
    pub(crate) fn f64(&mut self, what: &'static str) -> Result<f64, DecodeError> {
        // Durations are added up: a NaN or an infinity would spread to all sums.
        let value = f64::from_bits(self.u64(what)?);
        if value.is_finite() && value >= 0.0 {
            Ok(value)
        } else {
            Err(self.invalid(what, 8, "not a finite non-negative number of seconds"))
        }
    }

    pub(crate) fn text(&mut self, what: &'static str) -> Result<String, DecodeError> {
        self.string(TEXT, what)
    }

    pub(crate) fn scalar(&mut self, what: &'static str) -> Result<Fr, DecodeError> {
        fr_from_bytes(&self.array(what)?).map_err(|e| self.invalid(what, 32, e))
    }

    pub(crate) fn scalars(&mut self, n: usize, what: &'static str) -> Result<Vec<Fr>, DecodeError> {
        (0..n).map(|_| self.scalar(what)).collect()
    }

    fn raw_points<G: Group>(
        &mut self,
        n: usize,
        what: &'static str,
    ) -> Result<Vec<G>, DecodeError> {
        let size = std::mem::size_of::<G>();
        let bytes = self.take(n.saturating_mul(size), what)?;
        Ok(bytes.chunks_exact(size).map(bytemuck::pod_read_unaligned).collect())
    }

    /// Points in memory form from rank 0, on the curve. Rank 0 has checked the subgroup when it
    /// received them.
    pub(crate) fn checked_points<G: Group>(
        &mut self,
        n: usize,
        what: &'static str,
    ) -> Result<Vec<G>, DecodeError> {
        let points = self.raw_points::<G>(n, what)?;
        match G::find_off_curve(&points) {
            None => Ok(points),
            Some(i) => {
                Err(self.invalid(what, (n - i) * std::mem::size_of::<G>(), "not on the curve"))
            }
        }
    }

    /// Points in memory form, on the curve and in the subgroup.
    pub(crate) fn points<G: Group>(
        &mut self,
        n: usize,
        what: &'static str,
    ) -> Result<Vec<G>, DecodeError> {
        // The equations about products of pairings hold in the subgroup only.
        let points = self.checked_points::<G>(n, what)?;
        match points.iter().position(|p| !p.is_in_group()) {
            None => Ok(points),
            Some(i) => {
                Err(self.invalid(what, (n - i) * std::mem::size_of::<G>(), "not in the subgroup"))
            }
        }
    }

    pub(crate) fn one_point<G: Group>(&mut self, what: &'static str) -> Result<G, DecodeError> {
        Ok(self.points(1, what)?[0])
    }

    pub(crate) fn miller(&mut self, what: &'static str) -> Result<MillerLoop, DecodeError> {
        let bytes = self.take(MillerLoop::BYTES, what)?;
        MillerLoop::from_bytes(bytes).map_err(|e| self.invalid(what, MillerLoop::BYTES, e))
    }

    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<&[u8], DecodeError> {
        let n = match self.array::<1>(what)? {
            [u8::MAX] => self.u32(what)? as usize,
            [short] => usize::from(short),
        };
        self.take(n, what)
    }

    /// The next number as a length or an index.
    pub(crate) fn length(&mut self, what: &'static str) -> Result<usize, DecodeError> {
        Ok(usize::try_from(self.u64(what)?).expect("a prover is built for 64-bit machines only"))
    }

    /// The number of items that follow, of at least `smallest` bytes each. A number that exceeds
    /// the remaining bytes is an error before anything is allocated.
    pub(crate) fn count(
        &mut self,
        smallest: usize,
        what: &'static str,
    ) -> Result<usize, DecodeError> {
        // A message cannot make the receiver allocate more than a multiple of its own length.
        let n = self.u32(what)? as usize;
        let left = self.left();
        if n.saturating_mul(smallest) > left {
            return Err(self.invalid(
                what,
                4,
                format_args!("{n} items cannot fit in {left} bytes"),
            ));
        }
        Ok(n)
    }
}
