//! The classes of a model's values: what the codec writes of an instance, and what an instance may not carry besides.

use crate::python::library::Library;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple, PyType};

/// Flags of Python types: the type was made by a class statement, or by a library as if it were built in.
const HEAP_TYPE: u64 = 1 << 9;
const IMMUTABLE_TYPE: u64 = 1 << 8;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ClassKind {
    Pid,
    /// A shared object.
    Shared,
    Enum,
    Dataclass,
    NamedTuple,
    /// A class of the user that derives from `str`, `int` or `tuple`.
    Derived,
    Library(Library),
    Other,
}

impl ClassKind {
    /// Whether the canonical bytes of an instance name its class.
    pub fn is_named(self) -> bool {
        !matches!(self, ClassKind::Pid | ClassKind::Library(_) | ClassKind::Other)
    }
}

pub struct Class {
    pub class: Py<PyType>,
    pub kind: ClassKind,
    pub name: String,
    pub fields: Vec<Py<PyString>>,
    /// An instance may change, so that it must be in one place only.
    pub mutable: bool,
    /// Some field is a slot, or a descriptor: it cannot be set through the instance's dict.
    pub has_slots: bool,
    /// Slots of the class and its bases that are no fields.
    other_slots: Vec<Py<PyString>>,
    /// The attributes that an instance may have besides its fields: what Plait adds to a message.
    own: Option<&'static str>,
    /// For an enum: the attributes of its members when the class was first met.
    members: Option<Py<PyDict>>,
    /// An enum whose members can be combined.
    pub flag: bool,
}

impl Class {
    pub fn of(class: &Bound<PyType>, pid: &Bound<PyType>, enum_base: &Bound<PyType>) -> PyResult<Class> {
        let py = class.py();
        let name = format!("{}.{}", class.module()?, class.qualname()?);
        let fields_of = |attribute: &str| -> PyResult<Option<Vec<Py<PyString>>>> {
            let Some(found) = class.getattr_opt(attribute)? else {
                return Ok(None);
            };
            let names: Vec<Py<PyString>> =
                found.try_iter()?.map(|n| Ok(n?.cast_into::<PyString>()?.unbind())).collect::<PyResult<_>>()?;
            Ok(Some(names))
        };
        let (kind, fields) = if class.is(pid) {
            (ClassKind::Pid, Vec::new())
        } else if class.hasattr("__plait_shared__")? {
            (ClassKind::Shared, Vec::new())
        } else if class.is_subclass(enum_base)? {
            (ClassKind::Enum, Vec::new())
        } else if class.is_subclass_of::<PyTuple>()? && class.hasattr("_fields")? {
            (ClassKind::NamedTuple, Vec::new())
        } else if let Some(names) = fields_of("__dataclass_fields__")? {
            let fields = class.getattr("__dataclass_fields__")?;
            let mut instance_fields = Vec::new();
            for name in names {
                // Class variables are pseudo-fields.
                let kind = fields.get_item(&name)?.getattr("_field_type")?;
                if kind.repr()?.to_str()? == "_FIELD" {
                    instance_fields.push(name);
                }
            }
            (ClassKind::Dataclass, instance_fields)
        } else if let Some(names) = fields_of("__plait_record__")? {
            // A clock. Functions of `dataclasses` must not see its fields.
            (ClassKind::Dataclass, names)
        } else if let Some(library) = Library::of(class)? {
            (ClassKind::Library(library), Vec::new())
        } else if derived_from(class)?.is_some() {
            (ClassKind::Derived, Vec::new())
        } else {
            (ClassKind::Other, Vec::new())
        };
        let is_slot = |field: &Py<PyString>| {
            let found = class.getattr_opt(field.bind(py))?;
            found.map_or(Ok(false), |attribute| attribute.get_type().hasattr("__set__"))
        };
        let has_slots = fields.iter().map(is_slot).collect::<PyResult<Vec<bool>>>()?.contains(&true);
        let frozen =
            class.getattr_opt("__dataclass_params__")?.map(|params| params.getattr("frozen")?.extract::<bool>());
        let mutable = kind == ClassKind::Dataclass && !frozen.transpose()?.unwrap_or(false);
        let (mut own, mut other_slots) = (None, Vec::new());
        for base in class.mro() {
            let base = base.cast_into::<PyType>()?;
            let flags: u64 = base.getattr(intern!(py, "__flags__"))?.extract()?;
            let built_in = flags & HEAP_TYPE == 0 || flags & IMMUTABLE_TYPE != 0;
            let content = built_in && !base.is(py.get_type::<PyAny>());
            if kind == ClassKind::Dataclass && content {
                let message =
                    format!("{name} is a dataclass and also a {}, whose content is no field", base.qualname()?);
                let hint = format!("make it a plain dataclass: give {name} a field with the {}", base.qualname()?);
                return Err(PyTypeError::new_err((message, hint)));
            }
            let own_base = derived_from(class)?;
            if kind == ClassKind::Derived && content && own_base.is_some_and(|own| !base.is(&own)) {
                let message = format!("{name} derives from {}, whose content would be lost", base.qualname()?);
                return Err(PyTypeError::new_err((message, format!("make {name} a dataclass"))));
            }
            if base.qualname()? == "Message" && base.module()? == "plait.model.message" {
                own = Some("_sender");
            }
            let slots =
                base.getattr(intern!(py, "__dict__"))?.call_method1("get", ("__slots__", PyTuple::empty(py)))?;
            let slots = if slots.is_instance_of::<PyString>() { PyTuple::new(py, [slots])?.into_any() } else { slots };
            for slot in slots.try_iter()? {
                let slot = slot?.cast_into::<PyString>()?;
                let slot = slot.to_str()?;
                let is_field = fields.iter().any(|f| f.bind(py) == slot);
                if kind.is_named() && !is_field && slot != "__dict__" && slot != "__weakref__" {
                    other_slots.push(PyString::new(py, slot).unbind());
                }
            }
        }
        let members = if kind == ClassKind::Enum {
            let members = PyDict::new(py);
            for member in class.getattr(intern!(py, "__members__"))?.call_method0("items")?.try_iter()? {
                let (member, instance): (Bound<PyString>, Bound<PyAny>) = member?.extract()?;
                if let Some(attributes) = attributes(&instance)? {
                    members.set_item(member, attributes.copy()?)?;
                }
            }
            Some(members.unbind())
        } else {
            None
        };
        Ok(Class {
            class: class.clone().unbind(),
            kind,
            name: name.clone(),
            fields,
            mutable,
            has_slots,
            other_slots,
            own,
            members,
            flag: kind == ClassKind::Enum && class.is_subclass(&py.import("enum")?.getattr("Flag")?)?,
        })
    }

    /// Refuse what a value carries besides its fields: it would be lost.
    pub fn nothing_else(&self, value: &Bound<PyAny>) -> PyResult<()> {
        let py = value.py();
        let is_field = |name: &Bound<PyAny>| {
            self.fields.iter().map(|f| f.bind(py).as_any()).any(|f| f.is(name) || f.eq(name).unwrap_or(false))
        };
        if let Some(dict) = attributes(value)? {
            for (name, content) in dict.iter() {
                let known = match &self.members {
                    None => is_field(&name) || self.own.is_some_and(|own| name.eq(own).unwrap_or(false)),
                    Some(members) => {
                        let of = members.bind(py).get_item(value.getattr(intern!(py, "_name_"))?)?;
                        let before = of.and_then(|of| of.cast_into::<PyDict>().ok());
                        let before = before.map(|before| before.get_item(&name)).transpose()?.flatten();
                        // Enums keep computed values of their own under such names.
                        let internal = name.to_string().starts_with('_') && name.to_string().ends_with('_');
                        internal || before.is_some_and(|before| before.is(&content))
                    }
                };
                if !known {
                    return Err(self.carries(value, &name)?);
                }
            }
        }
        for slot in &self.other_slots {
            if value.hasattr(slot.bind(py))? {
                return Err(self.carries(value, slot.bind(py).as_any())?);
            }
        }
        Ok(())
    }

    /// The error for an attribute that a value carries besides its fields.
    fn carries(&self, value: &Bound<PyAny>, name: &Bound<PyAny>) -> PyResult<PyErr> {
        let short = value.get_type().qualname()?;
        let of_class = value.get_type().getattr_opt(name.cast::<PyString>()?)?;
        let cached = of_class.is_some_and(|a| a.get_type().name().is_ok_and(|n| n == "cached_property"));
        let (what, hint) = if cached {
            ("which is a cached_property: its value is no field".to_owned(), format!("make {short}.{name} a property"))
        } else if name.eq("__orig_class__")? {
            ("which typing adds".to_owned(), format!("call {short}(…) without type arguments in brackets"))
        } else if self.kind == ClassKind::Enum {
            ("which was set after the enum was defined".to_owned(), "keep it in a field of a process".to_owned())
        } else if self.kind == ClassKind::NamedTuple {
            (format!("which {short} does not declare"), format!("add {name} to the fields of the named tuple"))
        } else if matches!(self.kind, ClassKind::Library(_)) {
            ("which is not a part of its content".to_owned(), "keep it in a field of a process".to_owned())
        } else if self.kind == ClassKind::Derived {
            ("which is not a part of its content".to_owned(), format!("make {short} a dataclass with a field {name}"))
        } else {
            let declare = format!("declare it in a class with @dataclass: {name}: … = …");
            (format!("which {short} does not declare as a field"), declare)
        };
        Ok(PyTypeError::new_err((format!("a value of type {short} has the attribute {name}, {what}"), hint)))
    }
}

/// The one of `str`, `int` and `tuple` that a class derives from.
pub fn derived_from<'py>(class: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyType>>> {
    let py = class.py();
    for base in [py.get_type::<PyString>(), py.get_type::<PyInt>(), py.get_type::<PyTuple>()] {
        if class.is_subclass(&base)? {
            return Ok(Some(base));
        }
    }
    Ok(None)
}

/// The attributes that an instance holds in its dict.
fn attributes<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let found = value.getattr_opt(intern!(value.py(), "__dict__"))?;
    Ok(found.and_then(|dict| dict.cast_into::<PyDict>().ok()))
}
