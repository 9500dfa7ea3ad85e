//! What permutations of processes make of values: every process id in them is replaced.

use crate::symmetry::group::Group;
use crate::system::model::Content;
use crate::system::values::Values;
use crate::util::shared::SharedMap;
use rustc_hash::FxHashMap;

/// The ids of the processes of a system, and the images of values that were asked for.
#[derive(Default)]
pub struct Images {
    /// The index of every process in its role, and per role the positions of its processes in the order of their indices.
    indices: Vec<usize>,
    roles: FxHashMap<Vec<u8>, Vec<u16>>,
    /// By id and element of the group.
    locals: SharedMap<(u32, usize), u32>,
    messages: SharedMap<(u32, usize), u32>,
    events: SharedMap<(u32, usize), u32>,
}

impl Images {
    /// `pids`: role and index of each process.
    pub fn new(pids: Vec<(String, usize)>) -> Images {
        let mut images = Images { indices: pids.iter().map(|&(_, index)| index).collect(), ..Images::default() };
        // The processes of a role come in the order of their indices.
        for (position, (role, _)) in pids.into_iter().enumerate() {
            images.roles.entry(role.into_bytes()).or_default().push(position as u16);
        }
        images
    }

    /// The position of a process. None: no process has this id.
    fn position(&self, role: &[u8], index: usize) -> Option<u16> {
        self.roles.get(role)?.get(index).copied()
    }

    /// The index in its role of the process in the place of another.
    fn renamed(&self, places: &[u16], role: &[u8], index: usize) -> usize {
        // A process id that no process has stays as it is.
        self.position(role, index).map_or(index, |position| {
            let place = places[position as usize] as usize;
            self.indices.get(place).copied().unwrap_or(place)
        })
    }

    /// The positions of the processes that a value names, a message's sender among them.
    pub fn names(&self, values: &Values, content: Content) -> Vec<u16> {
        let mut found = Vec::new();
        if let Content::Message(message) = content {
            found.push(values.sender(message));
        }
        values.for_each_name(content, |role, index| found.extend(self.position(role, index)));
        found
    }

    /// The hash of what a value becomes if each process gets the name of that in another place. A place beyond those of all
    /// processes is a name that no process has.
    pub fn renamed_hash(&self, values: &Values, content: Content, places: &[u16]) -> u64 {
        values.image_hash(content, places, &|role, index| self.renamed(places, role, index))
    }

    /// What a permutation (by its place in the group) makes of a local state or of the state of a monitor.
    pub fn local(&self, values: &Values, group: &Group, local: u32, element: usize) -> u32 {
        let places = &group.elements[element];
        let made = || values.local_image(local, &|role, index| self.renamed(places, role, index));
        image(&self.locals, local, element, made)
    }

    pub fn message(&self, values: &Values, group: &Group, message: u32, element: usize) -> u32 {
        let places = &group.elements[element];
        let made = || values.message_image(message, places, &|role, index| self.renamed(places, role, index));
        image(&self.messages, message, element, made)
    }

    pub fn event(&self, values: &Values, group: &Group, event: u32, element: usize) -> u32 {
        let places = &group.elements[element];
        let made = || values.event_image(event, places, &|role, index| self.renamed(places, role, index));
        image(&self.events, event, element, made)
    }
}

fn image(known: &SharedMap<(u32, usize), u32>, id: u32, element: usize, made: impl FnOnce() -> u32) -> u32 {
    if element == 0 {
        return id;
    }
    known.get(&(id, element)).unwrap_or_else(|| known.insert((id, element), made()))
}
