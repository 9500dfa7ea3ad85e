//! Canonical bytes of Python values, and fresh values from the bytes. Equal values have the same bytes, independent of
//! the order of sets and dicts and of the hash seed.
//!
//! A value is a tag and its content. Sets and dicts are sorted by the bytes of their elements and keys. Classes (enums,
//! dataclasses, named tuples) are written as their qualified names; a codec remembers the classes that it has seen.
//! `library` has the values of Python's library.

use crate::python::class::{Class, ClassKind, derived_from};
use crate::python::library::Library;
use crate::python::set_order;
use crate::system::encoding;
use parking_lot::Mutex;
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple, PyType};
use rustc_hash::FxHashMap as HashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

const DEEPEST: usize = 100;
/// A clock is a field of a process: it is not inside of another value.
const CLOCKS: usize = 2;
/// Encodes and decodes the values of one system.
#[pyclass(frozen, module = "plait._native")]
pub struct Codec {
    pid: Py<PyType>,
    enum_base: Py<PyType>,
    new_object: Py<PyAny>,
    set_attribute: Py<PyAny>,
    classes: Mutex<Classes>,
    /// The classes that make the values of missing keys (`defaultdict`), by name.
    factories: Mutex<HashMap<String, Py<PyType>>>,
    pids: Mutex<HashMap<String, HashMap<u64, Py<PyAny>>>>,
}

#[derive(Default)]
struct Classes {
    by_type: HashMap<usize, usize>,
    by_name: HashMap<String, usize>,
    all: Vec<Arc<Class>>,
}

#[pymethods]
impl Codec {
    #[new]
    fn new(py: Python, pid: Py<PyType>) -> PyResult<Codec> {
        let enum_base = py.import("enum")?.getattr("Enum")?.cast_into::<PyType>()?.unbind();
        let object = py.import("builtins")?.getattr("object")?;
        let new_object = object.getattr("__new__")?.unbind();
        let set_attribute = object.getattr("__setattr__")?.unbind();
        Ok(Codec {
            pid,
            enum_base,
            new_object,
            set_attribute,
            classes: Mutex::default(),
            factories: Mutex::default(),
            pids: Mutex::default(),
        })
    }

    /// The canonical bytes of a value.
    fn encode<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let mut encoder = Encoder { codec: self, out: Vec::with_capacity(64), mutable: Vec::new(), depth: 0 };
        encoder.value(value)?;
        Ok(PyBytes::new(py, &encoder.out))
    }

    /// The names of the classes of values so far.
    fn known(&self) -> Vec<String> {
        let factories = self.factories.lock();
        let factories = factories.keys().filter(|name| in_python(name).is_none());
        let known: BTreeSet<String> = self.classes.lock().by_name.keys().chain(factories).cloned().collect();
        known.into_iter().collect()
    }

    /// Make a class known, so that its values can be decoded before one of them was encoded.
    #[pyo3(signature = (class_, /))]
    fn learn(&self, class_: &Bound<PyType>) -> PyResult<()> {
        self.class(class_)?;
        self.factory(class_).map(|_| ())
    }

    /// Decode the id of a shared object to this object.
    #[pyo3(signature = (role, index, object_, /))]
    fn refer(&self, role: String, index: u64, object_: Py<PyAny>) {
        self.pids.lock().entry(role).or_default().insert(index, object_);
    }

    /// A local state from its parts.
    #[staticmethod]
    #[pyo3(signature = (parts, /))]
    fn joined<'py>(py: Python<'py>, parts: Vec<Vec<u8>>) -> Bound<'py, PyBytes> {
        let mut local = parts[0].clone();
        encoding::tuple(parts[1..].iter().map(Vec::as_slice), &mut local);
        PyBytes::new(py, &local)
    }

    /// The parts of a local state: its status, and the content of each field.
    #[staticmethod]
    fn fields<'py>(py: Python<'py>, local: &[u8]) -> Vec<Bound<'py, PyBytes>> {
        encoding::fields(local).into_iter().map(|part| PyBytes::new(py, part)).collect()
    }

    /// A fresh value.
    fn decode<'py>(&self, py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let mut decoder = Decoder { codec: self, py, rest: content };
        let value = decoder.value()?;
        if decoder.rest.is_empty() { Ok(value) } else { Err(PyValueError::new_err("content goes on after its value")) }
    }
}

impl Codec {
    /// Ids are immutable: one object each.
    fn pid<'py>(&self, py: Python<'py>, role: &str, index: u64) -> PyResult<Bound<'py, PyAny>> {
        {
            let pids = self.pids.lock();
            if let Some(found) = pids.get(role).and_then(|of_role| of_role.get(&index)) {
                return Ok(found.bind(py).clone());
            }
        }
        let made = self.pid.bind(py).call1((role, index))?;
        let mut pids = self.pids.lock();
        pids.entry(role.to_owned()).or_default().insert(index, made.clone().unbind());
        Ok(made)
    }

    fn class(&self, class: &Bound<PyType>) -> PyResult<Arc<Class>> {
        let address = class.as_ptr() as usize;
        {
            let classes = self.classes.lock();
            if let Some(&index) = classes.by_type.get(&address) {
                return Ok(classes.all[index].clone());
            }
        }
        let py = class.py();
        let entry = Arc::new(Class::of(class, self.pid.bind(py), self.enum_base.bind(py))?);
        let mut classes = self.classes.lock();
        if entry.kind.is_named() {
            let (name, index) = (entry.name.clone(), classes.all.len());
            if classes.by_name.contains_key(&name) {
                return Err(PyTypeError::new_err(format!("two different classes are called {name}")));
            }
            classes.by_name.insert(name, index);
        }
        let index = classes.all.len();
        classes.by_type.insert(address, index);
        classes.all.push(entry.clone());
        Ok(entry)
    }

    /// The name of a class that makes the values of missing keys.
    pub fn factory(&self, class: &Bound<PyType>) -> PyResult<String> {
        let name = format!("{}.{}", class.module()?, class.qualname()?);
        let mut factories = self.factories.lock();
        let known = factories.entry(name.clone()).or_insert_with(|| class.clone().unbind());
        if known.is(class) {
            Ok(name)
        } else {
            Err(PyTypeError::new_err(format!("two different classes are called {name}")))
        }
    }

    pub fn factory_named<'py>(&self, py: Python<'py>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let name: &str = name.extract()?;
        if let Some(class) = self.factories.lock().get(name) {
            return Ok(class.bind(py).clone().into_any());
        }
        let (module, class) = in_python(name).ok_or_else(|| PyValueError::new_err(format!("unknown class {name}")))?;
        py.import(module)?.getattr(class)
    }
}

/// The module and the name of a class that every interpreter has.
fn in_python(name: &str) -> Option<(&str, &str)> {
    name.split_once('.').filter(|(module, _)| matches!(*module, "builtins" | "collections"))
}

pub struct Encoder<'a> {
    pub codec: &'a Codec,
    pub out: Vec<u8>,
    /// Addresses of the mutable objects met, to find aliases.
    mutable: Vec<usize>,
    depth: usize,
}

impl Encoder<'_> {
    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    pub fn bytes(&mut self, tag: u8, content: &[u8]) {
        self.out.push(tag);
        self.number(content.len() as u64);
        self.out.extend_from_slice(content);
    }

    pub fn once(&mut self, value: &Bound<PyAny>, what: &str) -> PyResult<()> {
        let address = value.as_ptr() as usize;
        if self.mutable.contains(&address) {
            return Err(PyTypeError::new_err(format!(
                "the same {what} object {} is in two places; a state holds values, not references: copy it",
                value.repr()?
            )));
        }
        self.mutable.push(address);
        Ok(())
    }

    fn items<'py>(&mut self, tag: u8, items: impl ExactSizeIterator<Item = Bound<'py, PyAny>>) -> PyResult<()> {
        self.out.push(tag);
        self.number(items.len() as u64);
        items.into_iter().try_for_each(|item| self.value(&item))
    }

    /// The bytes of values, sorted.
    pub fn sorted<'py>(
        &mut self,
        values: impl Iterator<Item = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)>,
    ) -> PyResult<()> {
        let start = self.out.len();
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for (key, value) in values {
            self.value(&key)?;
            if let Some(value) = value {
                self.value(&value)?;
            }
            parts.push(self.out.split_off(start));
        }
        parts.sort_unstable();
        self.number(parts.len() as u64);
        parts.iter().for_each(|part| self.out.extend_from_slice(part));
        Ok(())
    }

    pub fn value(&mut self, value: &Bound<PyAny>) -> PyResult<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(PyTypeError::new_err("the value is nested too deeply (does it contain itself?)"));
        }
        self.exact(value)?;
        self.depth -= 1;
        Ok(())
    }

    fn exact(&mut self, value: &Bound<PyAny>) -> PyResult<()> {
        if value.is_none() {
            self.out.push(b'N');
        } else if let Ok(truth) = value.cast_exact::<PyBool>() {
            self.out.push(if truth.is_true() { b'T' } else { b'F' });
        } else if let Ok(number) = value.cast_exact::<PyInt>() {
            match number.extract::<i64>() {
                Ok(small) => {
                    self.out.push(b'i');
                    self.number(((small << 1) ^ (small >> 63)) as u64);
                }
                Err(_) => {
                    let digits = number.str()?;
                    self.bytes(b'I', digits.to_str()?.as_bytes());
                }
            }
        } else if let Ok(string) = value.cast_exact::<PyString>() {
            let utf8 = string
                .to_str()
                .map_err(|_| PyTypeError::new_err("a string contains lone surrogates, which UTF-8 cannot encode"))?;
            self.bytes(b's', utf8.as_bytes());
        } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            self.items(b't', tuple.iter())?;
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            self.once(value, "list")?;
            self.items(b'l', list.iter())?;
        } else if let Ok(dict) = value.cast_exact::<PyDict>() {
            self.once(value, "dict")?;
            self.out.push(b'd');
            self.sorted(dict.iter().map(|(k, v)| (k, Some(v))))?;
        } else if let Some(set) = set::<PySet>(value) {
            self.once(value, "set")?;
            self.out.push(b'S');
            self.sorted(set.iter().map(|v| (v, None)))?;
        } else if let Some(set) = set::<PyFrozenSet>(value) {
            self.out.push(b'Z');
            self.sorted(set.iter().map(|v| (v, None)))?;
        } else if let Ok(float) = value.cast_exact::<PyFloat>() {
            let number = float.value();
            let bits = if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() };
            self.out.push(b'f');
            self.out.extend_from_slice(&bits.to_le_bytes());
        } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
            self.bytes(b'b', bytes.as_bytes());
        } else {
            self.instance(value)?;
        }
        Ok(())
    }

    fn instance(&mut self, value: &Bound<PyAny>) -> PyResult<()> {
        let py = value.py();
        let class = self.codec.class(&value.get_type())?;
        match class.kind {
            ClassKind::Pid => {
                let role: String = value.getattr(intern!(py, "role"))?.extract()?;
                let index: u64 = value.getattr(intern!(py, "index"))?.extract()?;
                self.bytes(b'P', role.as_bytes());
                self.number(index);
            }
            ClassKind::Shared => {
                // A state has a reference to it.
                let id = value.getattr_opt(intern!(py, "_id"))?.ok_or_else(|| {
                    PyTypeError::new_err((
                        format!(
                            "{} is not a shared object of the System",
                            value.repr().map_or_else(|_| class.name.clone(), |r| r.to_string())
                        ),
                        "make it before the System, and hold it in a field of a process",
                    ))
                })?;
                return self.instance(&id);
            }
            ClassKind::Enum => {
                class.nothing_else(value)?;
                self.bytes(b'E', class.name.as_bytes());
                let member: Option<String> = value.getattr(intern!(py, "_name_"))?.extract()?;
                if let Some(member) = member.filter(|name| !name.contains('|')) {
                    self.bytes(b's', member.as_bytes());
                    return Ok(());
                }
                // A combination of members, or none of them.
                let number = value.getattr(intern!(py, "_value_"))?;
                if !class.flag || !class.class.bind(py).call1((&number,))?.is(value) {
                    let message = format!("{value} is not a member of its enum {}", class.name);
                    return Err(PyTypeError::new_err(message));
                }
                self.value(&number)?;
            }
            ClassKind::NamedTuple => {
                class.nothing_else(value)?;
                self.bytes(b'n', class.name.as_bytes());
                let items = value.cast::<PyTuple>()?;
                self.items(b't', items.iter())?;
            }
            ClassKind::Dataclass => {
                if class.name == "plait.model.clock.Clock" && self.depth > CLOCKS {
                    let hint = "a clock stays in its field: compare it, and use the result";
                    return Err(PyTypeError::new_err(("it holds a clock", hint)));
                }
                if class.mutable {
                    self.once(value, &class.name)?;
                }
                class.nothing_else(value)?;
                self.bytes(b'D', class.name.as_bytes());
                self.number(class.fields.len() as u64);
                for field in &class.fields {
                    let content = value.getattr(field.bind(py)).map_err(|_| {
                        PyTypeError::new_err(format!("{} has no value for its field {field}", class.name))
                    })?;
                    self.value(&content)?;
                }
            }
            ClassKind::Derived => {
                class.nothing_else(value)?;
                self.bytes(b'u', class.name.as_bytes());
                let base = derived_from(&value.get_type())?.expect("it derives from one");
                // Past the methods of the class, which may say something else.
                if let Ok(tuple) = value.cast::<PyTuple>() {
                    return self.items(b't', tuple.iter());
                }
                let plain = if base.is(py.get_type::<PyString>()) {
                    base.call_method1(intern!(py, "__str__"), (value,))?
                } else {
                    base.call_method1(intern!(py, "__add__"), (value, 0))?
                };
                self.exact(&plain)?;
            }
            ClassKind::Library(library) => {
                class.nothing_else(value)?;
                self.library(library, value)?;
            }
            ClassKind::Other => {
                return Err(PyTypeError::new_err(format!(
                    "{} (of type {}) cannot be part of a state",
                    value.repr()?,
                    value.get_type().qualname()?
                )));
            }
        }
        Ok(())
    }
}

/// A plain set. A subclass of the user's could carry more than its elements.
fn set<'a, 'py, T: PyTypeInfo>(value: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, T>> {
    let class = value.get_type();
    let plain = class.is(T::type_object(value.py())) || set_order::is_made(&class);
    value.cast::<T>().ok().filter(|_| plain)
}

pub struct Decoder<'a, 'py> {
    pub codec: &'a Codec,
    pub py: Python<'py>,
    rest: &'a [u8],
}

impl<'a, 'py> Decoder<'a, 'py> {
    fn take(&mut self, count: usize) -> PyResult<&'a [u8]> {
        if self.rest.len() < count {
            return Err(PyValueError::new_err("content ends early"));
        }
        let (head, tail) = self.rest.split_at(count);
        self.rest = tail;
        Ok(head)
    }

    pub fn number(&mut self) -> PyResult<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
            if shift > 63 {
                return Err(PyValueError::new_err("a number is too long"));
            }
        }
    }

    pub fn text(&mut self) -> PyResult<&'a str> {
        let length = self.number()? as usize;
        std::str::from_utf8(self.take(length)?).map_err(|_| PyValueError::new_err("text is not UTF-8"))
    }

    fn class(&mut self) -> PyResult<Arc<Class>> {
        let name = self.text()?;
        let classes = self.codec.classes.lock();
        let index = classes.by_name.get(name);
        index.map(|&i| classes.all[i].clone()).ok_or_else(|| PyValueError::new_err(format!("unknown class {name}")))
    }

    pub fn items(&mut self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let count = self.number()?;
        (0..count).map(|_| self.value()).collect()
    }

    pub fn value(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match self.take(1)?[0] {
            b'N' => py.None().into_bound(py),
            b'T' => PyBool::new(py, true).to_owned().into_any(),
            b'F' => PyBool::new(py, false).to_owned().into_any(),
            b'i' => {
                let folded = self.number()?;
                let value = (folded >> 1) as i64 ^ -((folded & 1) as i64);
                value.into_pyobject(py)?.into_any()
            }
            b'I' => {
                let digits = self.text()?;
                py.get_type::<PyInt>().call1((digits,))?
            }
            b's' => PyString::new(py, self.text()?).into_any(),
            b't' => PyTuple::new(py, self.items()?)?.into_any(),
            b'l' => PyList::new(py, self.items()?)?.into_any(),
            b'd' => {
                let dict = PyDict::new(py);
                for _ in 0..self.number()? {
                    let key = self.value()?;
                    dict.set_item(key, self.value()?)?;
                }
                dict.into_any()
            }
            b'S' => PySet::new(py, self.items()?)?.into_any(),
            b'Z' => PyFrozenSet::new(py, self.items()?)?.into_any(),
            b'f' => {
                let bits: [u8; 8] = self.take(8)?.try_into().expect("eight bytes");
                PyFloat::new(py, f64::from_bits(u64::from_le_bytes(bits))).into_any()
            }
            b'b' => {
                let length = self.number()? as usize;
                PyBytes::new(py, self.take(length)?).into_any()
            }
            b'P' => {
                let role = self.text()?;
                let index = self.number()?;
                self.codec.pid(py, role, index)?
            }
            b'E' => {
                let class = self.class()?;
                if self.rest.first() == Some(&b's') {
                    self.take(1)?;
                    class.class.bind(py).get_item(self.text()?)?
                } else {
                    let number = self.value()?;
                    class.class.bind(py).call1((number,))?
                }
            }
            b'n' | b'u' => {
                // Past the constructor of the class, which may do more.
                let class = self.class()?;
                let content = self.value()?;
                content.get_type().call_method1(intern!(py, "__new__"), (class.class.bind(py), content))?
            }
            b'D' => {
                let class = self.class()?;
                let instance = self.codec.new_object.bind(py).call1((class.class.bind(py),))?;
                self.number()?;
                // Past the class's own __setattr__, which may forbid it (a frozen dataclass).
                let dict = instance.getattr_opt(intern!(py, "__dict__"))?;
                let dict = dict.as_ref().and_then(|d| d.cast::<PyDict>().ok()).filter(|_| !class.has_slots);
                for field in &class.fields {
                    let value = self.value()?;
                    match dict {
                        Some(dict) => dict.set_item(field.bind(py), value)?,
                        None => {
                            self.codec.set_attribute.bind(py).call1((&instance, field.bind(py), value))?;
                        }
                    }
                }
                instance
            }
            tag => {
                let library = Library::with_tag(tag);
                let library = library.ok_or_else(|| PyValueError::new_err(format!("unknown tag {tag}")))?;
                return self.library(library);
            }
        })
    }
}
