//! Handles of streams, events, modules, functions, pools, graphs and arrays.
//!
//! A handle is a number disguised as a pointer. It is never dereferenced and never reused, so a stale or invented one is an
//! error and not a crash.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::array::Array;
use super::graph::{Exec, Graph, Kept, Node};
use super::module::{Function, Module};
use super::pool::Pool;
use super::stream::{Event, Stream};
use crate::error::Error;

#[derive(Clone)]
pub(crate) enum Object {
    Stream(Arc<Stream>),
    Event(Arc<Event>),
    Module(Arc<Module>),
    Function(Arc<Function>),
    Pool(Arc<Pool>),
    Graph(Arc<Graph>),
    Node(Arc<Node>),
    Exec(Arc<Exec>),
    Kept(Arc<Kept>),
    Array(Arc<Array>),
}

/// A type that has handles.
pub(crate) trait Handled: Sized {
    /// Its name in error texts, with an article.
    const WHAT: &'static str;
    fn object(this: Arc<Self>) -> Object;
    fn from_object(object: &Object) -> Option<&Arc<Self>>;
}

macro_rules! handled {
    ($($type:ident $what:literal;)*) => {$(
        impl Handled for $type {
            const WHAT: &'static str = $what;
            fn object(this: Arc<Self>) -> Object {
                Object::$type(this)
            }
            fn from_object(object: &Object) -> Option<&Arc<Self>> {
                match object {
                    Object::$type(this) => Some(this),
                    _ => None,
                }
            }
        }
    )*};
}

handled! {
    Stream "a stream";
    Event "an event";
    Module "a module";
    Function "a function";
    Pool "a memory pool";
    Graph "a graph";
    Node "a node of a graph";
    Exec "a graph that can be launched";
    Kept "a user object";
    Array "an array";
}

pub(crate) struct Handles {
    next: AtomicU64,
    objects: RwLock<HashMap<u64, Object>>,
}

impl Handles {
    pub(crate) fn new() -> Handles {
        // HIP gives small numbers a meaning of their own as stream handles.
        Handles { next: AtomicU64::new(0x1000), objects: RwLock::default() }
    }

    pub(crate) fn insert<T: Handled>(&self, object: Arc<T>) -> *mut c_void {
        let handle = self.next.fetch_add(0x10, Ordering::Relaxed);
        self.objects.write().unwrap_or_else(PoisonError::into_inner).insert(handle, T::object(object));
        handle as *mut c_void
    }

    pub(crate) fn get<T: Handled>(&self, handle: *mut c_void) -> Result<Arc<T>, Error> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(&(handle as u64)).and_then(T::from_object).cloned().ok_or(wrong::<T>(handle))
    }

    pub(crate) fn remove<T: Handled>(&self, handle: *mut c_void) -> Result<Arc<T>, Error> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let object =
            objects.get(&(handle as u64)).and_then(T::from_object).cloned().ok_or(wrong::<T>(handle))?;
        objects.remove(&(handle as u64));
        Ok(object)
    }

    /// Removes every object that `condemned` picks.
    pub(crate) fn remove_if(&self, condemned: impl Fn(&Object) -> bool) {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.retain(|_, object| !condemned(object));
    }

    /// How many handles are open, for leak checks.
    pub(crate) fn len(&self) -> usize {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn wrong<T: Handled>(handle: *mut c_void) -> Error {
    Error::Handle { value: handle as u64, expected: T::WHAT }
}
