//! Programs that are small enough to count by hand.

use super::program::{Initial, Instruction, Op, Process, Program, Variable};
use super::search::{Options, Stop, search};

fn process(codes: &[usize]) -> Process {
    let instruction = |&code| Instruction {
        code,
        inputs: Vec::new(),
        waits: false,
        owner: None,
        synchronizes: false,
        exclusive: false,
    };
    let instructions: Vec<Instruction> = codes.iter().map(instruction).collect();
    let dead = vec![Vec::new(); instructions.len() + 2];
    Process { instructions, spawned: false, required: true, dead }
}

/// Two processes increment x; each one `steps` times, in one step or in a read and a write (its local is a cell).
fn counters(steps: usize, property: i64) -> Program {
    let mut ops = Vec::new();
    let mut codes = Vec::new();
    for location in 0..steps {
        codes.push(ops.len());
        ops.extend([Op::Load(0), Op::Const(1), Op::Add, Op::Store(0), Op::Goto(location as u32 + 1)]);
    }
    let code = ops.len();
    ops.extend([Op::Load(0), Op::Const(property), Op::Equal, Op::Return]);
    Program {
        ops,
        variables: vec![Variable { cells: 1, low: 0, high: 0, shared: true }],
        processes: vec![process(&codes), process(&codes)],
        initial: vec![Initial::Value(0)],
        properties: vec![code],
        ..Program::default()
    }
    .finish()
    .unwrap()
}

#[test]
fn two_counters_have_a_grid_of_states() {
    // The state is the pair of locations; x is their sum. The cell of x grows from 0 bits to 8.
    let report = search(&counters(100, -1), &Options::default(), &mut |_, _| true);
    assert_eq!((report.states, report.transitions, report.depth, report.ended), (101 * 101, 2 * 100 * 101, 200, 1));
    let report = search(&counters(100, 200), &Options::default(), &mut |_, _| true);
    let run = report.properties[0].clone().unwrap();
    assert_eq!((run.initial, run.steps.len()), (vec![0], 200));
    assert_eq!(run.steps.iter().filter(|step| step.0 == 0).count(), 100);
}

#[test]
fn the_first_discovery_is_the_nearest() {
    let report = search(&counters(10, 7), &Options::default(), &mut |_, _| true);
    assert_eq!(report.properties[0].as_ref().unwrap().steps.len(), 7);
    assert_eq!(report.stop, Some(Stop::Found));
    let never = search(&counters(10, 21), &Options::default(), &mut |_, _| true);
    assert_eq!((never.states, never.stop), (121, None));
    assert!(never.properties[0].is_none());
}

#[test]
fn limits_stop_the_search() {
    let stop = |options: Options| search(&counters(100, -1), &options, &mut |_, _| true).stop;
    assert_eq!(stop(Options { depth: Some(199), ..Options::default() }), Some(Stop::Depth));
    assert_eq!(stop(Options { depth: Some(200), ..Options::default() }), None);
    assert_eq!(stop(Options { states: Some(500), ..Options::default() }), Some(Stop::States));
    assert_eq!(stop(Options { memory: Some(20_000), ..Options::default() }), Some(Stop::Memory));
    let halted = search(&counters(100, -1), &Options::default(), &mut |_, _| false);
    assert_eq!(halted.stop, Some(Stop::Interrupted));
}

#[test]
fn two_writers_race() {
    let options = Options { races: true, ..Options::default() };
    let report = search(&counters(3, -1), &options, &mut |_, _| true);
    let (run, first, second) = report.race.unwrap();
    assert_eq!((run.steps.len(), first, second), (0, 0, 1));
}

#[test]
fn wrong_code_is_refused() {
    let wrong = |ops: Vec<Op>| Program { ops, properties: vec![0], ..Program::default() }.finish().is_err();
    assert!(wrong(vec![Op::Return]));
    assert!(wrong(vec![Op::Const(1)]));
    assert!(wrong(vec![Op::Load(0), Op::Return]));
    assert!(wrong(vec![Op::Const(1), Op::Const(1), Op::Return]));
    assert!(wrong(vec![Op::Const(1), Op::Jump(0), Op::Return]));
    assert!(wrong(vec![Op::Const(1), Op::Unless(3), Op::Const(1), Op::Return]));
    assert!(!wrong(vec![Op::Const(1), Op::Return]));
    assert!(!wrong(vec![Op::Const(1), Op::AndJump(4), Op::Const(0), Op::Truth, Op::Return]));
}
