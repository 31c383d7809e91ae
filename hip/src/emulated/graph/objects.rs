//! Things of the program's that graphs keep alive.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// A thing with a count of those who hold it, and a function that ends it.
pub(crate) struct Kept {
    count: Mutex<u32>,
    destroy: unsafe extern "C" fn(*mut c_void),
    data: usize,
}

impl Kept {
    /// # Safety
    /// `destroy` may be called with `data`, once, at any later time and on any thread.
    pub(crate) unsafe fn new(
        destroy: unsafe extern "C" fn(*mut c_void),
        data: *mut c_void,
        count: u32,
    ) -> Kept {
        Kept { count: Mutex::new(count), destroy, data: data as usize }
    }

    /// Nothing is held any more that has been ended.
    pub(crate) fn retain(&self, more: u32) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        if *count > 0 {
            *count = count.saturating_add(more);
        }
    }

    /// Whether the thing has been ended.
    pub(crate) fn is_over(&self) -> bool {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) == 0
    }

    /// Ends the thing if nobody holds it any more.
    pub(crate) fn release(&self, fewer: u32) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        if *count == 0 {
            return;
        }
        *count = count.saturating_sub(fewer);
        let is_over = *count == 0;
        drop(count);
        if is_over {
            // SAFETY: whoever made it vouched for the call, and the count gets here once.
            unsafe { (self.destroy)(self.data as *mut c_void) };
        }
    }
}
