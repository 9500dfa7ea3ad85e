//! The values of a system by id: local states, messages, events and monitor states, each content once.
//!
//! Content is canonical bytes (`python::canon`). A local state is its status and the ids of the contents of its fields: local
//! states that differ in one field share the others, and a field is compared, hashed and stored once.

use crate::system::encoding;
use crate::system::hash;
use crate::system::intern::Interner;
use crate::system::model::{
    CellSet, Content, EventId, FieldId, HOLE, LocalId, MessageId, MonitorId, Status, cell_bit, field_bit,
};
use crate::system::rename::rename;
use std::cell::RefCell;

/// Says which index a process gets that has this role and index now.
pub type Renaming<'a> = &'a dyn Fn(&[u8], usize) -> usize;

#[derive(Default)]
pub struct Values {
    fields: Interner<u8>,
    /// The status, then the fields. Monitor states are here too, with the status of a process that runs.
    locals: Interner<u32>,
    /// The sender's position (two bytes), then the content.
    messages: Interner<u8>,
    /// The announcing process's position (two bytes), then the content.
    events: Interner<u8>,
    /// Values of `same` fields.
    groups: Interner<u8>,
}

fn intern(interner: &Interner<u8>, content: &[u8]) -> u32 {
    interner.intern(content, hash::content(content))
}

impl Values {
    pub fn field(&self, content: &[u8]) -> FieldId {
        intern(&self.fields, content)
    }

    #[inline]
    pub fn field_content(&self, field: FieldId) -> &[u8] {
        self.fields.content(field)
    }

    /// A local state by its status and fields. A process that is unborn has no fields.
    pub fn local_of(&self, status: Status, fields: &[FieldId]) -> LocalId {
        let mut parts = Vec::with_capacity(fields.len() + 1);
        parts.push(status as u32);
        parts.extend_from_slice(fields);
        self.locals.intern(&parts, self.hash_of(status, fields.iter().map(|&field| self.fields.hash(field))))
    }

    fn hash_of(&self, status: Status, fields: impl Iterator<Item = u64>) -> u64 {
        let parts: Vec<u64> = [status as u64].into_iter().chain(fields).collect();
        hash::parts(&parts)
    }

    /// A local state by its content: the status, and unless it is unborn the tuple of its fields.
    pub fn local(&self, content: &[u8]) -> LocalId {
        let parts = encoding::fields(content);
        let fields: Vec<FieldId> = parts[1..].iter().map(|part| self.field(part)).collect();
        self.local_of(Status::of(content[0]), &fields)
    }

    pub fn local_content(&self, local: LocalId) -> Vec<u8> {
        let parts = self.locals.content(local);
        let mut content = vec![parts[0] as u8];
        if parts[0] != Status::Unborn as u32 {
            encoding::tuple(parts[1..].iter().map(|&field| self.fields.content(field)), &mut content);
        }
        content
    }

    /// A local state followed by the contents of cells, with holes for those that are not in the set.
    pub fn with_cells(&self, local: LocalId, cells: &[FieldId], read: CellSet) -> LocalId {
        let hole = self.field(HOLE);
        let mut fields = self.fields(local).to_vec();
        fields.extend(cells.iter().enumerate().map(|(at, &cell)| if read & cell_bit(at) != 0 { cell } else { hole }));
        self.local_of(self.status(local), &fields)
    }

    /// The local state without the cells that follow it, and the contents of these.
    pub fn without_cells(&self, local: LocalId, cells: usize) -> (LocalId, &[FieldId]) {
        let fields = self.fields(local);
        let (own, cells) = fields.split_at(fields.len() - cells);
        (self.local_of(self.status(local), own), cells)
    }

    /// The contents of the fields of a local state or a monitor.
    #[inline]
    pub fn fields(&self, local: LocalId) -> &[FieldId] {
        &self.locals.content(local)[1..]
    }

    /// The status of a local state (its own id), then its fields.
    #[inline]
    pub fn parts(&self, local: LocalId) -> &[u32] {
        self.locals.content(local)
    }

    #[inline]
    pub fn status(&self, local: LocalId) -> Status {
        Status::of(self.locals.content(local)[0] as u8)
    }

    #[inline]
    pub fn local_hash(&self, local: LocalId) -> u64 {
        self.locals.hash(local)
    }

    /// Which fields of a process differ between two local states, as `field_bit`s.
    pub fn altered(&self, process: usize, before: LocalId, after: LocalId) -> u64 {
        if before == after {
            return 0;
        }
        let (before, after) = (self.locals.content(before), self.locals.content(after));
        if before.len() != after.len() {
            return u64::MAX;
        }
        let differ = before.iter().zip(after).enumerate().filter(|(_, (before, after))| before != after);
        differ.fold(0, |bits, (field, _)| bits | field_bit(process, field))
    }

    pub fn monitor(&self, content: &[u8]) -> MonitorId {
        self.local(&[&[Status::Up as u8], content].concat())
    }

    pub fn monitor_content(&self, state: MonitorId) -> Vec<u8> {
        self.local_content(state).split_off(1)
    }

    pub fn message(&self, sender: u16, content: &[u8]) -> MessageId {
        intern(&self.messages, &joined(sender, content))
    }

    pub fn message_content(&self, message: MessageId) -> &[u8] {
        &self.messages.content(message)[2..]
    }

    #[inline]
    pub fn sender(&self, message: MessageId) -> u16 {
        position(self.messages.content(message))
    }

    #[inline]
    pub fn message_hash(&self, message: MessageId) -> u64 {
        self.messages.hash(message)
    }

    pub fn event(&self, process: u16, content: &[u8]) -> EventId {
        intern(&self.events, &joined(process, content))
    }

    /// The process that announced an event, and the content.
    pub fn event_content(&self, event: EventId) -> (u16, &[u8]) {
        let joined = self.events.content(event);
        (position(joined), &joined[2..])
    }

    pub fn group(&self, content: &[u8]) -> u32 {
        intern(&self.groups, content)
    }

    // -- renaming processes

    pub fn local_image(&self, local: LocalId, renamed: Renaming) -> LocalId {
        let image = |&field: &FieldId| self.field(&rename(self.fields.content(field), renamed));
        let fields: Vec<FieldId> = self.fields(local).iter().map(image).collect();
        self.local_of(self.status(local), &fields)
    }

    /// `places`: the positions that processes get.
    pub fn message_image(&self, message: MessageId, places: &[u16], renamed: Renaming) -> MessageId {
        intern(&self.messages, &joined_image(self.messages.content(message), places, renamed))
    }

    pub fn event_image(&self, event: EventId, places: &[u16], renamed: Renaming) -> EventId {
        intern(&self.events, &joined_image(self.events.content(event), places, renamed))
    }

    /// The hash of the image of a value, which need not exist.
    pub fn image_hash(&self, content: Content, places: &[u16], renamed: Renaming) -> u64 {
        match content {
            Content::Local(local) | Content::Monitor(local) => {
                let image = |&field: &FieldId| hash::content(&rename(self.fields.content(field), renamed));
                self.hash_of(self.status(local), self.fields(local).iter().map(image))
            }
            Content::Message(message) => hash::content(&joined_image(self.messages.content(message), places, renamed)),
        }
    }

    /// Hand every process id in a value to `note`.
    pub fn for_each_name(&self, content: Content, note: impl FnMut(&[u8], usize)) {
        let note = RefCell::new(note);
        let noting = |role: &[u8], index: usize| {
            note.borrow_mut()(role, index);
            index
        };
        match content {
            Content::Local(local) | Content::Monitor(local) => {
                self.fields(local).iter().for_each(|&field| drop(rename(self.fields.content(field), &noting)));
            }
            Content::Message(message) => drop(rename(self.message_content(message), &noting)),
        }
    }

    // -- statistics

    /// How many local states (and monitor states) there are, and the memory that they take with their fields.
    pub fn locals_size(&self) -> (usize, usize) {
        (self.locals.count(), self.locals.bytes() + self.fields.bytes())
    }

    /// Approximate memory in use.
    pub fn bytes(&self) -> usize {
        let bytes = [&self.fields, &self.messages, &self.events, &self.groups].iter().map(|i| i.bytes()).sum::<usize>();
        bytes + self.locals.bytes()
    }
}

fn joined(position: u16, content: &[u8]) -> Vec<u8> {
    [&position.to_le_bytes(), content].concat()
}

fn position(joined: &[u8]) -> u16 {
    u16::from_le_bytes([joined[0], joined[1]])
}

fn joined_image(content: &[u8], places: &[u16], renamed: Renaming) -> Vec<u8> {
    joined(places[position(content) as usize], &rename(&content[2..], renamed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_states_share_their_fields() {
        let values = Values::default();
        let (one, other) = (values.local(b"\0t\x02i\x02i\x04"), values.local(b"\0t\x02i\x02i\x06"));
        assert_ne!(one, other);
        assert_eq!(values.fields(one)[0], values.fields(other)[0]);
        assert_eq!(values.local_content(one), b"\0t\x02i\x02i\x04");
        assert_eq!(values.altered(0, one, other), field_bit(0, 2));
        assert_eq!(values.monitor_content(values.monitor(b"t\x01i\x02")), b"t\x01i\x02");
        assert_eq!(values.local_content(values.local(&[3])), [3]);
    }

    #[test]
    fn the_hash_of_an_image_is_known_before_it_exists() {
        let values = Values::default();
        let local = values.local(b"\0t\x02P\x01a\x00i\x04");
        let renamed = |_: &[u8], index: usize| index + 1;
        let hash = values.image_hash(Content::Local(local), &[], &renamed);
        let image = values.local_image(local, &renamed);
        assert_eq!(values.local_content(image), b"\0t\x02P\x01a\x01i\x04");
        assert_eq!(values.local_hash(image), hash);
    }
}
