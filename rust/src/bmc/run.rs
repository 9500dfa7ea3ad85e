//! Inputs of steps, initial states, and the run that leads to a state. States have parents only: a run executes the steps
//! between them again to find the process and its inputs.

use super::arena::{Arena, NONE};
use super::program::{Initial, Instruction, Program};
use super::search::ready;
use super::state::Layout;
use super::step::{Fault, Machine, Silent};

/// The maximal number of combinations of values of inputs or free variables.
pub const MOST_VALUES: usize = 1 << 16;

/// A run: the initial value of each cell, and the process and the inputs of each step.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub initial: Vec<i128>,
    pub steps: Vec<(usize, Vec<i128>)>,
}

/// All combinations of values of domains, the last one first; `Fault::Inputs` if there are too many.
fn each_combination(
    program: &Program,
    domains: &[usize],
    visit: &mut dyn FnMut(&[i128]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut values = Vec::with_capacity(domains.len());
    let mut count = 1_usize;
    for &domain in domains {
        let domain = program.domains[domain].as_ref().ok_or(Fault::Inputs)?;
        count = count.saturating_mul(domain.len());
        values.push(domain);
    }
    if count > MOST_VALUES {
        return Err(Fault::Inputs);
    }
    let mut chosen = vec![0; domains.len()];
    for number in 0..count {
        let mut rest = number;
        for (place, domain) in chosen.iter_mut().zip(&values).rev() {
            *place = domain[rest % domain.len()];
            rest /= domain.len();
        }
        visit(&chosen)?;
    }
    Ok(())
}

/// All inputs of a step.
#[inline(always)]
pub fn each_input(
    program: &Program,
    instruction: &Instruction,
    visit: &mut dyn FnMut(&[i128]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    each_combination(program, &instruction.inputs, visit)
}

/// The values of the cells in all initial states, whether or not the initial condition holds.
pub fn each_initial(program: &Program, visit: &mut dyn FnMut(&[i128]) -> Result<(), Fault>) -> Result<(), Fault> {
    let free: Vec<(usize, usize)> = (program.initial.iter().enumerate())
        .filter_map(|(cell, initial)| match *initial {
            Initial::Free(domain) => Some((cell, domain)),
            Initial::Value(_) => None,
        })
        .collect();
    let mut values: Vec<i128> = (program.initial.iter())
        .map(|initial| match *initial {
            Initial::Value(value) => value,
            Initial::Free(_) => 0,
        })
        .collect();
    let domains: Vec<usize> = free.iter().map(|&(_, domain)| domain).collect();
    each_combination(program, &domains, &mut |chosen| {
        for (&(cell, _), &value) in free.iter().zip(chosen) {
            values[cell] = value;
        }
        visit(&values)
    })
}

/// The run to a state. `roots` has the values of the cells in the initial states, which come first in the arena.
pub fn run_to(
    program: &Program,
    layout: &Layout,
    arena: &Arena,
    machine: &mut Machine,
    roots: &[Vec<i128>],
    state: usize,
) -> Run {
    let mut path = vec![state];
    let mut at = state;
    while arena.parent(at) != NONE {
        at = arena.parent(at) as usize;
        path.push(at);
    }
    path.reverse();
    let step = |pair: &[usize]| {
        step_between(program, layout, machine, arena.state(pair[0]), arena.state(pair[1]))
            .expect("a step led from the parent to this state")
    };
    Run { initial: roots[at].clone(), steps: path.windows(2).map(step).collect() }
}

/// The process and the inputs of a step from one state to another.
fn step_between(
    program: &Program,
    layout: &Layout,
    machine: &mut Machine,
    from: &[u64],
    to: &[u64],
) -> Option<(usize, Vec<i128>)> {
    let mut after = vec![0; from.len()];
    for (process, location) in ready(program, layout, from) {
        let mut found = None;
        // Faults cannot occur: the search executed these steps.
        let _ = each_input(program, &program.processes[process].instructions[location], &mut |inputs| {
            let step = machine.step(program, layout, from, &mut after, (process, location), inputs, &mut Silent)?;
            if step && after == to && found.is_none() {
                found = Some(inputs.to_vec());
            }
            Ok(())
        });
        if let Some(inputs) = found {
            return Some((process, inputs));
        }
    }
    None
}
