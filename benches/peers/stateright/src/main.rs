//! Stateright's side of the Paxos benchmark: `stateright-paxos CLIENTS SERVERS THREADS` prints one line of JSON.
//!
//! The network is unordered, lossless and does not duplicate; the linearizability history is part of the state.

mod paxos;

use paxos::{Server, Value};
use stateright::actor::register::{RegisterActor, RegisterMsg};
use stateright::actor::{model_peers, ActorModel, Id, Network};
use stateright::semantics::register::Register;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};
use stateright::{Checker, Expectation, Model};
use std::process::ExitCode;
use std::time::Instant;

/// The value of a register that nobody wrote.
const UNWRITTEN: Value = '\0';

type History = LinearizabilityTester<Id, Register<Value>>;

fn model(clients: usize, servers: usize) -> ActorModel<RegisterActor<Server>, (), History> {
    ActorModel::new((), History::new(Register(UNWRITTEN)))
        .actors((0..servers).map(|i| {
            RegisterActor::Server(Server {
                peers: model_peers(i, servers),
            })
        }))
        .actors((0..clients).map(|_| RegisterActor::Client {
            put_count: 1,
            server_count: servers,
        }))
        .init_network(Network::new_unordered_nonduplicating([]))
        .record_msg_in(RegisterMsg::record_returns)
        .record_msg_out(RegisterMsg::record_invocations)
        .property(Expectation::Always, "linearizable", |_, state| {
            state.history.is_consistent()
        })
        .property(Expectation::Sometimes, "value chosen", |_, state| {
            state
                .network
                .iter_deliverable()
                .any(|e| matches!(e.msg, RegisterMsg::GetOk(_, value) if *value != UNWRITTEN))
        })
}

fn main() -> ExitCode {
    let numbers: Option<Vec<usize>> = std::env::args().skip(1).map(|a| a.parse().ok()).collect();
    let Some(&[clients, servers, threads]) = numbers.as_deref() else {
        eprintln!("usage: stateright-paxos CLIENTS SERVERS THREADS");
        return ExitCode::from(2);
    };
    if clients == 0 || servers == 0 || threads == 0 {
        eprintln!("stateright-paxos: there must be at least one client, one server and one thread");
        return ExitCode::from(2);
    }
    let start = Instant::now();
    let checker = model(clients, servers)
        .checker()
        .threads(threads)
        .spawn_bfs()
        .join();
    let seconds = start.elapsed().as_secs_f64();
    checker.assert_properties();
    let (unique, total) = (checker.unique_state_count(), checker.state_count());
    let rate = unique as f64 / seconds;
    println!(
        "{{\"unique\": {unique}, \"total\": {total}, \"seconds\": {seconds:.3}, \
         \"states_per_second\": {rate:.0}, \"threads\": {threads}}}"
    );
    ExitCode::SUCCESS
}
