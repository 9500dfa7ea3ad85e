//! Runs a search in the background while the calling thread watches the limits.

use crate::por::relations::{Relations, Rules};
use crate::search::control::{Control, Por};
use crate::search::path::Run;
use crate::search::{bfs, dfs, dpor, path, walk};
use crate::system::model::Result;
use crate::system::successors::View;
use crate::system::tables::Tables;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Bfs,
    Dfs,
    Stateless,
    Random,
}

/// Says that the search is over even if it panicked.
struct Finish<'a>(&'a Control);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Search; `tick` is called some times a second, and ends the search by returning false.
pub fn run(tables: &Tables, control: &Control, strategy: Strategy, tick: impl FnMut() -> bool) -> Result<()> {
    watched(tables, control, tick, || match control.options.por {
        Some(por) => reduced(tables, control, strategy, por),
        None => pass(tables, control, strategy),
    })
}

/// Work in another thread, which may ask the model.
pub fn watched(
    tables: &Tables,
    control: &Control,
    tick: impl FnMut() -> bool,
    work: impl Fn() -> Result<()> + Sync,
) -> Result<()> {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _finish = Finish(control);
            tables.model.in_thread(&mut || {
                if let Err(fault) = work() {
                    control.fail(fault);
                }
            });
        });
        control.watch(tick);
    });
    control.take_fault().map_or(Ok(()), Err)
}

fn pass(tables: &Tables, control: &Control, strategy: Strategy) -> Result<()> {
    match strategy {
        Strategy::Bfs => bfs::search(tables, control),
        Strategy::Dfs => dfs::search(tables, control, true),
        Strategy::Stateless if control.options.dpor => dpor::search(tables, control),
        Strategy::Stateless => dfs::search(tables, control, false),
        Strategy::Random => walk::search(tables, control),
    }
}

/// Search with partial-order reduction: passes, each with the relations that are known when it begins, until one of them
/// meets nothing that its relations do not cover. (A violation is real whatever the relations, and ends the search.)
fn reduced(tables: &Tables, control: &Control, strategy: Strategy, por: Por) -> Result<()> {
    let rules = Rules::of(control);
    let keeps_guards = !control.leaves_out("guards");
    if !control.leaves_out("learning") {
        walk::learn(tables, control)?;
    }
    let begin = |relations: Option<Relations>| -> Result<()> {
        // Runs to what was found so far are in the visited set, which is about to be forgotten.
        control.keep_runs(|fingerprint| {
            let run = path::to(tables, control, fingerprint)?;
            let start = |run: &Run| View::new(tables).fingerprint(&run.start);
            Ok(run.map(|run| [start(&run)].into_iter().chain(run.steps.iter().map(|step| step.fingerprint)).collect()))
        })?;
        Ok(control.begin(relations)?)
    };
    while !control.ended() {
        let read_sets = control.read_sets();
        let shape = tables.model.shape();
        match tables.known_effects(|known| Relations::new(known, shape, por.split, por.seeds, rules, read_sets)) {
            Ok(relations) => {
                begin(Some(relations))?;
                pass(tables, control, strategy)?;
            }
            Err(reason) => control.give_up(reason),
        }
        let covered = control.covered(tables);
        if let Some(relations) = control.relations().filter(|_| covered && !control.ended() && keeps_guards)
            && let Some(reason) = relations.unseen_guard(tables)?
        {
            control.give_up(reason);
        }
        if control.given_up().is_some() {
            begin(None)?;
            return pass(tables, control, strategy);
        }
        if covered {
            break;
        }
    }
    Ok(())
}
