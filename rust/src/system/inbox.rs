//! Inboxes: the pending messages of one process, as a canonical list of message ids per network kind.
//!
//! Bag: sorted with repetitions. Set: sorted, each once. Fifo: grouped by sender in ascending order, each sender's
//! messages in the order sent. Taking a message out and putting one in never call Python.

use crate::system::model::{MessageId, Model, Network};

/// Put messages in, in the order sent.
pub fn insert(model: &dyn Model, inbox: &[MessageId], messages: &[MessageId]) -> Vec<MessageId> {
    let mut result = inbox.to_vec();
    for &message in messages {
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

/// The distinct messages that may be consumed now: the heads of the queues, or all.
pub fn deliverable(model: &dyn Model, inbox: &[MessageId]) -> Vec<MessageId> {
    let mut result = inbox.to_vec();
    match model.shape().network {
        Network::Fifo => result.dedup_by_key(|m| model.sender(*m)),
        Network::Bag | Network::Set => result.dedup(),
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
