//! What Python hands to the engine as tuples: automata, fairness assumptions, clocks, places of states.

use crate::live::automaton::{Automaton, AutomatonNode};
use crate::live::fairness::{Demand, Fairness};
use crate::live::projection::Place;
use crate::system::model::Shape;
use crate::system::tick::Time;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// (nodes, initial nodes, number of acceptance sets); a node is (yes, no, next, accepting).
impl FromPyObject<'_, '_> for Automaton {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Automaton> {
        type Node = (u64, u64, Vec<u32>, u64);
        let (nodes, initial, sets): (Vec<Node>, Vec<u32>, u32) = object.extract()?;
        let node = |(yes, no, next, accepting): Node| AutomatonNode { yes, no, next, accepting };
        Ok(Automaton { nodes: nodes.into_iter().map(node).collect(), initial, sets })
    }
}

/// (what is assumed, handlers with their processes, how the content of messages begins if there is one for each message)
impl FromPyObject<'_, '_> for Fairness {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Fairness> {
        let (demand, handlers, messages): (String, _, _) = object.extract()?;
        let demand = match demand.as_str() {
            "weak" => Demand::Weak,
            "strong" => Demand::Strong,
            "loss" => Demand::FairLoss,
            _ => return Err(PyValueError::new_err(format!("unknown fairness {demand:?}"))),
        };
        Ok(Fairness { demand, handlers, messages })
    }
}

/// (per process its clocks, per process its urgent handlers, drift); a clock is its field, and whether it is durable.
impl FromPyObject<'_, '_> for Time {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Time> {
        let (clocks, urgent, drift) = object.extract()?;
        Ok(Time { clocks, urgent, drift })
    }
}

/// A place of a state, by its kind, its position and a number in it.
pub fn place_of(shape: &Shape, (kind, index, number): &(String, usize, usize)) -> PyResult<Place> {
    match kind.as_str() {
        "field" if *index < shape.processes => Ok(Place::Part(*index, *number)),
        "inbox" if *index < shape.processes => Ok(Place::Inbox(*index)),
        "monitor" if *index < shape.monitors => Ok(Place::Monitor(*index, *number)),
        _ => Err(PyValueError::new_err(format!("no such place: {kind} {index}"))),
    }
}
