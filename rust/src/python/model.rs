//! A model that asks Python: `plait.check.tabulate.tabulation.Tabulation`.
//!
//! Values cross the border as canonical bytes and are interned here. Lock order: the visited set, the tables
//! (`filling`, then the GIL or `inner`), then `values`. A thread that holds a lock never waits for a lock further left.

use crate::python::encoding::fields;
use crate::python::rename::{rename, rename_local};
use crate::python::report::Failure;
use crate::symmetry::audit::Evidence;
use crate::system::hash;
use crate::system::intern::Interner;
use crate::system::model::{
    Armed, Component, Content, Evaluation, EventId, Fault, Initial, LocalId, MessageId, Model, MonitorId, Observed,
    Outcome, Parts, RAISED, Result, Shape, Status, Stopped, Truth, field_bit, monitor_bit,
};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
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

#[derive(Default)]
struct Values {
    locals: Interner,
    /// The sender's position (two bytes), then the content.
    messages: Interner,
    /// The announcing process's position (two bytes), then the content.
    events: Interner,
    monitors: Interner,
    /// Values of `same` fields.
    groups: Interner,
}

pub struct PyModel {
    tabulation: Py<PyAny>,
    shape: Shape,
    /// The index of every process in its role, and per role the positions of its processes in the order of their indices.
    indices: Vec<usize>,
    roles: FxHashMap<Vec<u8>, Vec<u16>>,
    /// Images of locals, messages, monitors and events under the permutations of the group.
    images: Mutex<[FxHashMap<(u32, usize), u32>; 4]>,
    values: Mutex<Values>,
    calls: AtomicU64,
    /// The search has ended: questions are not passed on.
    silent: AtomicBool,
}

impl PyModel {
    pub fn new(tabulation: Py<PyAny>, shape: Shape, pids: Vec<(String, usize)>) -> PyModel {
        let (values, images) = (Mutex::default(), Mutex::default());
        let (calls, silent) = (AtomicU64::new(0), AtomicBool::new(false));
        let indices = pids.iter().map(|&(_, index)| index).collect();
        let mut roles: FxHashMap<Vec<u8>, Vec<u16>> = FxHashMap::default();
        // The processes of a role come in the order of their indices.
        for (position, (role, _)) in pids.into_iter().enumerate() {
            roles.entry(role.into_bytes()).or_default().push(position as u16);
        }
        PyModel { tabulation, shape, indices, roles, images, values, calls, silent }
    }

    /// The position of a process. None: no process has this id.
    fn position(&self, role: &[u8], index: usize) -> Option<u16> {
        self.roles.get(role)?.get(index).copied()
    }

    /// The index in its role of the process in the place of another.
    fn renamed(&self, places: &[u16], role: &[u8], index: usize) -> usize {
        // A process id that no process has stays as it is.
        self.position(role, index).map_or(index, |position| {
            let place = places[position as usize] as usize;
            self.indices.get(place).copied().unwrap_or(place)
        })
    }

    fn image(
        &self,
        kind: usize,
        id: u32,
        element: usize,
        of: impl FnOnce(&mut Values, &dyn Fn(&[u8], usize) -> usize) -> u32,
    ) -> u32 {
        if element == 0 {
            return id;
        }
        if let Some(&known) = self.images.lock()[kind].get(&(id, element)) {
            return known;
        }
        let places = &self.shape.group.elements[element];
        let image = of(&mut self.values.lock(), &|role, index| self.renamed(places, role, index));
        self.images.lock()[kind].insert((id, element), image);
        image
    }

    /// Content that begins with the position of a process, as a permutation makes it.
    fn joined_image(&self, element: usize, content: &[u8], renamed: &dyn Fn(&[u8], usize) -> usize) -> Vec<u8> {
        joined_renamed(content, &self.shape.group.elements[element], renamed)
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

    /// Whether to answer `Stopped` instead of asking Python: filling a table can take thousands of questions.
    pub fn silence(&self, silent: bool) {
        self.silent.store(silent, Relaxed);
    }

    /// Make user code that does not return raise an exception; best effort.
    pub fn interrupt(&self) {
        Python::attach(|py| {
            let _ = self.tabulation.bind(py).call_method0("interrupt");
        });
    }

    pub fn local_content(&self, id: LocalId) -> Vec<u8> {
        self.values.lock().locals.content(id).to_vec()
    }

    pub fn monitor_content(&self, id: MonitorId) -> Vec<u8> {
        self.values.lock().monitors.content(id).to_vec()
    }

    /// Sender and content.
    pub fn message_content(&self, id: MessageId) -> (u16, Vec<u8>) {
        split(self.values.lock().messages.content(id))
    }

    pub fn event_content(&self, id: EventId) -> Vec<u8> {
        split(self.values.lock().events.content(id)).1
    }

    pub fn bytes(&self) -> usize {
        let v = self.values.lock();
        [&v.locals, &v.messages, &v.events, &v.monitors, &v.groups].iter().map(|i| i.bytes()).sum()
    }

    fn ask<R>(&self, question: impl FnOnce(Python, &Bound<PyAny>) -> PyResult<R>) -> Result<R> {
        if self.silent.load(Relaxed) {
            return Err(Stopped(None).into());
        }
        self.calls.fetch_add(1, Relaxed);
        let answer = Python::attach(|py| question(py, self.tabulation.bind(py)));
        answer
            .map_err(|error| if self.silent.load(Relaxed) { Stopped(Some(error.into())).into() } else { error.into() })
    }

    fn local<'py>(&self, py: Python<'py>, id: LocalId) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.values.lock().locals.content(id))
    }

    fn message<'py>(&self, py: Python<'py>, id: MessageId) -> (u16, Bound<'py, PyBytes>) {
        let (sender, content) = self.message_content(id);
        (sender, PyBytes::new(py, &content))
    }

    fn intern_message(&self, sender: usize, content: &Bound<PyBytes>) -> MessageId {
        self.values.lock().messages.intern(&joined(sender as u16, content.as_bytes()))
    }

    fn outcomes(&self, process: usize, answer: &Bound<PyAny>) -> PyResult<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for outcome in answer.cast::<PyList>()?.iter() {
            let (local, sends, events, spawns, expected, choices, failure): PyOutcome = outcome.extract()?;
            let sends = sends.iter().map(|(to, m)| (*to, self.intern_message(process, m))).collect();
            let mut values = self.values.lock();
            outcomes.push(Outcome {
                local: values.locals.intern(local.as_bytes()),
                sends,
                events: events.iter().map(|e| values.events.intern(&joined(process as u16, e.as_bytes()))).collect(),
                spawns: spawns.iter().map(|(slot, l)| (*slot, values.locals.intern(l.as_bytes()))).collect(),
                expected,
                choices,
                failure: failure.map(|failure| failure.get().into()),
            });
        }
        Ok(outcomes)
    }
}

fn joined(position: u16, content: &[u8]) -> Vec<u8> {
    [&position.to_le_bytes(), content].concat()
}

fn joined_renamed(content: &[u8], places: &[u16], renamed: &dyn Fn(&[u8], usize) -> usize) -> Vec<u8> {
    let (position, content) = split(content);
    joined(places[position as usize], &rename(&content, renamed))
}

fn split(joined: &[u8]) -> (u16, Vec<u8>) {
    (u16::from_le_bytes([joined[0], joined[1]]), joined[2..].to_vec())
}

impl Model for PyModel {
    fn shape(&self) -> &Shape {
        &self.shape
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
            type Answer<'py> =
                (Vec<Bound<'py, PyBytes>>, Vec<(u16, u16, Bound<'py, PyBytes>)>, Vec<Bound<'py, PyBytes>>);
            let answer = tabulation.call_method0("initial")?;
            let (locals, messages, monitors): Answer = answer.extract()?;
            let sent = messages.iter().map(|(from, to, m)| (*to, self.intern_message(*from as usize, m))).collect();
            let mut values = self.values.lock();
            Ok(Initial {
                locals: locals.iter().map(|l| values.locals.intern(l.as_bytes())).collect(),
                messages: sent,
                monitors: monitors.iter().map(|m| values.monitors.intern(m.as_bytes())).collect(),
            })
        })
    }

    fn armed(&self, process: usize, local: LocalId) -> Result<Vec<Armed>> {
        self.ask(|py, tabulation| {
            let answer = tabulation.call_method1("armed", (process, self.local(py, local)))?;
            let armed: Vec<(u16, u16)> = answer.extract()?;
            Ok(armed.into_iter().map(|(handler, count)| Armed { handler, count }).collect())
        })
    }

    fn handlers(&self, process: usize, message: MessageId) -> Result<Vec<u16>> {
        self.ask(|py, tabulation| {
            let (sender, content) = self.message(py, message);
            tabulation.call_method1("handlers_for", (process, sender, content))?.extract()
        })
    }

    fn guards(&self, process: usize, local: LocalId, questions: &[(u16, MessageId)]) -> Result<Vec<Option<u32>>> {
        self.ask(|py, tabulation| {
            let question = |&(handler, message): &(u16, MessageId)| (handler, self.message(py, message));
            let asked: Vec<_> = questions.iter().map(question).collect();
            let answer = tabulation.call_method1("guards", (process, self.local(py, local), asked))?;
            let groups: Vec<Option<Bound<PyAny>>> = answer.extract()?;
            let mut values = self.values.lock();
            // A guard that raised an exception answers with a Failure.
            let mut group = |group: &Bound<PyAny>| match group.cast::<PyBytes>() {
                Ok(same) => values.groups.intern(same.as_bytes()),
                Err(_) => RAISED,
            };
            Ok(groups.iter().map(|answer| answer.as_ref().map(&mut group)).collect())
        })
    }

    fn step(&self, process: usize, local: LocalId, handler: u16, messages: &[MessageId]) -> Result<Vec<Outcome>> {
        self.ask(|py, tabulation| {
            let messages: Vec<_> = messages.iter().map(|&m| self.message(py, m)).collect();
            let answer = tabulation.call_method1("step", (process, self.local(py, local), handler, messages))?;
            self.outcomes(process, &answer)
        })
    }

    fn crash(&self, process: usize, local: LocalId, recovers: bool) -> Result<LocalId> {
        self.ask(|py, tabulation| {
            let answer = tabulation.call_method1("crash", (process, self.local(py, local), recovers))?;
            Ok(self.values.lock().locals.intern(answer.cast::<PyBytes>()?.as_bytes()))
        })
    }

    fn recover(&self, process: usize, local: LocalId) -> Result<Vec<Outcome>> {
        self.ask(|py, tabulation| {
            let answer = tabulation.call_method1("recover", (process, self.local(py, local)))?;
            self.outcomes(process, &answer)
        })
    }

    fn observe(&self, monitor: usize, state: MonitorId, event: EventId) -> Result<Observed> {
        self.ask(|py, tabulation| {
            let (process, event) = split(self.values.lock().events.content(event));
            let state = PyBytes::new(py, &self.monitor_content(state));
            let arguments = (monitor, state, process, PyBytes::new(py, &event));
            let answer = tabulation.call_method1("observe", arguments)?;
            if let Ok(failure) = answer.cast::<Failure>() {
                return Ok(Err(Arc::new(failure.get().into())));
            }
            Ok(Ok(self.values.lock().monitors.intern(answer.cast::<PyBytes>()?.as_bytes())))
        })
    }

    fn evaluate(&self, property: usize, parts: &Parts) -> Result<Evaluation> {
        self.ask(|py, tabulation| {
            let ids = |ids: &[u32]| PyTuple::new(py, ids);
            let arguments = (property, ids(parts.locals)?, ids(parts.inboxes)?, ids(parts.monitors)?);
            let answer = tabulation.call_method1("evaluate", arguments)?;
            type Answer = (Truth, Vec<(String, u16)>, Vec<(usize, usize)>);
            let (value, reads, fields): Answer = answer.extract()?;
            let component = |(kind, index): (String, u16)| match kind.as_str() {
                "local" => Component::Local(index),
                "inbox" => Component::Inbox(index),
                _ => Component::Monitor(index),
            };
            let reads: Vec<Component> = reads.into_iter().map(component).collect();
            let mut bits = 0;
            for &(process, field) in &fields {
                // A property that is asked about images of the state reads their fields as well.
                let images = self.shape.group.places(process).iter().map(|&place| place as usize);
                bits = images.chain([process]).fold(bits, |bits, process| bits | field_bit(process, field));
            }
            for read in &reads {
                if let Component::Monitor(monitor) = read {
                    bits |= monitor_bit(*monitor as usize);
                }
            }
            Ok(Evaluation { value, reads, fields: bits })
        })
    }

    fn altered(&self, process: usize, before: LocalId, after: LocalId) -> u64 {
        if before == after {
            return 0;
        }
        let values = self.values.lock();
        let (before, after) = (fields(values.locals.content(before)), fields(values.locals.content(after)));
        if before.len() != after.len() {
            return u64::MAX;
        }
        let differ = before.iter().zip(&after).enumerate().filter(|(_, (b, a))| b != a);
        differ.fold(0, |bits, (field, _)| bits | field_bit(process, field))
    }

    fn status(&self, local: LocalId) -> Status {
        match self.values.lock().locals.content(local)[0] {
            0 => Status::Up,
            1 => Status::Crashed,
            2 => Status::Down,
            _ => Status::Unborn,
        }
    }

    fn sender(&self, message: MessageId) -> u16 {
        let values = self.values.lock();
        let content = values.messages.content(message);
        u16::from_le_bytes([content[0], content[1]])
    }

    fn begins(&self, message: MessageId, heads: &[Vec<u8>]) -> bool {
        let values = self.values.lock();
        let content = &values.messages.content(message)[2..];
        heads.iter().any(|head| content.starts_with(head))
    }

    fn local_hash(&self, local: LocalId) -> u64 {
        self.values.lock().locals.hash(local)
    }

    fn message_hash(&self, message: MessageId) -> u64 {
        self.values.lock().messages.hash(message)
    }

    fn monitor_hash(&self, state: MonitorId) -> u64 {
        self.values.lock().monitors.hash(state)
    }

    fn names(&self, content: Content) -> Vec<u16> {
        let found = RefCell::new(Vec::new());
        let note = |role: &[u8], index: usize| {
            found.borrow_mut().extend(self.position(role, index));
            index
        };
        let values = self.values.lock();
        match content {
            Content::Local(id) => drop(rename_local(values.locals.content(id), &note)),
            Content::Monitor(id) => drop(rename(values.monitors.content(id), &note)),
            Content::Message(id) => {
                let (sender, content) = split(values.messages.content(id));
                found.borrow_mut().push(sender);
                drop(rename(&content, &note));
            }
        }
        found.into_inner()
    }

    fn renamed_hash(&self, content: Content, places: &[u16]) -> u64 {
        let renamed = |role: &[u8], index: usize| self.renamed(places, role, index);
        let values = self.values.lock();
        hash::content(&match content {
            Content::Local(id) => rename_local(values.locals.content(id), &renamed),
            Content::Monitor(id) => rename(values.monitors.content(id), &renamed),
            Content::Message(id) => joined_renamed(values.messages.content(id), places, &renamed),
        })
    }

    fn local_image(&self, local: LocalId, element: usize) -> LocalId {
        self.image(0, local, element, |values, renamed| {
            let content = rename_local(values.locals.content(local), &renamed);
            values.locals.intern(&content)
        })
    }

    fn message_image(&self, message: MessageId, element: usize) -> MessageId {
        self.image(1, message, element, |values, renamed| {
            let content = self.joined_image(element, values.messages.content(message), renamed);
            values.messages.intern(&content)
        })
    }

    fn monitor_image(&self, state: MonitorId, element: usize) -> MonitorId {
        self.image(2, state, element, |values, renamed| {
            let content = rename(values.monitors.content(state), &renamed);
            values.monitors.intern(&content)
        })
    }

    fn event_image(&self, event: EventId, element: usize) -> EventId {
        self.image(3, event, element, |values, renamed| {
            let content = self.joined_image(element, values.events.content(event), renamed);
            values.events.intern(&content)
        })
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
