//! A model that asks Python: `plait.check.tabulate.tabulation.Tabulation`.
//!
//! Values cross the border as canonical bytes and are interned here. Lock order: the visited set, the right to ask
//! (`Tables::filling`), the GIL, then the locks inside tables and values, which are held only to look something up. A thread
//! that holds a lock never waits for a lock further left.

use crate::python::report::Failure;
use crate::symmetry::audit::Evidence;
use crate::symmetry::images::Images;
use crate::system::model::{
    Armed, CellSet, Component, Evaluation, EventId, Fault, Initial, LocalId, MessageId, Model, MonitorId, Observed,
    Outcome, Parts, RAISED, RareEffects, Result, Shape, Stopped, Truth, Unseen,
};
use crate::system::values::Values;
use parking_lot::Mutex;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// (local, sends, events, spawns, expected, choices, failure), as `plait.check.tabulate.steprun.Outcome` lists them.
type PyOutcome<'py> = (
    Bound<'py, PyBytes>,
    Vec<(u16, Bound<'py, PyBytes>)>,
    Vec<Bound<'py, PyBytes>>,
    Vec<(u16, Bound<'py, PyBytes>)>,
    Vec<(u16, bool)>,
    Vec<Vec<u8>>,
    Option<Bound<'py, Failure>>,
);

thread_local! {
    /// Whether questions of this thread are passed on although the search has ended.
    static INSISTS: Cell<bool> = const { Cell::new(false) };
}

pub struct PyModel {
    tabulation: Py<PyAny>,
    shape: Shape,
    values: Values,
    images: Images,
    calls: AtomicU64,
    /// Held while Python answers: it answers one question at a time.
    asking: Mutex<()>,
    /// The search has ended: questions are not passed on.
    silent: Arc<AtomicBool>,
}

impl PyModel {
    pub fn new(tabulation: Py<PyAny>, shape: Shape, pids: Vec<(String, usize)>) -> PyModel {
        let (calls, silent) = (AtomicU64::new(0), Arc::default());
        PyModel {
            tabulation,
            shape,
            values: Values::default(),
            images: Images::new(pids),
            calls,
            asking: Mutex::new(()),
            silent,
        }
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

    /// Whether to answer `Stopped` instead of asking Python: filling a table can take thousands of questions.
    pub fn silence(&self, silent: bool) {
        self.silent.store(silent, Relaxed);
    }

    /// Whether questions are not passed on.
    pub fn silent(&self) -> &Arc<AtomicBool> {
        &self.silent
    }

    /// Pass the questions of `ask` on even if the search has ended: the model is already at work on them, and Python says
    /// where.
    pub fn insist<R>(&self, ask: impl FnOnce(&PyModel) -> R) -> R {
        INSISTS.set(true);
        let answer = ask(self);
        INSISTS.set(false);
        answer
    }

    /// Make user code that does not return raise an exception; best effort.
    pub fn interrupt(&self) {
        Python::attach(|py| {
            let _ = self.tabulation.bind(py).call_method0("interrupt");
        });
    }

    /// Ask about a local state with cells, and add the cells that the answer depends on.
    fn ask_reading<R>(
        &self,
        read: &mut CellSet,
        question: impl FnOnce(Python, &Bound<PyAny>) -> PyResult<R>,
    ) -> Result<R> {
        self.ask(|py, tabulation| {
            if self.shape.cells == 0 {
                return question(py, tabulation);
            }
            tabulation.setattr(intern!(py, "cells_read"), 0)?;
            let answer = question(py, tabulation)?;
            *read |= tabulation.getattr(intern!(py, "cells_read"))?.extract::<CellSet>()?;
            Ok(answer)
        })
    }

    fn ask<R>(&self, question: impl FnOnce(Python, &Bound<PyAny>) -> PyResult<R>) -> Result<R> {
        if self.silent.load(Relaxed) && !INSISTS.get() {
            return Err(Stopped(None).into());
        }
        self.calls.fetch_add(1, Relaxed);
        let _asking = self.asking.lock();
        Python::attach(|py| {
            question(py, self.tabulation.bind(py)).map_err(|error| match () {
                () if self.silent.load(Relaxed) => Stopped(Some(error.into())).into(),
                () if error.get_type(py).name().is_ok_and(|name| name == "UnseenError") => Unseen.into(),
                () => error.into(),
            })
        })
    }

    fn local<'py>(&self, py: Python<'py>, id: LocalId) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.values.local_content(id))
    }

    fn message<'py>(&self, py: Python<'py>, id: MessageId) -> (u16, Bound<'py, PyBytes>) {
        (self.values.sender(id), PyBytes::new(py, self.values.message_content(id)))
    }

    fn outcomes(&self, process: usize, answer: &Bound<PyAny>) -> PyResult<Vec<Outcome>> {
        let values = &self.values;
        let mut outcomes = Vec::new();
        for outcome in answer.cast::<PyList>()?.iter() {
            let (local, sends, events, spawns, expected, choices, failure): PyOutcome = outcome.extract()?;
            let sends = sends.iter().map(|(to, m)| (*to, values.message(process as u16, m.as_bytes()))).collect();
            let rare = RareEffects {
                events: events.iter().map(|e| values.event(process as u16, e.as_bytes())).collect(),
                spawns: spawns.iter().map(|(slot, l)| (*slot, values.local(l.as_bytes()))).collect(),
                expected,
                failure: failure.map(|failure| failure.get().into()),
            };
            let choices = choices.iter().map(|choice| values.field(choice)).collect();
            outcomes.push(Outcome::new(values.local(local.as_bytes()), sends, choices, rare));
        }
        Ok(outcomes)
    }
}

impl Model for PyModel {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn values(&self) -> &Values {
        &self.values
    }

    fn images(&self) -> &Images {
        &self.images
    }

    fn exclusive(&self) -> bool {
        true
    }

    fn asked(&self) -> u64 {
        self.calls()
    }

    /// With a thread state for the whole life of the thread: making one at every call is slow.
    fn in_thread(&self, body: &mut dyn FnMut()) {
        struct Body<'a>(&'a mut dyn FnMut());
        // SAFETY: `detach` wants proof that the body touches nothing of Python without being attached. It runs in this
        // thread, and asks the model, which attaches by itself.
        unsafe impl Send for Body<'_> {}
        let body = Body(body);
        Python::attach(|py| {
            py.detach(move || {
                let body = body;
                (body.0)();
            });
        });
    }

    fn initial(&self) -> Result<Initial> {
        self.ask(|_, tabulation| {
            let answer = tabulation.call_method0("initial")?;
            let (processes, monitors): (Vec<Bound<PyAny>>, Vec<Bound<PyBytes>>) = answer.extract()?;
            Ok(Initial {
                processes: (processes.iter().enumerate())
                    .map(|(process, outcomes)| self.outcomes(process, outcomes))
                    .collect::<PyResult<_>>()?,
                monitors: monitors.iter().map(|m| self.values.monitor(m.as_bytes())).collect(),
            })
        })
    }

    fn armed(&self, process: usize, local: LocalId, only: Option<u16>, read: &mut CellSet) -> Result<Vec<Armed>> {
        self.ask_reading(read, |py, tabulation| {
            let answer = tabulation.call_method1("armed", (process, self.local(py, local), only))?;
            let armed: Vec<(u16, u16, u16, bool, bool)> = answer.extract()?;
            let made = |(handler, least, most, distinct, accepts)| Armed { handler, least, most, distinct, accepts };
            Ok(armed.into_iter().map(made).collect())
        })
    }

    fn handlers(&self, process: usize, message: MessageId) -> Result<Vec<u16>> {
        self.ask(|py, tabulation| {
            let (sender, content) = self.message(py, message);
            tabulation.call_method1("handlers_for", (process, sender, content))?.extract()
        })
    }

    fn guards(
        &self,
        process: usize,
        local: LocalId,
        questions: &[(u16, MessageId)],
        read: &mut CellSet,
    ) -> Result<Vec<Option<u32>>> {
        self.ask_reading(read, |py, tabulation| {
            let question = |&(handler, message): &(u16, MessageId)| (handler, self.message(py, message));
            let asked: Vec<_> = questions.iter().map(question).collect();
            let answer = tabulation.call_method1("guards", (process, self.local(py, local), asked))?;
            let groups: Vec<Option<Bound<PyAny>>> = answer.extract()?;
            // A guard that raised an exception answers with a Failure.
            let group = |group: &Bound<PyAny>| match group.cast::<PyBytes>() {
                Ok(same) => self.values.group(same.as_bytes()),
                Err(_) => RAISED,
            };
            Ok(groups.iter().map(|answer| answer.as_ref().map(group)).collect())
        })
    }

    fn accepts(
        &self,
        process: usize,
        local: LocalId,
        handler: u16,
        sets: &[Vec<MessageId>],
        read: &mut CellSet,
    ) -> Result<Vec<Truth>> {
        self.ask_reading(read, |py, tabulation| {
            let set = |set: &Vec<MessageId>| set.iter().map(|&m| self.message(py, m)).collect::<Vec<_>>();
            let asked: Vec<_> = sets.iter().map(set).collect();
            let answer = tabulation.call_method1("accepts", (process, self.local(py, local), handler, asked))?;
            // A guard that raised an exception answers with a Failure.
            let answers: Vec<Bound<PyAny>> = answer.extract()?;
            answers
                .iter()
                .map(|a| if a.is_instance_of::<Failure>() { Ok(None) } else { a.extract().map(Some) })
                .collect()
        })
    }

    fn step(
        &self,
        process: usize,
        local: LocalId,
        handler: u16,
        messages: &[MessageId],
        read: &mut CellSet,
    ) -> Result<Vec<Outcome>> {
        self.ask_reading(read, |py, tabulation| {
            let messages: Vec<_> = messages.iter().map(|&m| self.message(py, m)).collect();
            let answer = tabulation.call_method1("step", (process, self.local(py, local), handler, messages))?;
            self.outcomes(process, &answer)
        })
    }

    fn crash(&self, process: usize, local: LocalId, recovers: bool) -> Result<LocalId> {
        self.ask(|py, tabulation| {
            let answer = tabulation.call_method1("crash", (process, self.local(py, local), recovers))?;
            Ok(self.values.local(answer.cast::<PyBytes>()?.as_bytes()))
        })
    }

    fn recover(&self, process: usize, local: LocalId, read: &mut CellSet) -> Result<Vec<Outcome>> {
        self.ask_reading(read, |py, tabulation| {
            let answer = tabulation.call_method1("recover", (process, self.local(py, local)))?;
            self.outcomes(process, &answer)
        })
    }

    fn tick(&self, process: usize, local: LocalId) -> Result<LocalId> {
        self.ask(|py, tabulation| {
            let answer = tabulation.call_method1("tick", (process, self.local(py, local)))?;
            Ok(self.values.local(answer.cast::<PyBytes>()?.as_bytes()))
        })
    }

    fn observe(&self, monitor: usize, state: MonitorId, event: EventId) -> Result<Observed> {
        self.ask(|py, tabulation| {
            let (process, event) = self.values.event_content(event);
            let state = PyBytes::new(py, &self.values.monitor_content(state));
            let arguments = (monitor, state, process, PyBytes::new(py, event));
            let answer = tabulation.call_method1("observe", arguments)?;
            if let Ok(failure) = answer.cast::<Failure>() {
                return Ok(Err(Arc::new(failure.get().into())));
            }
            Ok(Ok(self.values.monitor(answer.cast::<PyBytes>()?.as_bytes())))
        })
    }

    fn evaluate(&self, property: usize, _part: usize, parts: &Parts) -> Result<Evaluation> {
        self.ask(|py, tabulation| {
            let ids = |ids: &[u32]| PyTuple::new(py, ids);
            let arguments = (property, ids(parts.locals)?, ids(parts.inboxes)?, ids(parts.monitors)?);
            let answer = tabulation.call_method1("evaluate", arguments)?;
            type Answer = (Truth, Vec<(String, u16, u16)>);
            let (value, reads): Answer = answer.extract()?;
            let component = |(kind, index, field): (String, u16, u16)| Component::of(&kind, index, field);
            Ok(Evaluation { value, reads: reads.into_iter().map(component).collect() })
        })
    }

    fn too_many_sets(&self, process: usize, handler: u16) -> Fault {
        let error = Python::attach(|py| {
            let tabulation = self.tabulation.bind(py);
            tabulation.call_method1("too_many_sets", (process, handler)).map_or_else(|error| error, PyErr::from_value)
        });
        error.into()
    }

    fn asymmetry(&self, element: usize, evidence: Evidence) -> Fault {
        let swapped = self.shape.group.elements[element].iter().enumerate().filter(|(from, to)| *from != **to as usize);
        let swapped: Vec<(usize, u16)> = swapped.map(|(from, to)| (from, *to)).collect();
        let error = Python::attach(|py| {
            let tabulation = self.tabulation.bind(py);
            match evidence {
                Evidence::Initial { process, image } => {
                    tabulation.call_method1("asymmetric_initial", (swapped, process, image))
                }
                Evidence::InitialStates { combination } => {
                    tabulation.call_method1("asymmetric_start", (swapped, combination))
                }
                Evidence::InitialMonitor { monitor } => {
                    tabulation.call_method1("asymmetric_monitor", (swapped, monitor, true))
                }
                Evidence::Monitor { monitor } => {
                    tabulation.call_method1("asymmetric_monitor", (swapped, monitor, false))
                }
                Evidence::Step { process, local, image, image_local, handler, consumed } => {
                    let messages: Vec<_> = consumed.iter().map(|&m| self.message(py, m)).collect();
                    let locals = (self.local(py, local), self.local(py, image_local));
                    let arguments = (swapped, process, locals.0, image, locals.1, handler, messages);
                    tabulation.call_method1("asymmetric_step", arguments)
                }
                Evidence::Property { property, value, image } => {
                    tabulation.call_method1("asymmetric_property", (swapped, property, value, image))
                }
            }
            .map_or_else(|error| error, PyErr::from_value)
        });
        error.into()
    }
}
