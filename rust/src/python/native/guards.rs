//! Which handlers may run, natively, and which messages go together; and the cells that this depends on.

use crate::python::native::model::NativeModel;
use crate::python::native::shape::{HandlerShape, Trigger};
use crate::python::native::views::Local;
use crate::system::encoding;
use crate::system::model::{Armed, CellSet, LocalId, MessageId, Model, cell_bit};
use crate::vm::{Answer, Bail, Machine, UNBOUND};

impl NativeModel {
    /// The cells among the fields that the machine has read last.
    pub(super) fn cells_read(&self, machine: &Machine, local: &Local) -> CellSet {
        let cells = self.python.shape().cells;
        let own = local.fields.len() - cells;
        let read = machine.fields_read();
        (0..cells).filter(|cell| read >> (own + cell).min(63) & 1 == 1).fold(0, |all, cell| all | cell_bit(cell))
    }

    pub(super) fn armed_natively(
        &self,
        machine: &mut Machine,
        process: usize,
        local: LocalId,
        only: Option<u16>,
        read: &mut CellSet,
    ) -> Answer<Vec<Armed>> {
        let (fields, mut armed) = (self.local(local), Vec::new());
        for (number, handler) in self.handlers_of(process).iter().enumerate() {
            let number = number as u16;
            if only.is_some_and(|only| only != number) {
                continue;
            }
            match handler.trigger {
                Trigger::Action => {
                    let holds = !handler.guarded || machine.guard(process as u16, number, &fields, None)?;
                    if handler.guarded {
                        *read |= self.cells_read(machine, &fields);
                    }
                    if holds {
                        armed.push(Armed::taking(number, 0));
                    }
                }
                Trigger::Messages(least) => {
                    let least = match least {
                        Some(least) => least,
                        None => {
                            let least = self.quorum(machine, process, number, &fields)?;
                            *read |= self.cells_read(machine, &fields);
                            least
                        }
                    };
                    // A guard that is false without a look at the message is false for every message.
                    let mut hopeless = false;
                    if self.shape.foresee && handler.guarded && handler.foreseeable {
                        hopeless = match machine.guard(process as u16, number, &fields, None) {
                            Err(UNBOUND) => false,
                            answer => !answer?,
                        };
                        *read |= self.cells_read(machine, &fields);
                    }
                    if !hopeless {
                        let HandlerShape { distinct, accepts, .. } = *handler;
                        let most = handler.most.unwrap_or(least);
                        armed.push(Armed { handler: number, least, most, distinct, accepts });
                    }
                }
                Trigger::Recovery | Trigger::Init => {}
            }
        }
        Ok(armed)
    }

    fn quorum(&self, machine: &mut Machine, process: usize, number: u16, fields: &Local) -> Answer<u16> {
        let size = machine.quorum(process as u16, number, fields)?;
        let distinct = self.handlers_of(process)[number as usize].distinct;
        let highest = if distinct { self.python.shape().movers() } else { usize::from(u16::MAX) };
        let valid = (1..=highest as i64).contains(&size);
        if valid { Ok(size as u16) } else { Err(Bail(&"a quorum that no set of processes has")) }
    }

    /// The group of a message whose guard is true: the values of the fields in which a quorum agrees.
    pub(super) fn group(&self, handler: &HandlerShape, message: MessageId) -> Option<u32> {
        let content = self.values().message_content(message);
        if handler.same.is_empty() {
            return Some(self.values().group(b""));
        }
        let (class, values) = encoding::record(content)?;
        let names = self.shape.messages.get(std::str::from_utf8(class).ok()?)?;
        let same = handler.same.iter().map(|name| Some(values[names.iter().position(|known| known == name)?]));
        let same: Vec<&[u8]> = same.collect::<Option<_>>()?;
        let mut group = Vec::new();
        encoding::tuple(same.into_iter(), &mut group);
        Some(self.values().group(&group))
    }
}
