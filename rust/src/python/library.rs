//! Values of Python's library as canonical bytes: containers of `collections`, `Fraction` and `Decimal`.
//!
//! What code can see is part of the content: the order of an `OrderedDict` and of a `deque`, the limit of a deque, the
//! factory of a `defaultdict`, the entries of a `Counter` that are zero, the exponent of a `Decimal`. A `Counter` and a
//! `defaultdict` are dicts, whose order is no part of their content.

use crate::python::canon::{Decoder, Encoder};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Library {
    Deque,
    OrderedDict,
    DefaultDict,
    Counter,
    Fraction,
    Decimal,
}

const ALL: [Library; 6] =
    [Library::Deque, Library::OrderedDict, Library::DefaultDict, Library::Counter, Library::Fraction, Library::Decimal];

impl Library {
    /// The module and the name of the class.
    fn name(self) -> (&'static str, &'static str) {
        match self {
            Library::Deque => ("collections", "deque"),
            Library::OrderedDict => ("collections", "OrderedDict"),
            Library::DefaultDict => ("collections", "defaultdict"),
            Library::Counter => ("collections", "Counter"),
            Library::Fraction => ("fractions", "Fraction"),
            Library::Decimal => ("decimal", "Decimal"),
        }
    }

    fn tag(self) -> u8 {
        match self {
            Library::Deque => b'q',
            Library::OrderedDict => b'o',
            Library::DefaultDict => b'm',
            Library::Counter => b'c',
            Library::Fraction => b'R',
            Library::Decimal => b'X',
        }
    }

    fn class(self, py: Python) -> PyResult<Bound<PyAny>> {
        let (module, name) = self.name();
        py.import(module)?.getattr(name)
    }

    /// Which of these a class is, exactly: a class that derives from it may carry more.
    pub fn of(class: &Bound<PyType>) -> PyResult<Option<Library>> {
        let (module, name) = (class.module()?, class.qualname()?);
        for library in ALL {
            // A module is imported only if the class seems to come from it: `fractions` takes long.
            if (module.to_str()?, name.to_str()?) == library.name() && library.class(class.py())?.is(class) {
                return Ok(Some(library));
            }
        }
        Ok(None)
    }

    pub fn with_tag(tag: u8) -> Option<Library> {
        ALL.into_iter().find(|library| library.tag() == tag)
    }
}

impl Encoder<'_> {
    pub fn library(&mut self, library: Library, value: &Bound<PyAny>) -> PyResult<()> {
        let py = value.py();
        if !matches!(library, Library::Fraction | Library::Decimal) {
            self.once(value, library.name().1)?;
        }
        self.out.push(library.tag());
        match library {
            Library::Deque => {
                self.value(&value.getattr(intern!(py, "maxlen"))?)?;
                let items: Vec<Bound<PyAny>> = value.try_iter()?.collect::<PyResult<_>>()?;
                self.number(items.len() as u64);
                items.iter().try_for_each(|item| self.value(item))
            }
            Library::OrderedDict => {
                // Not by the dict that it is built on, which has another order after `move_to_end`.
                let items: Vec<Bound<PyAny>> =
                    value.call_method0(intern!(py, "items"))?.try_iter()?.collect::<PyResult<_>>()?;
                self.number(items.len() as u64);
                for item in items {
                    let (key, value): (Bound<PyAny>, Bound<PyAny>) = item.extract()?;
                    self.value(&key)?;
                    self.value(&value)?;
                }
                Ok(())
            }
            Library::DefaultDict => {
                let factory = value.getattr(intern!(py, "default_factory"))?;
                match factory.cast::<PyType>() {
                    Ok(class) => {
                        let name = self.codec.factory(class)?;
                        self.bytes(b's', name.as_bytes());
                    }
                    Err(_) if factory.is_none() => self.out.push(b'N'),
                    Err(_) => {
                        let name =
                            factory.getattr_opt(intern!(py, "__name__"))?.unwrap_or(factory.get_type().into_any());
                        let message =
                            format!("the default_factory of a defaultdict is the function {name}, expected a class");
                        let hint = "write for example defaultdict(int), or use a dict with setdefault";
                        return Err(PyTypeError::new_err((message, hint)));
                    }
                }
                self.entries(value)
            }
            Library::Counter => self.entries(value),
            Library::Fraction => {
                self.value(&value.getattr(intern!(py, "numerator"))?)?;
                self.value(&value.getattr(intern!(py, "denominator"))?)
            }
            Library::Decimal => {
                // The context decides about the letter of the exponent.
                let text = value.str()?.to_str()?.to_ascii_uppercase();
                self.number(text.len() as u64);
                self.out.extend_from_slice(text.as_bytes());
                Ok(())
            }
        }
    }

    fn entries(&mut self, value: &Bound<PyAny>) -> PyResult<()> {
        self.sorted(value.cast::<PyDict>()?.iter().map(|(k, v)| (k, Some(v))))
    }
}

impl<'py> Decoder<'_, 'py> {
    pub fn library(&mut self, library: Library) -> PyResult<Bound<'py, PyAny>> {
        let class = library.class(self.py)?;
        match library {
            Library::Deque => {
                let longest = self.value()?;
                let items = PyList::new(self.py, self.items()?)?;
                class.call1((items, longest))
            }
            Library::OrderedDict | Library::Counter => {
                let made = class.call0()?;
                self.fill(&made)?;
                Ok(made)
            }
            Library::DefaultDict => {
                let name = self.value()?;
                let factory = if name.is_none() { name } else { self.codec.factory_named(self.py, &name)? };
                let made = class.call1((factory,))?;
                self.fill(&made)?;
                Ok(made)
            }
            Library::Fraction => {
                let (numerator, denominator) = (self.value()?, self.value()?);
                class.call1((numerator, denominator))
            }
            Library::Decimal => class.call1((self.text()?,)),
        }
    }

    /// Put the entries that follow into a dict.
    fn fill(&mut self, dict: &Bound<'py, PyAny>) -> PyResult<()> {
        for _ in 0..self.number()? {
            let key = self.value()?;
            dict.set_item(key, self.value()?)?;
        }
        Ok(())
    }
}
