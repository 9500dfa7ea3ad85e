//! Runs a search in the background while the calling thread watches the limits.

use crate::control::Control;
use crate::model::Result;
use crate::tables::Tables;
use crate::{bfs, dfs, dpor, walk};

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
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _finish = Finish(control);
            tables.model.in_thread(&mut || {
                let result = match strategy {
                    Strategy::Bfs => bfs::search(tables, control),
                    Strategy::Dfs => dfs::search(tables, control, true),
                    Strategy::Stateless if control.options.dpor => dpor::search(tables, control),
                    Strategy::Stateless => dfs::search(tables, control, false),
                    Strategy::Random => walk::search(tables, control),
                };
                if let Err(fault) = result {
                    control.fail(fault);
                }
            });
        });
        control.watch(tick);
    });
    control.take_fault().map_or(Ok(()), Err)
}
