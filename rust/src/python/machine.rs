//! The virtual machine for tests: they compare its answers with those of CPython.

use crate::vm::machine::NO_ID;
use crate::vm::{Bail, Delivered, FieldResult, LocalFields, Machine as Vm, Read, StateView, load};
use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// Executes a program. A question that it cannot answer has the reason instead.
#[pyclass(frozen, module = "plait._native")]
pub struct Machine {
    vm: Mutex<Owned>,
}

struct Owned(Vm);

// SAFETY: the values of a machine are shared only among themselves, and the lock lets one thread at a time use them.
unsafe impl Send for Owned {}

type Messages = Vec<(u16, Vec<u8>)>;
/// Fields (None: unchanged), sends, events, spawns, expected, choices, and whether no slot was free.
type Outcome<'py> = (
    Vec<Option<Bound<'py, PyBytes>>>,
    Vec<(u16, Bound<'py, PyBytes>)>,
    Vec<Bound<'py, PyBytes>>,
    Vec<(u16, Bound<'py, PyBytes>)>,
    Vec<(u16, bool)>,
    Vec<Bound<'py, PyBytes>>,
    bool,
);
type Reads = Vec<(&'static str, u16, u16)>;

#[pymethods]
impl Machine {
    /// `fifo`: the order of sends matters.
    #[new]
    #[pyo3(signature = (program, *, fifo = true))]
    fn new(program: &[u8], fifo: bool) -> PyResult<Machine> {
        let program = load(program).map_err(|error| PyValueError::new_err(format!("not a program: {error}")))?;
        let mut vm = Vm::new(Arc::new(program));
        vm.set_fifo(fifo);
        Ok(Machine { vm: Mutex::new(Owned(vm)) })
    }

    /// Call a function: its result, the arguments afterwards, and why the machine gave up (or None).
    #[pyo3(signature = (function, arguments, order = 0))]
    #[allow(clippy::type_complexity)]
    fn call<'py>(
        &self,
        py: Python<'py>,
        function: u32,
        arguments: Vec<Vec<u8>>,
        order: usize,
    ) -> (Option<Bound<'py, PyBytes>>, Vec<Bound<'py, PyBytes>>, Option<&'static str>) {
        let given: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        match self.vm.lock().0.call(function, &given, order) {
            Ok((result, after)) => (Some(PyBytes::new(py, &result)), many(py, &after), None),
            Err(bail) => (None, Vec::new(), Some(bail.reason())),
        }
    }

    /// The outcomes of a step, or why the machine gave up.
    fn step<'py>(
        &self,
        py: Python<'py>,
        process: u16,
        handler: u16,
        fields: Vec<Vec<u8>>,
        messages: Messages,
    ) -> Result<(Vec<Outcome<'py>>, u64), PyErr> {
        let mut vm = self.vm.lock();
        let outcomes = vm.0.step(process, handler, &Fields(&fields), &delivered(&messages)).map_err(gave_up)?;
        let shown = outcomes.iter().map(|outcome| {
            let fields = outcome.fields.iter().map(|field| changed(py, field)).collect();
            let pairs = |all: &[(u16, Vec<u8>)]| all.iter().map(|(to, m)| (*to, PyBytes::new(py, m))).collect();
            let no_slot = outcome.no_slot.is_some();
            let choices = many(py, &outcome.choices);
            let events = many(py, &outcome.events);
            (fields, pairs(&outcome.sends), events, pairs(&outcome.spawns), outcome.expected.clone(), choices, no_slot)
        });
        Ok((shown.collect(), vm.0.fields_read()))
    }

    /// The value of a guard, and the fields that it read.
    #[pyo3(signature = (process, handler, fields, message = None))]
    fn guard(
        &self,
        process: u16,
        handler: u16,
        fields: Vec<Vec<u8>>,
        message: Option<(u16, Vec<u8>)>,
    ) -> PyResult<(bool, u64)> {
        let mut vm = self.vm.lock();
        let message = message.as_ref().map(|(sender, content)| Delivered { sender: *sender, id: NO_ID, content });
        let value = vm.0.guard(process, handler, &Fields(&fields), message).map_err(gave_up)?;
        Ok((value, vm.0.fields_read()))
    }

    /// The value of the guard over a set of messages, and the fields that it read.
    fn accepts(&self, process: u16, handler: u16, fields: Vec<Vec<u8>>, messages: Messages) -> PyResult<(bool, u64)> {
        let mut vm = self.vm.lock();
        let value = vm.0.accepts(process, handler, &Fields(&fields), &delivered(&messages)).map_err(gave_up)?;
        Ok((value, vm.0.fields_read()))
    }

    /// The number of messages that a handler takes.
    fn quorum(&self, process: u16, handler: u16, fields: Vec<Vec<u8>>) -> PyResult<i64> {
        self.vm.lock().0.quorum(process, handler, &Fields(&fields)).map_err(gave_up)
    }

    /// The fields of a monitor after an event (None: unchanged).
    fn observe<'py>(
        &self,
        py: Python<'py>,
        monitor: u16,
        fields: Vec<Vec<u8>>,
        by: u16,
        event: &[u8],
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let results = self.vm.lock().0.observe(monitor, &Fields(&fields), by, event).map_err(gave_up)?;
        Ok(results.iter().map(|field| changed(py, field)).collect())
    }

    /// The value of a property (or of one of its parts) in a state, and what it read.
    #[pyo3(signature = (property, locals, inboxes, monitors, part = None))]
    fn property(
        &self,
        property: usize,
        locals: Vec<(u8, Vec<Vec<u8>>)>,
        inboxes: Vec<Messages>,
        monitors: Vec<Vec<Vec<u8>>>,
        part: Option<usize>,
    ) -> PyResult<(bool, Reads)> {
        let mut vm = self.vm.lock();
        let state = State { locals, inboxes, monitors };
        let value = match part {
            None => vm.0.property(property, &state),
            Some(part) => vm.0.part(property, part, &state),
        };
        let value = value.map_err(gave_up)?;
        Ok((value, reads(&mut vm.0)))
    }

    /// The value of an expression over a state (a property of the program, but it need not be true or false), and what it
    /// read.
    fn value<'py>(
        &self,
        py: Python<'py>,
        property: usize,
        locals: Vec<(u8, Vec<Vec<u8>>)>,
        inboxes: Vec<Messages>,
        monitors: Vec<Vec<Vec<u8>>>,
    ) -> PyResult<(Bound<'py, PyBytes>, Reads)> {
        let mut vm = self.vm.lock();
        let state = State { locals, inboxes, monitors };
        let value = vm.0.value(property, &state).map_err(gave_up)?;
        Ok((PyBytes::new(py, &value), reads(&mut vm.0)))
    }
}

/// What the last question read.
fn reads(vm: &mut Vm) -> Reads {
    let named = |read: &Read| match *read {
        Read::Status(process) => ("status", process, 0),
        Read::Field(process, field) => ("field", process, field),
        Read::Inbox(process) => ("inbox", process, 0),
        Read::Monitor(monitor, field) => ("monitor", monitor, field),
    };
    vm.reads().iter().map(named).collect()
}

/// The machine gave up: a LookupError with the reason.
fn gave_up(bail: Bail) -> PyErr {
    pyo3::exceptions::PyLookupError::new_err(bail.reason())
}

fn many<'py>(py: Python<'py>, all: &[Vec<u8>]) -> Vec<Bound<'py, PyBytes>> {
    all.iter().map(|content| PyBytes::new(py, content)).collect()
}

fn changed<'py>(py: Python<'py>, field: &FieldResult) -> Option<Bound<'py, PyBytes>> {
    match field {
        FieldResult::Unchanged => None,
        FieldResult::Changed(content) => Some(PyBytes::new(py, content)),
    }
}

fn delivered(messages: &Messages) -> Vec<Delivered<'_>> {
    messages.iter().map(|(sender, content)| Delivered { sender: *sender, id: NO_ID, content }).collect()
}

struct Fields<'a>(&'a [Vec<u8>]);

impl LocalFields for Fields<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn field(&self, index: usize) -> (u32, &[u8]) {
        (NO_ID, &self.0[index])
    }
}

struct State {
    locals: Vec<(u8, Vec<Vec<u8>>)>,
    inboxes: Vec<Messages>,
    monitors: Vec<Vec<Vec<u8>>>,
}

impl StateView for State {
    fn status(&self, process: usize) -> u8 {
        self.locals[process].0
    }

    fn field(&self, process: usize, field: usize) -> (u32, &[u8]) {
        (NO_ID, &self.locals[process].1[field])
    }

    fn inbox(&self, process: usize) -> usize {
        self.inboxes[process].len()
    }

    fn message(&self, process: usize, place: usize) -> Delivered<'_> {
        let (sender, content) = &self.inboxes[process][place];
        Delivered { sender: *sender, id: NO_ID, content }
    }

    fn monitor(&self, monitor: usize, field: usize) -> (u32, &[u8]) {
        (NO_ID, &self.monitors[monitor][field])
    }
}
