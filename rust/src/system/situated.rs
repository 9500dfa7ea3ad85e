//! Situated nodes: the transitions of a process depend on its node, and on the cells that its steps read. A situated node is a
//! node with the contents of these cells. `Situated` is what one worker remembers of them.

use crate::system::model::{CellSet, FieldId, HOLE, LocalId, Result, Shape, cell_bit};
use crate::system::tables::{Node, NodeId, Tables, UNSITUATED, note};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub struct Situated {
    movers: usize,
    processes: usize,
    /// By node, and the nodes of all cells.
    known: FxHashMap<SmallVec<[NodeId; 8]>, NodeId>,
}

impl Situated {
    pub fn new(shape: &Shape) -> Situated {
        Situated { movers: shape.movers(), processes: shape.processes, known: FxHashMap::default() }
    }

    /// The node of a process in a state, with the cells that its steps read.
    #[inline]
    pub fn node(&mut self, tables: &Tables, state: &[u32], process: usize) -> Result<NodeId> {
        if self.movers == self.processes || process >= self.movers {
            Ok(state[process])
        } else {
            self.find(tables, state, process)
        }
    }

    fn find(&mut self, tables: &Tables, state: &[u32], process: usize) -> Result<NodeId> {
        let mut key: SmallVec<[NodeId; 8]> = SmallVec::from_slice(&state[self.movers..self.processes]);
        key.push(state[process]);
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let found = tables.situated(state, process)?;
        self.known.insert(key, found);
        Ok(found)
    }
}

impl Tables {
    /// The node of a process in a state, with the cells that its steps read.
    pub fn situated(&self, state: &[u32], process: usize) -> Result<NodeId> {
        let (shape, node) = (self.model.shape(), state[process]);
        if shape.cells == 0 || process >= shape.movers() {
            return Ok(node);
        }
        let values = self.model.values();
        let cell = |&node: &NodeId| values.fields(self.node(node).local)[0];
        let cells: Vec<FieldId> = state[shape.movers()..shape.processes].iter().map(cell).collect();
        let known = || {
            let scopes = self.scopes.lock().get(&node).cloned().unwrap_or_default();
            scopes.into_iter().find_map(|read| match read {
                0 => Some(node),
                _ => self.situated.get(&(node, values.with_cells(self.node(node).local, &cells, read))),
            })
        };
        if let Some(found) = known() {
            return Ok(found);
        }
        let _filling = self.fill();
        if let Some(found) = known() {
            return Ok(found);
        }
        let mut found = node;
        let mut scope = 0;
        self.expand_in(node, &cells, |read| {
            scope = read;
            if read != 0 {
                found = self.situated_node(node, values.with_cells(self.node(node).local, &cells, read));
            }
            found
        })?;
        note(self.scopes.lock().entry(node).or_default(), scope);
        Ok(found)
    }

    /// A node with a local state that has the cells after its fields.
    pub(crate) fn situated_node(&self, base: NodeId, local: LocalId) -> NodeId {
        let node = || Node { local, base, ..*self.node(base) };
        self.situated.get_or_insert_with((base, local), || self.nodes.push(node()))
    }

    /// The node that a state has, and the contents of cells that a situated node has, with holes for others.
    pub(crate) fn without_cells(&self, node: NodeId) -> (NodeId, Vec<FieldId>) {
        let (values, cells) = (self.model.values(), self.model.shape().cells);
        match *self.node(node) {
            Node { base: UNSITUATED, .. } if cells == 0 => (node, Vec::new()),
            Node { base: UNSITUATED, .. } => (node, vec![values.field(HOLE); cells]),
            Node { base, local, .. } => (base, values.without_cells(local, cells).1.to_vec()),
        }
    }

    /// The cells that the steps of a node read.
    pub(crate) fn cells_read(&self, node: NodeId) -> CellSet {
        let hole = self.model.values().field(HOLE);
        let cells = self.without_cells(node).1;
        let read = cells.iter().enumerate().filter(|(_, content)| **content != hole);
        read.fold(0, |read, (cell, _)| read | cell_bit(cell))
    }
}
