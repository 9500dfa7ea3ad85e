//! Inboxes: the pending messages of one process, as a canonical list of message ids per network kind.
//!
//! Bag: sorted with repetitions. Set: sorted, each once. Fifo: grouped by sender in ascending order, each sender's
//! messages in the order sent. Mailbox: in the order of arrival. Taking a message out and putting one in never call Python.

use crate::system::model::{MessageId, Model, Network};

/// How many messages of a sender are pending.
fn from(model: &dyn Model, inbox: &[MessageId], sender: u16) -> usize {
    inbox.iter().filter(|&&message| model.sender(message) == sender).count()
}

/// Whether there is room for the messages of one step.
pub fn has_room(model: &dyn Model, inbox: &[MessageId], messages: &[MessageId]) -> bool {
    let (Some(most), [first, ..]) = (model.shape().blocks(), messages) else { return true };
    from(model, inbox, model.sender(*first)) + messages.len() <= most
}

/// Put messages in, in the order sent. A channel that is full drops them, if it is one that drops.
pub fn insert(model: &dyn Model, inbox: &[MessageId], messages: &[MessageId]) -> Vec<MessageId> {
    let mut result = inbox.to_vec();
    let most = model.shape().capacity.filter(|capacity| capacity.drops).map_or(usize::MAX, |capacity| capacity.most);
    for &message in messages {
        if most != usize::MAX && from(model, &result, model.sender(message)) >= most {
            continue;
        }
        match model.shape().network {
            Network::Bag => {
                let at = result.partition_point(|&m| m <= message);
                result.insert(at, message);
            }
            Network::Set => {
                if let Err(at) = result.binary_search(&message) {
                    result.insert(at, message);
                }
            }
            Network::Fifo => {
                let sender = model.sender(message);
                let at = result.partition_point(|&m| model.sender(m) <= sender);
                result.insert(at, message);
            }
            Network::Mailbox => result.push(message),
        }
    }
    result
}

/// Take the messages that a transition consumes out; a set keeps them.
pub fn remove(model: &dyn Model, inbox: &[MessageId], messages: &[MessageId]) -> Vec<MessageId> {
    let mut result = inbox.to_vec();
    if model.shape().network != Network::Set {
        for message in messages {
            let at = result.iter().position(|m| m == message).expect("a consumed message is pending");
            result.remove(at);
        }
    }
    result
}

/// The distinct messages that may be consumed now: the heads of the queues, or all. Of a mailbox all, in its order: the
/// first that a handler accepts is taken, which guards decide.
pub fn deliverable(model: &dyn Model, inbox: &[MessageId]) -> Vec<MessageId> {
    let mut result = inbox.to_vec();
    match model.shape().network {
        Network::Fifo => result.dedup_by_key(|m| model.sender(*m)),
        Network::Bag | Network::Set => result.dedup(),
        Network::Mailbox => {
            let mut met = std::collections::HashSet::new();
            result.retain(|&message| met.insert(message));
        }
    }
    result
}

/// A message that may be consumed now, alone or with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deliverable {
    pub message: MessageId,
    /// How many equal ones are pending.
    pub copies: u16,
    /// How many messages of its queue must be consumed with it: those before it.
    pub place: u16,
}

/// The distinct messages that may be consumed if a set may have several of one sender: of a queue, the first ones.
pub fn deliverable_together(model: &dyn Model, inbox: &[MessageId]) -> Vec<Deliverable> {
    let mut result: Vec<Deliverable> = Vec::new();
    for &message in inbox {
        let one = Deliverable { message, copies: 1, place: 0 };
        match result.last_mut() {
            Some(last)
                if model.shape().network == Network::Fifo && model.sender(last.message) == model.sender(message) =>
            {
                let place = last.place + 1;
                result.push(Deliverable { place, ..one });
            }
            Some(last) if model.shape().network != Network::Fifo && last.message == message => last.copies += 1,
            _ => result.push(one),
        }
    }
    result
}

/// Each way to lose one message: the message, and the inbox without it (distinct inboxes only).
pub fn losses(inbox: &[MessageId]) -> Vec<(MessageId, Vec<MessageId>)> {
    let mut found: Vec<(MessageId, Vec<MessageId>)> = Vec::new();
    for at in 0..inbox.len() {
        let mut rest = inbox.to_vec();
        let lost = rest.remove(at);
        if found.iter().all(|(_, other)| *other != rest) {
            found.push((lost, rest));
        }
    }
    found
}

/// The distinct messages that the network may copy.
pub fn distinct(inbox: &[MessageId]) -> Vec<MessageId> {
    let mut result = inbox.to_vec();
    result.sort_unstable();
    result.dedup();
    result
}
