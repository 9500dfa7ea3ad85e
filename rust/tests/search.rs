//! The searches on models written in Rust, with counts that can be computed by hand. No Python.

use _native::live::graph::{Graph, Labelling};
use _native::search::control::{Control, Limit, Options};
use _native::search::path;
use _native::search::run::{Strategy, run};
use _native::search::test_hooks::TestHooks;
use _native::symmetry::audit::Evidence;
use _native::symmetry::group::Group;
use _native::symmetry::images::Images;
use _native::system::model::{
    Armed, CellSet, Component, Evaluation, EventId, Fault, Initial, LocalId, MessageId, Model, MonitorId, Network,
    Observed, Outcome, Parts, PropertyKind, Quantifier, RareEffects, Result, Shape, Status, Truth,
};
use _native::system::successors::View;
use _native::system::tables::Tables;
use _native::system::values::Values;
use std::sync::Arc;

/// n counters that go from 0 to k, each step tells a collector which takes the messages in any order.
///
/// A local state has one field, its number. A message says "I made a step"; the collector (the last process) counts them.
struct Counters {
    shape: Shape,
    values: Values,
    images: Images,
    limit: u32,
    tell: bool,
}

impl Counters {
    fn new(counters: usize, limit: u32, tell: bool, network: Network) -> Counters {
        let shape = Shape {
            processes: counters + usize::from(tell),
            cells: 0,
            handlers: vec![1; counters + usize::from(tell)],
            monitors: 0,
            network,
            capacity: None,
            lossy: false,
            losses: None,
            duplications: None,
            faults: vec![],
            returning: vec![false; counters + usize::from(tell)],
            properties: vec![PropertyKind::Always],
            quantifiers: vec![Quantifier::default()],
            history: false,
            group: Group::default(),
            time: None,
        };
        Counters { shape, values: Values::default(), images: Images::default(), limit, tell }
    }

    /// The local state with a number, and the number of a local state.
    fn local(&self, number: u32) -> LocalId {
        self.values.local_of(Status::Up, &[self.values.field(&number.to_le_bytes())])
    }

    fn number(&self, local: LocalId) -> u32 {
        u32::from_le_bytes(self.values.field_content(self.values.fields(local)[0]).try_into().unwrap())
    }

    fn counters(&self) -> usize {
        self.shape.processes - usize::from(self.tell)
    }
}

impl Model for Counters {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn values(&self) -> &Values {
        &self.values
    }

    fn images(&self) -> &Images {
        &self.images
    }

    fn asked(&self) -> u64 {
        0
    }

    fn initial(&self) -> Result<Initial> {
        let start = || vec![Outcome::new(self.local(0), vec![], vec![], RareEffects::default())];
        Ok(Initial { processes: (0..self.shape.processes).map(|_| start()).collect(), monitors: vec![] })
    }

    fn armed(&self, process: usize, local: LocalId, _: Option<u16>, _: &mut CellSet) -> Result<Vec<Armed>> {
        let is_counter = process < self.counters();
        Ok(if is_counter && self.number(local) < self.limit {
            vec![Armed::taking(0, 0)]
        } else if is_counter {
            vec![]
        } else {
            vec![Armed::taking(0, 1)]
        })
    }

    fn handlers(&self, _: usize, _: MessageId) -> Result<Vec<u16>> {
        Ok(vec![0])
    }

    fn guards(
        &self,
        _: usize,
        _: LocalId,
        questions: &[(u16, MessageId)],
        _: &mut CellSet,
    ) -> Result<Vec<Option<u32>>> {
        Ok(vec![Some(0); questions.len()])
    }

    fn accepts(&self, _: usize, _: LocalId, _: u16, sets: &[Vec<MessageId>], _: &mut CellSet) -> Result<Vec<Truth>> {
        Ok(vec![Some(true); sets.len()])
    }

    fn step(&self, process: usize, local: LocalId, _: u16, _: &[MessageId], _: &mut CellSet) -> Result<Vec<Outcome>> {
        let tells = self.tell && process < self.counters();
        let sends =
            if tells { vec![(self.counters() as u16, self.values.message(process as u16, b""))] } else { vec![] };
        let local = self.local(self.number(local) + 1);
        Ok(vec![Outcome::new(local, sends, Vec::new(), RareEffects::default())])
    }

    fn crash(&self, _: usize, local: LocalId, _: bool) -> Result<LocalId> {
        Ok(local)
    }

    fn recover(&self, _: usize, _: LocalId, _: &mut CellSet) -> Result<Vec<Outcome>> {
        Ok(vec![])
    }

    fn observe(&self, _: usize, state: MonitorId, _: EventId) -> Result<Observed> {
        Ok(Ok(state))
    }

    /// Not all counters are at their limit.
    fn evaluate(&self, _: usize, _: usize, parts: &Parts) -> Result<Evaluation> {
        let mut found = Evaluation { value: Some(false), ..Evaluation::default() };
        for (process, &local) in parts.locals.iter().enumerate().take(self.counters()) {
            found.reads.push(Component::Field(process as u16, 1));
            if self.number(local) < self.limit {
                found.value = Some(true);
                break;
            }
        }
        Ok(found)
    }

    fn too_many_sets(&self, _: usize, _: u16) -> Fault {
        unreachable!("no handler takes several messages")
    }

    fn asymmetry(&self, _: usize, _: Evidence) -> Fault {
        unreachable!("no symmetry was declared")
    }
}

fn search(model: Counters, strategy: Strategy, options: Options) -> (Tables, Control) {
    let control = Control::new(&model.shape, options).unwrap();
    let tables = Tables::new(Arc::new(model));
    run(&tables, &control, strategy, || true).unwrap();
    (tables, control)
}

fn counts(control: &Control) -> (usize, u64, u64) {
    use std::sync::atomic::Ordering::Relaxed;
    (control.visited.len(), control.transitions.load(Relaxed), control.terminal.load(Relaxed))
}

#[test]
fn independent_counters_make_a_grid() {
    for (n, k) in [(1, 5), (3, 4), (5, 3)] {
        for strategy in [Strategy::Bfs, Strategy::Dfs] {
            for workers in [1, 2, 3] {
                let options = Options { workers, keep_going: true, ..Options::default() };
                let (_, control) = search(Counters::new(n, k, false, Network::Bag), strategy, options);
                let side = k as usize + 1;
                let edges = n * k as usize * side.pow(n as u32 - 1);
                assert_eq!(counts(&control), (side.pow(n as u32), edges as u64, 1));
            }
        }
    }
}

#[test]
fn a_bag_counts_messages_and_a_set_keeps_them() {
    let options = || Options { keep_going: true, ..Options::default() };
    // One counter: at value v, of v equal messages 0 to v were taken.
    let (_, bag) = search(Counters::new(1, 4, true, Network::Bag), Strategy::Bfs, options());
    assert_eq!(bag.visited.len(), 1 + 2 + 3 + 4 + 5);
    let (_, queue) = search(Counters::new(1, 4, true, Network::Fifo), Strategy::Bfs, options());
    assert_eq!(queue.visited.len(), bag.visited.len());
    // A set is never emptied: the collector counts for ever.
    let endless = Options { max_states: 1000, ..options() };
    let (_, set) = search(Counters::new(1, 4, true, Network::Set), Strategy::Bfs, endless);
    assert_eq!(set.bound(), Some(Limit::MaxStates));
}

#[test]
fn breadth_first_finds_the_shortest_run_and_rebuilds_it() {
    for workers in [1, 2] {
        let options = Options { workers, ..Options::default() };
        let (tables, control) = search(Counters::new(3, 7, true, Network::Bag), Strategy::Bfs, options);
        let finding = &control.findings()[0];
        assert_eq!(finding.depth, 21);
        let steps = path::to(&tables, &control, finding.fingerprint).unwrap().unwrap().steps;
        assert_eq!(steps.len(), 21);
        assert_eq!(steps.last().unwrap().fingerprint, finding.fingerprint);
    }
}

#[test]
fn a_random_walk_knows_its_run() {
    let options = Options { walks: 10, ..Options::default() };
    let (tables, control) = search(Counters::new(2, 3, false, Network::Bag), Strategy::Random, options);
    let run = control.findings()[0].run.clone().unwrap();
    assert_eq!(run.len(), 7);
    assert_eq!(path::along(&tables, &run).unwrap().unwrap().steps.len(), 6);
}

#[test]
fn all_searches_meet_the_same_ends() {
    use std::sync::atomic::Ordering::Relaxed;
    // Other tests of this process then collect terminal states too, which does no harm.
    TestHooks { collect_terminals: true, ..TestHooks::default() }.install();
    for network in [Network::Bag, Network::Fifo] {
        let ends = |strategy, spos, dpor| {
            let options = Options { keep_going: true, spos, dpor, ..Options::default() };
            let (_, control) = search(Counters::new(2, 2, true, network), strategy, options);
            assert_eq!(control.findings().len(), 1);
            (control.terminals(), control.visits.load(Relaxed))
        };
        let (expected, _) = ends(Strategy::Bfs, true, false);
        assert_eq!(expected.len(), 1);
        for spos in [true, false] {
            assert_eq!(ends(Strategy::Dfs, spos, false).0, expected);
        }
        let (plain, all) = ends(Strategy::Stateless, true, false);
        let (reduced, fewer) = ends(Strategy::Stateless, true, true);
        assert_eq!((plain, reduced), (expected.clone(), expected));
        assert!(fewer < all, "{fewer} of {all}");
    }
}

#[test]
fn a_chain_is_not_pushed() {
    use std::sync::atomic::Ordering::Relaxed;
    let operations = |spos| {
        let options = Options { keep_going: true, spos, ..Options::default() };
        let (_, control) = search(Counters::new(1, 9, false, Network::Bag), Strategy::Dfs, options);
        // The run has the states that were not pushed.
        assert_eq!(control.findings()[0].run.as_ref().unwrap().len(), 10);
        (control.stack_operations.load(Relaxed), control.stack_operations_saved.load(Relaxed))
    };
    // Ten states; the last has no successor, and is pushed.
    assert_eq!(operations(true), (2, 18));
    assert_eq!(operations(false), (20, 0));
}

#[test]
fn a_stateless_search_counts_paths() {
    let options = Options { keep_going: true, ..Options::default() };
    let (_, control) = search(Counters::new(2, 2, false, Network::Bag), Strategy::Stateless, options);
    // Prefixes of the C(4, 2) interleavings: 1 + 2 + 4 + 6 + 6.
    assert_eq!(control.visits.load(std::sync::atomic::Ordering::Relaxed), 19);
    assert_eq!(control.bound(), None);
}

#[test]
fn fingerprints_do_not_depend_on_the_way() {
    let options = |workers| Options { workers, keep_going: true, ..Options::default() };
    let sorted = |strategy, workers| {
        let (_, control) = search(Counters::new(3, 3, true, Network::Fifo), strategy, options(workers));
        let mut all = control.visited.fingerprints();
        all.sort_unstable();
        all
    };
    let one = sorted(Strategy::Bfs, 1);
    assert_eq!(one, sorted(Strategy::Bfs, 2));
    assert_eq!(one, sorted(Strategy::Dfs, 1));
    assert_eq!(one, sorted(Strategy::Dfs, 2));
}

#[test]
fn a_tick_ends_the_search() {
    let control = Control::new(&Counters::new(8, 9, true, Network::Bag).shape, Options::default()).unwrap();
    let tables = Tables::new(Arc::new(Counters::new(8, 9, true, Network::Bag)));
    run(&tables, &control, Strategy::Bfs, || false).unwrap();
    assert_eq!(control.bound(), Some(Limit::Interrupted));
}

#[test]
fn any_number_of_workers_build_the_same_graph() {
    // By fingerprint: label, whether it is terminal, targets in order.
    let graph = |workers: usize| {
        let options = Options { workers, ..Options::default() };
        let model = Counters::new(4, 14, false, Network::Bag);
        let control = Control::new(&model.shape, options).unwrap();
        let tables = Tables::new(Arc::new(model));
        let labelling = Labelling { control: &control, predicates: &[0], spare: 0, safety: false };
        let mut view = View::new(&tables);
        let graph = Graph::explored(&mut view, labelling, None).unwrap();
        assert_eq!(graph.depth, 4 * 14);
        let ids = 0..graph.len() as u32;
        // Layers follow each other: the numbers of states that are met later are greater than those of all before.
        let sum = |id: u32| graph.state(id).iter().map(|&node| tables.node(node).local).sum::<u32>();
        assert!(ids.clone().skip(1).all(|id| sum(id - 1) <= sum(id)));
        let fingerprints: Vec<u64> = ids.clone().map(|id| view.fingerprint(&graph.state(id))).collect();
        let mut states: Vec<_> = ids
            .map(|id| {
                let targets: Vec<u64> = graph.targets(id).iter().map(|&target| fingerprints[target as usize]).collect();
                (fingerprints[id as usize], graph.label(id), graph.is_terminal(id), targets)
            })
            .collect();
        states.sort_unstable();
        states
    };
    let alone = graph(1);
    assert_eq!(alone.len(), 15usize.pow(4));
    assert_eq!(alone.iter().map(|state| state.3.len()).sum::<usize>(), 4 * 14 * 15usize.pow(3));
    assert_eq!(alone.iter().filter(|state| state.2).count(), 1);
    for workers in [2, 4] {
        assert!(graph(workers) == alone, "{workers} workers");
    }
}
