//! The order in which sets iterate. While a question is asked a second time, sets iterate in another order: code whose
//! result changes depends on an order that Python does not define.
//!
//! The order is changed below Python: the slot `tp_iter` of `set` and `frozenset` (with `__iter__`, `set.pop` and
//! `dict.fromkeys`) is replaced while such a call runs, and put back afterwards. So the order changes for all code that
//! iterates a set: functions of the user, libraries, and C code that uses the iterator protocol. A thread that runs
//! meanwhile sees the usual order, because the new functions look at a variable of their thread first.
//!
//! The layout of these objects is private to CPython. So a word is replaced only if it holds what public functions say
//! that it must hold; otherwise the order is not changed there, and `plait.check.tabulate.probe` finds out what is left.

use parking_lot::Mutex;
use pyo3::ffi;
use pyo3::ffi::{PyObject, PyTypeObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PySet, PyTuple, PyType};
use rustc_hash::FxHashMap as HashMap;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A type object of CPython is larger than this, in words.
const WORDS_OF_A_TYPE: usize = 48;
/// Results of cached functions are kept apart for this many orders.
const ORDERS_OF_CACHES: usize = 4;

#[derive(Clone, Copy)]
enum Mode {
    Usual,
    /// The usual order, but iterations are noted.
    Watched,
    Permuted(usize, *const SetOrder),
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Usual) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn mode() -> Mode {
    MODE.try_with(Cell::get).unwrap_or(Mode::Usual)
}

/// A word that is replaced while a call with another order runs.
struct Patch {
    word: *mut usize,
    original: usize,
    ours: usize,
}

// SAFETY: the words belong to objects that live as long as the process; they are touched with the interpreter's lock.
unsafe impl Send for Patch {}

#[derive(Default)]
struct Patches {
    all: Vec<Patch>,
    /// How many calls need them now.
    calls: usize,
    searched: bool,
}

static PATCHES: Mutex<Patches> = Mutex::new(Patches { all: Vec::new(), calls: 0, searched: false });
static ITERATE: AtomicUsize = AtomicUsize::new(0);
static POP: AtomicUsize = AtomicUsize::new(0);
static FROM_KEYS: AtomicUsize = AtomicUsize::new(0);
static CALL_CACHED: AtomicUsize = AtomicUsize::new(0);
static ALLOCATE: AtomicUsize = AtomicUsize::new(0);
/// From Python 3.13 on, `list(s)` does not iterate exact sets by the protocol. There, sets that are made during a call
/// belong to these subclasses of `set` and `frozenset`.
static MADE: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// Changes the order of sets for the calls of one tabulation.
#[pyclass(frozen, module = "plait._native")]
pub struct SetOrder {
    /// Of each cached function and order: a copy with a cache of its own. The cached results have the usual order.
    twins: Mutex<HashMap<(usize, usize), Twin>>,
}

/// A cached function, which must not be freed, and its copy (or none).
type Twin = (Py<PyAny>, Py<PyAny>);

#[pymethods]
impl SetOrder {
    /// `made`: subclasses of `set` and `frozenset` that behave the same.
    #[new]
    fn new(py: Python, made: (Bound<PyType>, Bound<PyType>)) -> PyResult<SetOrder> {
        search(py, &made)?;
        Ok(SetOrder { twins: Mutex::default() })
    }

    /// Call a function in the usual order of sets. `largest` then says how large the sets are that it iterated.
    #[pyo3(signature = (function, /, *arguments))]
    fn watched<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        LARGEST.set(0);
        let _during = During::start(Mode::Watched);
        function.call1(arguments)
    }

    /// The size of the largest set that the last watched call of this thread iterated; 0 if no order can be seen.
    #[getter]
    fn largest(&self) -> usize {
        LARGEST.get()
    }

    /// Call a function while sets iterate in another order: backwards, beginning with another element for each `turn`.
    #[pyo3(signature = (turn, function, /, *arguments))]
    fn permuted<'py>(
        &self,
        turn: usize,
        function: &Bound<'py, PyAny>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _during = During::start(Mode::Permuted(turn, self));
        function.call1(arguments)
    }
}

impl SetOrder {
    /// The copy of a cached function whose cache is filled in this order; none for code of Plait and of Python's
    /// library, whose caches do not depend on the order of a set.
    fn twin(&self, cached: &Bound<PyAny>, turn: usize) -> PyResult<Option<Py<PyAny>>> {
        let (py, key) = (cached.py(), (cached.as_ptr() as usize, turn % ORDERS_OF_CACHES));
        if let Some((_, twin)) = self.twins.lock().get(&key) {
            return Ok((!twin.is_none(py)).then(|| twin.clone_ref(py)));
        }
        let made = match cached.getattr_opt("__wrapped__")? {
            Some(function) if is_users(&function)? => {
                let parameters = cached.call_method0("cache_parameters")?;
                let decorator = py.import("functools")?.getattr("lru_cache")?;
                decorator.call((), Some(parameters.cast::<PyDict>()?))?.call1((function,))?.unbind()
            }
            _ => py.None(),
        };
        let mut twins = self.twins.lock();
        let (_, twin) = twins.entry(key).or_insert((cached.clone().unbind(), made));
        Ok((!twin.is_none(py)).then(|| twin.clone_ref(py)))
    }
}

fn is_users(function: &Bound<PyAny>) -> PyResult<bool> {
    let py = function.py();
    if function.get_type().name()? != "function" {
        return Ok(true); // a partial, for example
    }
    let module: String = function.getattr("__module__")?.extract().unwrap_or_default();
    let package = module.split('.').next().unwrap_or_default();
    if package == "plait" {
        return Ok(module.starts_with("plait.protocols"));
    }
    let library = py.import("sys")?.getattr("stdlib_module_names")?;
    Ok(!library.contains(package)?)
}

/// Whether sets of this class stand for plain ones (see `MADE`).
pub fn is_made(class: &Bound<PyType>) -> bool {
    MADE.iter().any(|made| made.load(Relaxed) == class.as_ptr() as usize)
}

/// While this lives, the thread has another mode, and the words are replaced.
struct During {
    before: Mode,
}

impl During {
    fn start(mode: Mode) -> During {
        let mut patches = PATCHES.lock();
        patches.calls += 1;
        if patches.calls == 1 {
            // SAFETY: `search` verified these words. The interpreter's lock is held.
            patches.all.iter().for_each(|patch| unsafe { patch.word.write_volatile(patch.ours) });
        }
        During { before: MODE.replace(mode) }
    }
}

impl Drop for During {
    fn drop(&mut self) {
        MODE.set(self.before);
        let mut patches = PATCHES.lock();
        patches.calls -= 1;
        if patches.calls == 0 {
            // SAFETY: as above.
            patches.all.iter().for_each(|patch| unsafe { patch.word.write_volatile(patch.original) });
        }
    }
}

// -- what stands in the words meanwhile ------------------------------------------------------------------------------

unsafe extern "C" fn iterate(set: *mut PyObject) -> *mut PyObject {
    // SAFETY: `search` stored the original function; `set` is a set, and the result is a new reference or an error.
    unsafe {
        let original: ffi::getiterfunc = std::mem::transmute(ITERATE.load(Relaxed));
        match mode() {
            Mode::Usual => original(set),
            Mode::Watched => {
                note(set);
                original(set)
            }
            Mode::Permuted(turn, _) => {
                let items = permuted(set, turn);
                if items.is_null() {
                    return null_mut();
                }
                let iterator = ffi::PyObject_GetIter(items);
                ffi::Py_DecRef(items);
                iterator
            }
        }
    }
}

unsafe extern "C" fn pop(set: *mut PyObject, nothing: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        let original: ffi::PyCFunction = std::mem::transmute(POP.load(Relaxed));
        let Mode::Permuted(turn, _) = mode() else {
            note(set);
            return original(set, nothing);
        };
        if ffi::PySet_Size(set) < 2 {
            return original(set, nothing);
        }
        let items = permuted(set, turn);
        if items.is_null() {
            return null_mut();
        }
        let first = ffi::PyTuple_GetItem(items, 0);
        ffi::Py_IncRef(first);
        ffi::Py_DecRef(items);
        if ffi::PySet_Discard(set, first) < 0 {
            ffi::Py_DecRef(first);
            return null_mut();
        }
        first
    }
}

unsafe extern "C" fn from_keys(
    class: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
) -> *mut PyObject {
    // SAFETY: as above; the arguments are an array of `count` references, of which at most two are looked at.
    unsafe {
        let original: FastFunction = std::mem::transmute(FROM_KEYS.load(Relaxed));
        if !(1..=2).contains(&count) || !is_set(*arguments) {
            return original(class, arguments, count);
        }
        let Mode::Permuted(turn, _) = mode() else {
            note(*arguments);
            return original(class, arguments, count);
        };
        let items = permuted(*arguments, turn);
        if items.is_null() {
            return null_mut();
        }
        let value = if count == 2 { *arguments.add(1) } else { null_mut() };
        let result = original(class, [items, value].as_ptr(), count);
        ffi::Py_DecRef(items);
        result
    }
}

unsafe extern "C" fn call_cached(
    cached: *mut PyObject,
    arguments: *mut PyObject,
    named: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as above. The SetOrder lives as long as the call that set the mode.
    unsafe {
        let original: ffi::ternaryfunc = std::mem::transmute(CALL_CACHED.load(Relaxed));
        let Mode::Permuted(turn, order) = mode() else {
            return original(cached, arguments, named);
        };
        Python::attach(|py| match (*order).twin(&Bound::from_borrowed_ptr(py, cached), turn) {
            Ok(Some(twin)) => original(twin.as_ptr(), arguments, named),
            Ok(None) => original(cached, arguments, named),
            Err(error) => {
                error.restore(py);
                null_mut()
            }
        })
    }
}

unsafe extern "C" fn allocate(class: *mut PyTypeObject, items: ffi::Py_ssize_t) -> *mut PyObject {
    // SAFETY: as above. The subclasses have the same layout.
    unsafe {
        let original: ffi::allocfunc = std::mem::transmute(ALLOCATE.load(Relaxed));
        match mode() {
            Mode::Usual => return original(class, items),
            Mode::Watched => {
                noted(2); // it may be iterated without the protocol
                return original(class, items);
            }
            Mode::Permuted(..) => (),
        }
        let number = if class == &raw mut ffi::PySet_Type { 0 } else { 1 };
        original(MADE[number].load(Relaxed) as *mut PyTypeObject, items)
    }
}

type FastFunction = unsafe extern "C" fn(*mut PyObject, *const *mut PyObject, ffi::Py_ssize_t) -> *mut PyObject;

unsafe fn is_set(value: *mut PyObject) -> bool {
    // SAFETY: a type test of a valid object.
    unsafe { ffi::PySet_Check(value) != 0 || ffi::PyFrozenSet_Check(value) != 0 }
}

/// Note that a set is iterated, if an order can be seen.
unsafe fn note(set: *mut PyObject) {
    // SAFETY: `set` is a set.
    let size = unsafe { ffi::PySet_Size(set) };
    if size > 1 {
        noted(size as usize);
    }
}

fn noted(size: usize) {
    LARGEST.try_with(|largest| largest.set(largest.get().max(size))).ok();
}

/// The elements as a tuple: backwards, rotated by the turn. As many turns as there are elements (three or more) bring each
/// element to each place.
unsafe fn permuted(set: *mut PyObject, turn: usize) -> *mut PyObject {
    // SAFETY: the original function gives an iterator; PyTuple_SetItem takes the references that PyIter_Next gives.
    unsafe {
        let original: ffi::getiterfunc = std::mem::transmute(ITERATE.load(Relaxed));
        let iterator = original(set);
        if iterator.is_null() {
            return null_mut();
        }
        let mut items = Vec::new();
        loop {
            let item = ffi::PyIter_Next(iterator);
            if item.is_null() {
                break;
            }
            items.push(item);
        }
        ffi::Py_DecRef(iterator);
        items.reverse();
        if items.len() > 2 {
            let middle = turn % items.len();
            items.rotate_left(middle);
        }
        let tuple =
            if ffi::PyErr_Occurred().is_null() { ffi::PyTuple_New(items.len() as ffi::Py_ssize_t) } else { null_mut() };
        for (place, item) in items.into_iter().enumerate() {
            if tuple.is_null() {
                ffi::Py_DecRef(item);
            } else {
                ffi::PyTuple_SetItem(tuple, place as ffi::Py_ssize_t, item);
            }
        }
        tuple
    }
}

// -- finding the words -----------------------------------------------------------------------------------------------

/// Find the words to replace. At later calls: those of classes that are new.
fn search(py: Python, made: &(Bound<PyType>, Bound<PyType>)) -> PyResult<()> {
    let version = py.version_info();
    let known = (3, 11) <= (version.major, version.minor) && (version.major, version.minor) <= (3, 14);
    let implementation: String = py.import("sys")?.getattr("implementation")?.getattr("name")?.extract()?;
    let (set, frozen) = (py.get_type::<PySet>(), py.get_type::<PyFrozenSet>());
    if !known || implementation != "cpython" {
        return Ok(());
    }
    let mut found = Vec::new();
    if !std::mem::replace(&mut PATCHES.lock().searched, true) {
        let original = slot(&set, ffi::Py_tp_iter);
        if original == 0 || original != slot(&frozen, ffi::Py_tp_iter) {
            return Ok(());
        }
        ITERATE.store(original, Relaxed);
        for class in [&set, &frozen] {
            found.extend(word_of_type(class, original, iterate as *const () as usize));
            let wrapper = class.getattr("__dict__")?.get_item("__iter__")?;
            found.extend(word_of_wrapper(&wrapper, class, original)?);
        }
        let pop_words = method(&set, "pop", ffi::METH_NOARGS)?;
        found.extend(pop_words.map(|word| patched(word, &POP, pop as *const () as usize)));
        let dict = py.get_type::<PyDict>();
        let keys_word = method(&dict, "fromkeys", ffi::METH_FASTCALL | ffi::METH_CLASS)?;
        found.extend(keys_word.map(|word| patched(word, &FROM_KEYS, from_keys as *const () as usize)));
        let cached = py.import("functools")?.getattr("_lru_cache_wrapper")?.cast_into::<PyType>()?;
        CALL_CACHED.store(slot(&cached, ffi::Py_tp_call), Relaxed);
        found.extend(word_of_type(&cached, slot(&cached, ffi::Py_tp_call), call_cached as *const () as usize));
        std::mem::forget(cached);
        let general = slot(&set, ffi::Py_tp_alloc);
        if (version.major, version.minor) >= (3, 13) && general == slot(&frozen, ffi::Py_tp_alloc) {
            ALLOCATE.store(general, Relaxed);
            for (class, (place, subclass)) in [&set, &frozen].into_iter().zip(MADE.iter().zip([&made.0, &made.1])) {
                place.store(subclass.clone().into_ptr() as usize, Relaxed);
                found.extend(word_of_type(class, general, allocate as *const () as usize));
            }
        }
    }
    let original = ITERATE.load(Relaxed);
    let mut classes: Vec<Bound<PyAny>> = vec![set.into_any(), frozen.into_any()];
    while let Some(class) = classes.pop() {
        for subclass in class.call_method0("__subclasses__")?.try_iter()? {
            let subclass = subclass?;
            let inherited = word_of_type(subclass.cast::<PyType>()?, original, iterate as *const () as usize);
            if let Some(patch) = inherited
                && !PATCHES.lock().all.iter().any(|p| p.word == patch.word)
            {
                found.push(patch);
                std::mem::forget(subclass.clone()); // its word may be written later
            }
            classes.push(subclass);
        }
    }
    let mut patches = PATCHES.lock();
    if patches.calls == 0 {
        patches.all.extend(found);
    }
    Ok(())
}

fn slot(class: &Bound<PyType>, number: c_int) -> usize {
    // SAFETY: any type may be asked for its slots.
    unsafe { ffi::PyType_GetSlot(class.as_type_ptr(), number) as usize }
}

/// The only word of a type object that holds the original function.
fn word_of_type(class: &Bound<PyType>, original: usize, ours: usize) -> Option<Patch> {
    only_word(class.as_ptr() as *mut usize, 3..WORDS_OF_A_TYPE, original, ours)
}

fn only_word(object: *mut usize, range: std::ops::Range<usize>, original: usize, ours: usize) -> Option<Patch> {
    // SAFETY: the object has so many words.
    let mut words = range.filter(|&i| unsafe { object.add(i).read() } == original);
    match (words.next(), words.next()) {
        (Some(i), None) if original != 0 => Some(Patch { word: unsafe { object.add(i) }, original, ours }),
        _ => None,
    }
}

/// A descriptor begins with its class, its name and its qualified name, which Python gives too. So this is its layout.
fn is_descriptor(descriptor: &Bound<PyAny>, class: &Bound<PyType>) -> PyResult<bool> {
    let (name, qualified) = (descriptor.getattr("__name__")?, descriptor.getattr("__qualname__")?);
    let expected = [class.as_ptr(), name.as_ptr(), qualified.as_ptr()];
    let words = descriptor.as_ptr() as *const usize;
    // SAFETY: a descriptor has at least seven words.
    Ok((0..3).all(|i| unsafe { words.add(2 + i).read() } == expected[i] as usize))
}

/// The word of the function that a descriptor such as `set.__iter__` wraps.
fn word_of_wrapper(descriptor: &Bound<PyAny>, class: &Bound<PyType>, original: usize) -> PyResult<Option<Patch>> {
    if descriptor.get_type().name()? != "wrapper_descriptor" || !is_descriptor(descriptor, class)? {
        return Ok(None);
    }
    Ok(only_word(descriptor.as_ptr() as *mut usize, 5..7, original, iterate as *const () as usize))
}

/// The word of the C function of a method, if the method is called so, and takes its arguments in this way.
fn method(class: &Bound<PyType>, name: &str, flags: c_int) -> PyResult<Option<*mut usize>> {
    let descriptor = class.getattr("__dict__")?.get_item(name)?;
    let kind = descriptor.get_type();
    let kind = kind.name()?;
    let of_method = kind == "method_descriptor" || kind == "classmethod_descriptor";
    if !of_method || !is_descriptor(&descriptor, class)? {
        return Ok(None);
    }
    // SAFETY: after these words, a descriptor of a method has a pointer to its definition.
    unsafe {
        let definition = (descriptor.as_ptr() as *const *mut ffi::PyMethodDef).add(5).read();
        let called = CStr::from_ptr((*definition).ml_name).to_str() == Ok(name);
        let known = called && (*definition).ml_flags == flags;
        Ok(known.then(|| &raw mut (*definition).ml_meth as *mut usize))
    }
}

fn patched(word: *mut usize, original: &AtomicUsize, ours: usize) -> Patch {
    // SAFETY: `method` found the word.
    original.store(unsafe { word.read() }, Relaxed);
    Patch { word, original: original.load(Relaxed), ours }
}

const _: () = assert!(size_of::<ffi::PyMethodDefPointer>() == size_of::<*mut c_void>());
