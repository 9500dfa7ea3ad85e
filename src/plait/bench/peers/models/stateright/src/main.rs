//! The models of `plait bench peers` for Stateright: `plait-peers THREADS PROTOCOL SIZE…` prints one line of JSON.

mod lamport_mutex;
mod paxos;
mod raft;
mod register_paxos;
mod two_phase_commit;

use stateright::{Checker, Model};
use std::fmt::Debug;
use std::hash::Hash;
use std::process::ExitCode;
use std::time::Instant;

/// Explore every state breadth first, and measure the time of the search.
fn search<M>(model: M, threads: usize)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let start = Instant::now();
    let checker = model.checker().threads(threads).spawn_bfs().join();
    let seconds = start.elapsed().as_secs_f64();
    checker.assert_properties();
    println!(
        "{{\"states\": {}, \"transitions\": {}, \"seconds\": {seconds:.6}}}",
        checker.unique_state_count(),
        // Stateright counts the initial state, too.
        checker.state_count() - 1,
    );
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [threads, protocol, sizes @ ..] = arguments.as_slice() else {
        return usage();
    };
    let sizes: Option<Vec<usize>> = sizes.iter().map(|size| size.parse().ok()).collect();
    let (Ok(threads @ 1..), Some(sizes)) = (threads.parse(), sizes) else {
        return usage();
    };
    match (protocol.as_str(), sizes.as_slice()) {
        ("two_phase_commit", &[managers]) => {
            search(two_phase_commit::TwoPhaseCommit { managers }, threads)
        }
        ("paxos", &[proposers, acceptors, learners]) => {
            let sizes = paxos::Sizes {
                proposers,
                acceptors,
                learners,
            };
            search(paxos::model(sizes), threads)
        }
        ("lamport_mutex", &[processes, limit @ ..=255]) => {
            search(lamport_mutex::model(processes, limit as u8), threads)
        }
        ("raft", &[servers, candidates, terms @ ..=255, entries @ ..=255]) => {
            let sizes = raft::Sizes {
                servers,
                candidates,
                terms: terms as u8,
                entries: entries as u8,
            };
            search(raft::model(sizes), threads)
        }
        ("register_paxos", &[clients, servers]) => {
            search(register_paxos::model(clients, servers), threads)
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: plait-peers THREADS PROTOCOL SIZE…\n  two_phase_commit MANAGERS\n  paxos PROPOSERS ACCEPTORS LEARNERS\n  \
         lamport_mutex PROCESSES LIMIT\n  raft SERVERS CANDIDATES TERMS ENTRIES\n  register_paxos CLIENTS SERVERS"
    );
    ExitCode::from(2)
}
