//! Shapes and strides.

use crate::{Error, Result};

/// Where the elements of a tensor lie in a buffer: shape, strides and the first element, all in elements.
///
/// The element at index (i, j, …) is `offset + i × strides[0] + j × strides[1] + …`. A stride of 0 repeats
/// elements (broadcast). Rank 0 is one element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: Vec<usize>,
    strides: Vec<usize>,
    offset: usize,
    numel: usize,
}

impl Layout {
    /// Any layout.
    ///
    /// # Errors
    /// If shape and strides differ in length, or the last element's index does not fit in `usize`.
    pub fn new(shape: &[usize], strides: &[usize], offset: usize) -> Result<Layout> {
        let bad = |reason: &str| Error::BadLayout {
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            offset,
            reason: reason.to_owned(),
        };
        if shape.len() != strides.len() {
            return Err(bad("each dimension needs one stride"));
        }
        let numel = product(shape).ok_or_else(|| bad("the number of elements does not fit in 64 bits"))?;
        let layout = Layout { shape: shape.to_vec(), strides: strides.to_vec(), offset, numel };
        match layout.checked_required_len() {
            Some(_) => Ok(layout),
            None => Err(bad("the last element's index does not fit in 64 bits")),
        }
    }

    /// Row-major, without gaps, from the buffer's first element.
    ///
    /// # Errors
    /// If the number of elements does not fit in `usize`.
    pub fn contiguous(shape: &[usize]) -> Result<Layout> {
        let strides = row_major(shape);
        Layout::new(shape, &strides, 0)
    }

    /// A vector of `numel` elements.
    pub fn flat(numel: usize) -> Layout {
        Layout { shape: vec![numel], strides: vec![1], offset: 0, numel }
    }

    /// The same elements from another start.
    ///
    /// # Errors
    /// If the last element's index does not fit in `usize`.
    pub fn with_offset(&self, offset: usize) -> Result<Layout> {
        Layout::new(&self.shape, &self.strides, offset)
    }

    /// Dimensions `a` and `b` exchanged; no element moves.
    ///
    /// # Errors
    /// If there is no such dimension.
    pub fn transpose(&self, a: usize, b: usize) -> Result<Layout> {
        self.dimension(a)?;
        self.dimension(b)?;
        let mut layout = self.clone();
        layout.shape.swap(a, b);
        layout.strides.swap(a, b);
        Ok(layout)
    }

    /// Repeated to `shape`: new dimensions in front and dimensions of 1 get stride 0.
    ///
    /// # Errors
    /// If a dimension is neither 1 nor that of `shape`.
    pub fn broadcast(&self, shape: &[usize]) -> Result<Layout> {
        let added = shape
            .len()
            .checked_sub(self.rank())
            .ok_or_else(|| self.bad(format!("{shape:?} has fewer dimensions to broadcast to")))?;
        let mut strides = vec![0; shape.len()];
        for (i, (&from, &stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            let to = shape[added + i];
            if from == to {
                strides[added + i] = stride;
            } else if from != 1 {
                return Err(self.bad(format!("dimension {i} is {from}, which does not broadcast to {to}")));
            }
        }
        Layout::new(shape, &strides, self.offset)
    }

    /// `len` elements of dimension `dim` from `start`.
    ///
    /// # Errors
    /// If any of them is missing.
    pub fn narrow(&self, dim: usize, start: usize, len: usize) -> Result<Layout> {
        let size = self.dimension(dim)?;
        if start.checked_add(len).is_none_or(|end| end > size) {
            return Err(self.bad(format!("dimension {dim} has {size} elements, not {len} from {start}")));
        }
        let mut shape = self.shape.clone();
        shape[dim] = len;
        // Without elements the start may be anywhere; none is touched then.
        let offset = self.offset + if len == 0 || self.numel == 0 { 0 } else { start * self.strides[dim] };
        Layout::new(&shape, &self.strides, offset)
    }

    /// Some of the dimensions, in order, with the strides that they have in a contiguous tensor of this shape.
    ///
    /// # Errors
    /// If there is no such dimension, or one is named twice.
    pub fn contiguous_dims(&self, dims: &[usize]) -> Result<Layout> {
        let mut dims = dims.to_vec();
        dims.sort_unstable();
        if let Some(pair) = dims.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(self.bad(format!("dimension {} is named twice", pair[0])));
        }
        let strides = row_major(&self.shape);
        let shape = dims.iter().map(|&dim| self.dimension(dim)).collect::<Result<Vec<_>>>()?;
        Layout::new(&shape, &dims.iter().map(|&dim| strides[dim]).collect::<Vec<_>>(), 0)
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Index of the first element in the buffer.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements, each repetition counted.
    pub fn numel(&self) -> usize {
        self.numel
    }

    /// Whether the elements follow each other without gaps, from wherever the first one is.
    pub fn is_contiguous(&self) -> bool {
        if self.numel == 0 {
            return true;
        }
        let mut expected = 1;
        for (&dim, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if dim != 1 && stride != expected {
                return false;
            }
            expected = expected.wrapping_mul(dim);
        }
        true
    }

    /// How many elements a buffer must have at least to hold this layout: one past the last element.
    pub fn required_len(&self) -> usize {
        self.checked_required_len().unwrap_or(usize::MAX)
    }

    /// Index in the buffer of each element, in row-major order.
    pub fn indices(&self) -> impl Iterator<Item = usize> + '_ {
        let mut index = vec![0; self.rank()];
        let mut at = self.offset;
        (0..self.numel).map(move |_| {
            let here = at;
            for d in (0..index.len()).rev() {
                index[d] += 1;
                at = at.wrapping_add(self.strides[d]);
                if index[d] < self.shape[d] {
                    break;
                }
                at = at.wrapping_sub(index[d].wrapping_mul(self.strides[d]));
                index[d] = 0;
            }
            here
        })
    }

    fn checked_required_len(&self) -> Option<usize> {
        if self.numel == 0 {
            return Some(0);
        }
        let mut last = self.offset;
        for (&dim, &stride) in self.shape.iter().zip(&self.strides) {
            last = last.checked_add((dim - 1).checked_mul(stride)?)?;
        }
        last.checked_add(1)
    }

    fn dimension(&self, dim: usize) -> Result<usize> {
        self.shape.get(dim).copied().ok_or_else(|| self.bad(format!("there is no dimension {dim}")))
    }

    fn bad(&self, reason: String) -> Error {
        Error::BadLayout {
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            offset: self.offset,
            reason,
        }
    }
}

/// Strides of a tensor without gaps.
fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i].wrapping_mul(shape[i]);
    }
    strides
}

/// The product, 0 if any factor is 0 even where the others overflow.
fn product(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_usize, |n, &dim| n.checked_mul(dim))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contiguous(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    #[test]
    fn rank_zero_is_one_element() {
        let scalar = contiguous(&[]);
        assert_eq!((scalar.numel(), scalar.required_len()), (1, 1));
        assert!(scalar.is_contiguous());
        assert_eq!(scalar.indices().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn transposed_elements_are_where_they_were() {
        let t = contiguous(&[2, 3]).transpose(0, 1).unwrap();
        assert_eq!((t.shape(), t.strides()), (&[3, 2][..], &[1, 3][..]));
        assert!(!t.is_contiguous());
        assert_eq!(t.indices().collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn broadcast_repeats_and_needs_no_more_memory() {
        let b = contiguous(&[3, 1]).broadcast(&[2, 3, 2]).unwrap();
        assert_eq!(b.strides(), [0, 1, 0]);
        assert_eq!((b.numel(), b.required_len()), (12, 3));
        assert_eq!(b.indices().collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
        assert!(contiguous(&[3]).broadcast(&[2]).is_err());
        assert!(contiguous(&[3, 1]).broadcast(&[3]).is_err());
    }

    #[test]
    fn narrow_moves_the_start() {
        let n = contiguous(&[4, 3]).narrow(0, 1, 2).unwrap();
        assert_eq!((n.offset(), n.numel(), n.required_len()), (3, 6, 9));
        assert!(n.is_contiguous());
        let column = contiguous(&[4, 3]).narrow(1, 2, 1).unwrap();
        assert_eq!(column.indices().collect::<Vec<_>>(), [2, 5, 8, 11]);
        assert!(contiguous(&[4]).narrow(0, 3, 2).is_err());
        assert_eq!(contiguous(&[4]).narrow(0, 4, 0).unwrap().required_len(), 0);
    }

    #[test]
    fn dimensions_of_one_do_not_break_contiguity() {
        assert!(Layout::new(&[2, 1, 3], &[3, 77, 1], 5).unwrap().is_contiguous());
        assert!(!Layout::new(&[2, 3], &[4, 1], 0).unwrap().is_contiguous());
    }

    #[test]
    fn chosen_dimensions_have_the_strides_of_a_contiguous_tensor() {
        let layout = contiguous(&[4, 3, 2]).transpose(0, 2).unwrap();
        let dims = layout.contiguous_dims(&[2, 0]).unwrap();
        assert_eq!((dims.shape(), dims.strides(), dims.numel()), (&[2, 4][..], &[12, 1][..], 8));
        assert_eq!(layout.contiguous_dims(&[]).unwrap().numel(), 1);
        let text = |dims: &[usize]| layout.contiguous_dims(dims).unwrap_err().to_string();
        assert!(text(&[1, 1]).contains("dimension 1 is named twice"));
        assert!(text(&[3]).contains("there is no dimension 3"));
    }

    #[test]
    fn layouts_that_no_address_can_reach_are_errors() {
        assert!(Layout::contiguous(&[usize::MAX, 2]).is_err());
        assert!(Layout::new(&[2], &[usize::MAX], 1).is_err());
        assert!(Layout::new(&[2, 2], &[1], 0).is_err());
        assert_eq!(contiguous(&[usize::MAX, 2, 0]).numel(), 0);
    }
}
