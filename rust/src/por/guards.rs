//! Guards of quorum transitions that raise an exception in a state that partial-order reduction may leave out.
//!
//! A guard that raises is a step that fails, and the reduction takes every step (`docs/internals/reductions/por.md`). There is
//! one exception: a class that was split by several senders waits for all of them, but its guard is evaluated on the first
//! message. So the guards of these classes are evaluated on every message that was ever sent to them, in every local state.

use crate::por::relations::Relations;
use crate::system::model::{LocalId, MessageId, RAISED, Result};
use crate::system::tables::Tables;

/// More pairs of local states and messages are not evaluated.
const MOST_PAIRS: usize = 1_000_000;

impl Relations {
    /// Why an exception of a guard may have been left out, if that is so.
    pub fn unseen_guard(&self, tables: &Tables) -> Result<Option<String>> {
        let mut pairs = 0;
        for (process, handler) in self.split_quorums() {
            let (mut locals, mut messages): (Vec<LocalId>, Vec<MessageId>) = Default::default();
            tables.answers.armed.for_each(|&(of, local), armed| {
                if of == process && armed.iter().any(|armed| armed.handler == handler) {
                    locals.push(local);
                }
            });
            tables.answers.handlers.for_each(|&(to, message), known| {
                if to == process && known.contains(&handler) {
                    messages.push(message);
                }
            });
            pairs += locals.len() * messages.len();
            if pairs > MOST_PAIRS {
                return Ok(Some(
                    "the guards of quorum transitions have too many cases to show that none raises".into(),
                ));
            }
            let questions: Vec<(u16, MessageId)> = messages.iter().map(|&message| (handler, message)).collect();
            for local in locals {
                let _filling = tables.fill();
                if tables.model.guards(process as usize, local, &questions, &mut 0)?.contains(&Some(RAISED)) {
                    return Ok(Some("a guard of a quorum transition may raise in a state that it leaves out".into()));
                }
            }
        }
        Ok(None)
    }
}
